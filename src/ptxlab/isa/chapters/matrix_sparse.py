"""Multiplication of small matrices by a warp where half of A is zero: mma.sp (PTX ISA 9.7.14.6).

A is stored without its zeros, so it takes half the registers; `e` says where the stored elements belong, and `f` which
lanes of four supply `e`. With `.sp::ordered_metadata` the indices in `e` must ascend, which is fast everywhere.
"""

from ..form import Modifiers, Slots, Specification, form
from ..held import held_by_mma, holds
from ..machine import Machine, Value, Vector
from ..operation import computes
from ..units.layouts import FragmentLayouts, fragments
from ..units.warp_mma import collect, mma_of
from .matrix import (
    ANY_HALF,
    BFLOAT,
    BYTES,
    F8F6F4,
    FAMILY_120,
    FIRST,
    FP8,
    HALF,
    NARROW_A,
    NARROW_B,
    NIBBLES,
    ROW_COL,
    TF32,
    held,
    same_result,
)

SPARSE = "mma.variant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c, e, f"
KIND = "mma.variant.sync.aligned.shape.alayout.blayout.kind.dtype.atype.btype.ctype d, a, b, c, e, f"
INTEGER = "mma.variant.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype d, a, b, c, e, f"
ANY: Slots = {"variant": ("sp", ("sp::ordered_metadata", "8.5 sm_80")), **ROW_COL}
ORDERED: Slots = {"variant": "sp::ordered_metadata", **ROW_COL}


def operands(
    selector: str, d: str = "sink", a: str = "special", c: str = "special", e: str = "b32 reg single padded predicate"
) -> dict[str, Specification]:
    """The operands of a sparse multiplication; `selector` is the range of `f`."""
    return {
        "d": held("d", d),
        "a": held("a", a, copies=0.5),
        "b": held("b", a),
        "c": held("c", c),
        "e": e,
        "f": f"imm({selector})",
    }


ANY_BITS = "special b32"  # ptxas checks only the width of bf16 and tf32 here
# ptxas takes selectors 0 to 3 for f16 at m16n8k32, where the manual says 0 and 1.
FP8_OPERANDS = operands("0..0", c="", e="u32 reg")
KIND_OPERANDS = operands("0..0", c="")
EQUAL: Slots = {"types": KIND_OPERANDS, "where": same_result}


def layouts_of(m: Modifiers) -> FragmentLayouts:
    """Which lane holds which element of the four matrices."""
    return fragments(m.shape, m.atype, m.btype, m.ctype, m.dtype, sparse=True)


@form(SPARSE, shape="m16n8k16 m16n8k32", **ANY, **HALF, types=operands("0..3"), where=same_result, since="7.1 sm_80")
@form(SPARSE, shape="m16n8k16", **ANY, **BFLOAT, types=operands("0..3", a=ANY_BITS), since="7.1 sm_80")
@form(SPARSE, shape="m16n8k32", **ANY, **BFLOAT, types=operands("0..1", a=ANY_BITS), since="7.1 sm_80")
@form(SPARSE, shape="m16n8k8", **ANY, **TF32, types=operands("0..3", a=ANY_BITS), since="7.1 sm_80")
@form(SPARSE, shape="m16n8k16", **ANY, **TF32, types=operands("0..1", a=ANY_BITS), since="7.1 sm_80")
@form(INTEGER, shape="m16n8k32", **ANY, **BYTES, types=operands("0..1"), since="7.1 sm_80")
@form(INTEGER, shape="m16n8k64", **ANY, **BYTES, types=operands("0..0"), since="7.1 sm_80")
@form(INTEGER, shape="m16n8k64", **ANY, **NIBBLES, types=operands("0..1", e="b32 reg"), since="7.1 sm_80")
@form(INTEGER, shape="m16n8k128", **ANY, **NIBBLES, types=operands("0..0", e="b32 reg"), since="7.1 sm_80")
@form(SPARSE, shape="m16n8k64", **ANY, dtype="f32", **FP8, ctype="f32", types=FP8_OPERANDS, since="8.4 sm_89")
@form(SPARSE, shape="m16n8k64", **ORDERED, dtype="f16", **FP8, ctype="f16", types=FP8_OPERANDS, since=FAMILY_120)
@form(KIND, kind=F8F6F4, shape="m16n8k64", **ORDERED, **NARROW_A, **ANY_HALF, **EQUAL, since=FAMILY_120)
@form(KIND, kind=F8F6F4, shape="m16n8k64", **ORDERED, **NARROW_B, **ANY_HALF, **EQUAL, since=FAMILY_120)
@form(
    KIND,
    kind=F8F6F4,
    shape="m16n8k64",
    **ORDERED,
    dtype="f16",
    **FP8,
    ctype="f16",
    types=KIND_OPERANDS,
    since=FAMILY_120,
)
# ptxas takes the kind for fp8 alone in more places than the manual says.
@form(KIND, kind=F8F6F4, shape="m16n8k64", **ORDERED, dtype="f32", **FP8, ctype="f32", types=KIND_OPERANDS, since=FIRST)
@computes("mma")
@holds(lambda m: held_by_mma(layouts_of(m), m.atype, m.btype, m.ctype, m.dtype, sparse=True))
def mma_sp(k: Machine, m: Modifiers, a: Vector, b: Vector, c: Vector, e: Value, f: int) -> Vector:
    """Multiply `a`, half of whose elements are zero and not stored, by `b` and add `c`; `e` says which are stored."""
    return collect(k, mma_of(m, layouts_of(m), a, b, c, sparse=(m.shape, f)), a, b, c, e)
