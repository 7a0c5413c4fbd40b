"""Asynchronous multiplication of matrices by a warpgroup: wgmma (PTX ISA 9.7.15).

B, and A unless it is in registers, are in shared memory, given by a 64-bit descriptor. Each of the four warps
holds a quarter of D. One form a row of the manual's table for A by descriptor (`a_desc`), one for A in registers.
ptxas does not ask for `.aligned`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..form import F, Modifiers, Slots, Specification, form
from ..held import Held, extent, holds
from ..machine import Machine, Value, Vector
from ..units.descriptor import K_MAJOR, MN_MAJOR
from ..units.fragment import registers
from ..units.rearrangement import converge
from ..units.warp_mma import ALL_LANES
from ..units.warpgroup import WarpgroupMultiplication, collect
from ..units.warpgroup_multiplication import IN_REGISTERS

DENSE = "wgmma.mma_async.sync{.aligned}.shape.dtype.atype.btype"
INTEGER = "wgmma.mma_async.sync{.aligned}.shape{.satfinite}.dtype.atype.btype"
SINGLE_BIT = "wgmma.mma_async.sync{.aligned}.shape.dtype.atype.btype.and.popc"
SPARSE = "wgmma.mma_async.sp.sync{.aligned}.shape.dtype.atype.btype"
SPARSE_INTEGER = "wgmma.mma_async.sp.sync{.aligned}.shape{.satfinite}.dtype.atype.btype"

SHARED = "d, a_desc, b_desc, {!}scale_d"
REGISTERS = "d, a, b_desc, {!}scale_d"
SPARSE_SHARED = "d, a_desc, b_desc, sp_meta, sp_sel, {!}scale_d"
SPARSE_REGISTERS = "d, a, b_desc, sp_meta, sp_sel, {!}scale_d"
SCALES = ", scale_a, scale_b"
TRANSPOSE_BOTH = ", scale_a, scale_b, trans_a, trans_b"
TRANSPOSE_B = ", scale_a, scale_b, trans_b"

HALF: Slots = {"dtype": "f16 f32", "atype": "f16", "btype": "f16"}
BFLOAT: Slots = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
TF32: Slots = {"dtype": "f32", "atype": "tf32", "btype": "tf32"}
FP8: Slots = {"dtype": "f16 f32", "atype": "e4m3 e5m2", "btype": "e4m3 e5m2"}
SIGNED: Slots = {"dtype": "s32", "atype": "s8", "btype": ("s8", ("u8", "8.4 sm_90"))}
UNSIGNED: Slots = {"dtype": "s32", "atype": "u8", "btype": ("u8", ("s8", "8.4 sm_90"))}
BITS: Slots = {"dtype": "s32", "atype": "b1", "btype": "b1"}

COLUMNS = range(8, 257, 8)
INTEGER_COLUMNS = (8, 16, 24, *range(32, 257, 16))

OPERANDS: dict[str, Specification] = {
    "d": lambda m: registers("d", m.shape, m.dtype, copies=0.25),
    # ptxas takes any 32 bits for integers, .b32 and .f16x2 for all floats
    "a": lambda m: "4 b32 special reg" if m.dtype == "s32" else "4 f16x2 special",
    "a_desc": "u64",
    "b_desc": "u64",
    "sp_meta": "b32 reg single padded predicate",
    "scale_d": "pred within(0..1)",
    "scale_a": "imm(-1|1)",
    "scale_b": "imm(-1|1)",
    "trans_a": "imm(0..1)",
    "trans_b": "imm(0..1)",
}


def multiply(opcode: str, operands: str, *, k: int, selector: str = "", **slots: Any) -> Callable[[F], F]:
    """One syntax line of wgmma.mma_async: `k` products for each element of D, for every number of columns."""
    columns: Sequence[int] = INTEGER_COLUMNS if slots["dtype"] == "s32" else COLUMNS
    known = OPERANDS | {"sp_sel": f"imm({selector})"}
    return form(
        f"{opcode} {operands}",
        shape=" ".join(f"m64n{n}k{k}" for n in columns),
        types={name: known[name] for name in operands.replace("{!}", "").split(", ")},
        updates="d",
        name="wgmma.mma_async",  # to ptxas `.sp` is a modifier
        since="8.2 sm_90a" if selector else "8.0 sm_90a",
        **slots,
    )


def quarter(m: Modifiers) -> Iterator[Held]:
    """What one warp holds; B, and A unless it is in registers, are in shared memory."""
    selector = 0 if m.sp else None
    mma = WarpgroupMultiplication(m.shape, m.atype, m.btype, m.dtype, IN_REGISTERS, K_MAJOR, selector=selector)
    a, d = mma.fragments
    rows = "rows 0 to 15, of the first warp; the next three hold 16 rows each in the same way"
    yield Held("a", f"A in registers, {extent(a)} {m.atype}: {rows}", a)
    yield Held("d", f"D, {extent(d)} {m.dtype}: {rows}", d)


@multiply(DENSE, SHARED + TRANSPOSE_BOTH, k=16, **HALF)
@multiply(DENSE, REGISTERS + TRANSPOSE_B, k=16, **HALF)
@multiply(DENSE, SHARED + TRANSPOSE_BOTH, k=16, **BFLOAT)
@multiply(DENSE, REGISTERS + TRANSPOSE_B, k=16, **BFLOAT)
@multiply(DENSE, SHARED + SCALES, k=8, **TF32)
@multiply(DENSE, REGISTERS + SCALES, k=8, **TF32)
@multiply(DENSE, SHARED + SCALES, k=32, **FP8)
@multiply(DENSE, REGISTERS + SCALES, k=32, **FP8)
@multiply(INTEGER, SHARED, k=32, **SIGNED)
@multiply(INTEGER, SHARED, k=32, **UNSIGNED)
@multiply(INTEGER, REGISTERS, k=32, **SIGNED)
@multiply(INTEGER, REGISTERS, k=32, **UNSIGNED)
@multiply(SINGLE_BIT, SHARED, k=256, **BITS)
@multiply(SINGLE_BIT, REGISTERS, k=256, **BITS)
@multiply(SPARSE, SPARSE_SHARED + TRANSPOSE_BOTH, k=32, selector="0..1", **HALF)
@multiply(SPARSE, SPARSE_REGISTERS + TRANSPOSE_B, k=32, selector="0..1", **HALF)
@multiply(SPARSE, SPARSE_SHARED + TRANSPOSE_BOTH, k=32, selector="0..1", **BFLOAT)
@multiply(SPARSE, SPARSE_REGISTERS + TRANSPOSE_B, k=32, selector="0..1", **BFLOAT)
@multiply(SPARSE, SPARSE_SHARED + SCALES, k=16, selector="0..1", **TF32)
@multiply(SPARSE, SPARSE_REGISTERS + SCALES, k=16, selector="0..1", **TF32)
@multiply(SPARSE, SPARSE_SHARED + SCALES, k=64, selector="0..0", **FP8)
@multiply(SPARSE, SPARSE_REGISTERS + SCALES, k=64, selector="0..0", **FP8)
@multiply(SPARSE_INTEGER, SPARSE_SHARED, k=64, selector="0..0", **SIGNED)
@multiply(SPARSE_INTEGER, SPARSE_SHARED, k=64, selector="0..0", **UNSIGNED)
@multiply(SPARSE_INTEGER, SPARSE_REGISTERS, k=64, selector="0..0", **SIGNED)
@multiply(SPARSE_INTEGER, SPARSE_REGISTERS, k=64, selector="0..0", **UNSIGNED)
@holds(quarter)
def wgmma_mma_async(
    k: Machine,
    m: Modifiers,
    d: Vector,
    a: Vector | None,
    a_desc: Value | None,
    b_desc: Value,
    sp_meta: Value | None,
    sp_sel: int | None,
    scale_d: Value,
    scale_a: int | None,
    scale_b: int | None,
    trans_a: int | None,
    trans_b: int | None,
) -> Vector:
    """Start the product of A and B, added to `d` if `scale_d` holds; with `.sp` only half of A is stored."""
    mma = WarpgroupMultiplication(
        m.shape,
        m.atype,
        m.btype,
        m.dtype,
        a_major=IN_REGISTERS if a_desc is None else MN_MAJOR if trans_a else K_MAJOR,
        b_major=MN_MAJOR if trans_b else K_MAJOR,
        saturate=bool(m.satfinite),
        negate_a=scale_a == -1,
        negate_b=scale_b == -1,
        selector=sp_sel,
    )
    return collect(k, mma, d, a, a_desc, b_desc, scale_d, sp_meta)


@form("wgmma.fence.sync{.aligned}", since="8.0 sm_90a")
def wgmma_fence(k: Machine, m: Modifiers) -> None:
    """Order this warp's earlier accesses to registers before the wgmma.mma_async that follow."""
    k.wgmma.fence()
    k.collect(converge, ALL_LANES, (), (), aligned=True)


@form("wgmma.commit_group.sync{.aligned}", since="8.0 sm_90a")
def wgmma_commit_group(k: Machine, m: Modifiers) -> None:
    """Close the group of all wgmma.mma_async that this warp started since the last group."""
    k.wgmma.compare()
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.wgmma.commit()


@form("wgmma.wait_group.sync{.aligned} n", types={"n": "imm(0..2147483647)"}, since="8.0 sm_90a")
def wgmma_wait_group(k: Machine, m: Modifiers, n: int) -> None:
    """Wait until at most `n` of the latest groups are unfinished."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.wgmma.wait(n)
