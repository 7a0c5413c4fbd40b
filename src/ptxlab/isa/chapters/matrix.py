"""Multiplication of small matrices by a warp: mma.sync, dense and unscaled (PTX ISA 9.7.14.5).

One form a row of the manual's table of shapes and types; the registers of an operand follow from shape and type. `mma`
with a sparse A is in matrix_sparse.py, `mma` with scale factors in matrix_scaled.py.
"""

from ..form import Modifiers, Slots, Specification, form, unknown
from ..held import held_by_mma, holds
from ..machine import Machine, Vector
from ..operation import computes
from ..units.fragment import ELEMENT_BITS, registers
from ..units.layouts import FragmentLayouts, fragments
from ..units.warp_mma import collect, mma_of

DENSE = "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c"
KIND = "mma.sync.aligned.shape.alayout.blayout.kind.dtype.atype.btype.ctype d, a, b, c"
DOUBLE = "mma.sync.aligned.shape.alayout.blayout{.rnd}.dtype.atype.btype.ctype d, a, b, c"
INTEGER = "mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype d, a, b, c"
SINGLE_BIT = "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype.operation.popc d, a, b, c"

ROW_COL: Slots = {"alayout": "row", "blayout": "col"}
ANY_LAYOUT: Slots = {"alayout": "row col", "blayout": "row col"}
HALF: Slots = {"dtype": "f16 f32", "atype": "f16", "btype": "f16", "ctype": "f16 f32"}
BFLOAT: Slots = {"dtype": "f32", "atype": "bf16", "btype": "bf16", "ctype": "f32"}
TF32: Slots = {"dtype": "f32", "atype": "tf32", "btype": "tf32", "ctype": "f32"}
F64: Slots = {"dtype": "f64", "atype": "f64", "btype": "f64", "ctype": "f64"}
BYTES: Slots = {"dtype": "s32", "atype": "u8 s8", "btype": "u8 s8", "ctype": "s32"}
NIBBLES: Slots = {"dtype": "s32", "atype": "u4 s4", "btype": "u4 s4", "ctype": "s32"}
FP8: Slots = {"atype": "e4m3 e5m2", "btype": "e4m3 e5m2"}
NARROW_A: Slots = {"atype": "e3m2 e2m3 e2m1", "btype": "e4m3 e5m2 e3m2 e2m3 e2m1"}
NARROW_B: Slots = {"atype": "e4m3 e5m2", "btype": "e3m2 e2m3 e2m1"}
F8F6F4 = "kind::f8f6f4"
FAMILY_120 = "8.7 sm_120a | 8.8 sm_120f"
LATER = "8.7 sm_100a sm_101a sm_120a | 8.8 sm_100f sm_101f sm_120f"
ANY_HALF: Slots = {"dtype": "f16 f32", "ctype": "f16 f32"}
FIRST = "8.6 sm_100a sm_101a | 8.7 sm_120a | 8.8 sm_100f sm_101f sm_120f"


def operands(d: str = "sink", a: str = "special", c: str = "special", copies: int = 1) -> dict[str, Specification]:
    """The four operands of a multiplication, each with what else may be among its registers."""

    return {
        "d": held("d", d, copies),
        "a": held("a", a, copies),
        "b": held("b", a, copies),
        "c": held("c", c, copies),
    }


def held(matrix: str, more: str, copies: float = 1) -> Specification:
    """The registers of a matrix, and what else may be among them."""

    def specify(m: Modifiers) -> str:
        type = getattr(m, f"{matrix}type")
        # ptxas converts constants without a vector for these; all others must be spelled with 32 bits, `0f00000000`.
        converted = type in ("s32", "f64") or (matrix == "c" and ELEMENT_BITS[m.atype] == 8)
        return f"{registers(matrix, m.shape, type, copies=copies)} {more}" + ("" if converted else " reg")

    return specify


MATRICES = operands()
INTEGERS: dict[str, Specification] = {"a": "1 u32 special reg", "b": "1 u32 special reg"}  # no floats in this one shape
# From sm_90 to sm_110 ptxas makes fp8 a function call and wants a register for every part of the result; where the
# hardware multiplies fp8, on sm_89 and sm_120, a sink will do.
FP8_MATRICES = operands(c="")


def same_result(m: Modifiers) -> str | None:
    """The result and the addend have one type."""
    return None if m.dtype == m.ctype else f"the result `.{m.dtype}` and the addend `.{m.ctype}` must have one type"


def no_narrower_result(m: Modifiers) -> str | None:
    """The addend may be narrower than the result, but not wider."""
    return "the result is `.f32` where the addend is" if (m.dtype, m.ctype) == ("f16", "f32") else None


FOUR = operands(copies=4)
EQUAL: Slots = {"types": FP8_MATRICES, "where": same_result}
# ptxas does not count the registers of B in this shape.
EQUAL_PADDED: Slots = {"types": FP8_MATRICES | {"b": "1 b32 special padded reg"}, "where": same_result}


def layouts_of(m: Modifiers) -> FragmentLayouts:
    """Which lane holds which element of the four matrices."""
    return fragments(m.shape, m.atype, m.btype, m.ctype, m.dtype, alayout=m.alayout, blayout=m.blayout)


# Four independent 8x8 products a warp, one by each group of eight lanes.
@form(DENSE, shape="m8n8k4", **ANY_LAYOUT, **HALF, types=FOUR, where=no_narrower_result, since="6.4 sm_70")
@form(DENSE, shape="m16n8k8", **ROW_COL, **HALF, types=MATRICES, where=same_result, since="6.5 sm_75")
@form(DENSE, shape="m16n8k16", **ROW_COL, **HALF, types=MATRICES, where=same_result, since="7.0 sm_80")
@form(DENSE, shape="m16n8k8 m16n8k16", **ROW_COL, **BFLOAT, types=MATRICES, since="7.0 sm_80")
@form(DENSE, shape="m16n8k4 m16n8k8", **ROW_COL, **TF32, types=MATRICES, since="7.0 sm_80")
@form(
    DOUBLE,
    shape=("m8n8k4", ("m16n8k4 m16n8k8 m16n8k16", "7.8 sm_90")),
    rnd="rn rz rm rp",
    **ROW_COL,
    **F64,
    types=MATRICES,
    since="7.0 sm_80",
)
@form(INTEGER, shape="m8n8k16", **ROW_COL, **BYTES, types=MATRICES | INTEGERS, since="6.5 sm_75")
@form(INTEGER, shape="m16n8k16 m16n8k32", **ROW_COL, **BYTES, types=MATRICES, since="7.0 sm_80")
@form(INTEGER, shape="m8n8k32", **ROW_COL, **NIBBLES, types=MATRICES, since="6.5 sm_75")
@form(INTEGER, shape="m16n8k32 m16n8k64", **ROW_COL, **NIBBLES, types=MATRICES, since="7.0 sm_80")
@form(
    SINGLE_BIT,
    shape=("m8n8k128", ("m16n8k128 m16n8k256", "7.0 sm_80")),
    **ROW_COL,
    dtype="s32",
    atype="b1",
    btype="b1",
    ctype="s32",
    operation=("xor", ("and", "7.1 sm_80")),
    types=operands(a="", c=""),
    since="7.0 sm_75",
)
@form(DENSE, shape="m16n8k32", **ROW_COL, dtype="f32", **FP8, ctype="f32", types=FP8_MATRICES, since="8.4 sm_89")
@form(DENSE, shape="m16n8k32", **ROW_COL, dtype="f16", **FP8, ctype="f16", types=FP8_MATRICES, since="8.7 sm_89")
@form(DENSE, shape="m16n8k16", **ROW_COL, **FP8, **ANY_HALF, **EQUAL_PADDED, since="8.7 sm_89")
@form(KIND, kind=F8F6F4, shape="m16n8k32", **ROW_COL, **NARROW_A, **ANY_HALF, **EQUAL, since=FAMILY_120)
@form(KIND, kind=F8F6F4, shape="m16n8k32", **ROW_COL, **NARROW_B, **ANY_HALF, **EQUAL, since=FAMILY_120)
# ptxas takes the kind for fp8 alone in more places than the manual says.
@form(KIND, kind=F8F6F4, shape="m16n8k32", **ROW_COL, dtype="f32", **FP8, ctype="f32", types=FP8_MATRICES, since=FIRST)
@form(KIND, kind=F8F6F4, shape="m16n8k32", **ROW_COL, dtype="f16", **FP8, ctype="f16", types=FP8_MATRICES, since=LATER)
@form(KIND, kind=F8F6F4, shape="m16n8k16", **ROW_COL, **FP8, **ANY_HALF, **EQUAL_PADDED, since=LATER)
@computes("mma")
@holds(lambda m: held_by_mma(layouts_of(m), m.atype, m.btype, m.ctype, m.dtype))
def mma(k: Machine, m: Modifiers, a: Vector, b: Vector, c: Vector) -> Vector:
    """Multiply matrix `a` by `b` and add `c`; each lane of the warp holds its fragments of them in registers."""
    return collect(k, mma_of(m, layouts_of(m), a, b, c), a, b, c)


@form(DENSE, shape="m8n8k4", **ANY_LAYOUT, **BFLOAT, types=FOUR, since="7.0 sm_80")
@form(DENSE, shape="m8n8k4", **ANY_LAYOUT, **TF32, types=FOUR, since="7.0 sm_80")
@unknown("it is not in the manual, and on an H200 no product comes out of it")
@computes("mma")
def mma_undefined() -> None:
    """Multiply four pairs of 8x4 and 4x8 matrices of bf16 or tf32: not in the manual."""
