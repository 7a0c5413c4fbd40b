"""How many registers of a lane hold its part of a matrix: the fragments of `wmma`, `mma` and `wgmma`.

A fragment is the matrix divided evenly among the lanes that hold it (32, or 128 for `wgmma`). Elements narrower than a
register are packed; fp6 and fp4 elements take a byte each, unless the multiplication works on nothing but fp4.
"""

import re

# Bits an element takes in a register.
ELEMENT_BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16,
    "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip

# The type of the registers, where it is not `b32`: a register of that type or an untyped one.
REGISTER_TYPES = {"f64": "b64", "f32": "f32", "s32": "s32", "tf32": "tf32", "f16": "f16x2", "bf16": "bf16x2"}


def extents(shape: str) -> tuple[int, int, int]:
    """The rows of A and D, the columns of B and D, and the columns of A: (16, 8, 32) for `m16n8k32`."""
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    assert found, shape
    return int(found[1]), int(found[2]), int(found[3])


def elements(matrix: str, shape: str) -> int:
    """The number of elements of matrix `a`, `b`, `c` or `d`."""
    m, n, k = extents(shape)
    return {"a": m * k, "b": k * n}.get(matrix, m * n)


def registers(matrix: str, shape: str, type: str, *, bits: int | None = None, copies: float = 1) -> str:
    """The registers of a lane as `types` of a form says it: `registers("a", "m16n8k16", "f16")` is `"4 f16x2"`.

    `copies` is how many such matrices a warp holds, 4 in `mma.m8n8k4` and 1/2 for the packed A of a sparse `mma`.
    """
    held = REGISTER_TYPES.get(type, "b32")
    width = 64 if held == "b64" else 32
    return f"{int(elements(matrix, shape) * copies) * (bits or ELEMENT_BITS[type]) // (32 * width)} {held}"
