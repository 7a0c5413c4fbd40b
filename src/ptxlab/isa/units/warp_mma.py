"""What `mma`, `mma.sp` and `wmma.mma` hand to the function that multiplies: layouts, formats, the model of the target.

A `WarpMma` is the same for all instructions of one spelling, so it is made once; `collect` runs it on registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.native import constants
from ptxlab.numbers.parameters import ROUNDING
from ptxlab.numbers.tensor_core import F16, F32, F32_SHORT, MANTISSA_BITS, NUMBER_OF, Accumulation
from ptxlab.numbers.tensor_core_models import Addition, Model, model_of

from ..form import Modifiers
from ..machine import Machine, Operand, Vector, elements
from ..targets import target_named
from ..undefined import following_mma
from .fragment import ELEMENT_BITS
from .layouts import FragmentLayouts, kept_of, metadata
from .multiplication import (
    BitMma,
    DoubleMma,
    ElementPositions,
    FloatMma,
    IntegerMma,
    multiply_bits,
    multiply_doubles,
    multiply_floats,
    multiply_integers,
    multiply_quarters,
)
from .multiplication_scaled import UE4M3, UE8M0, ScaledMma, multiply_scaled

if TYPE_CHECKING:
    from ..machine import Statics

ALL_LANES = 0xFFFFFFFF
UNUSED = (0,)  # a table that the function does not read


@dataclass(frozen=True)
class WarpMma:
    """A multiplication: its layouts, the registers of each operand, and what the modifiers say."""

    fragments: FragmentLayouts
    registers: tuple[int, int, int]
    """32-bit registers of A, B and C: where the next one starts in the lane exchange buffer."""
    atype: str
    btype: str
    ctype: str
    dtype: str
    saturate: bool = False
    rounding: str = "rn"
    conjunction: bool = False
    sparse: tuple[str, int] | None = None
    """The shape, if A is stored without its zeros, and which lanes supply metadata. They are in a register after C."""
    bits: int | None = None
    """Bits an element takes, where that is not what its type says."""
    scale: tuple[int, str] | None = None
    """Blocks in a row, and the type of scale factors, whose registers are the last ones."""
    longest_step: int | None = None
    """At most so many products in a step, where an instruction is done by several of a smaller shape."""


def collect(k: Machine, mma: WarpMma, *operands: Operand) -> Vector:
    """Multiply the matrices that the warp holds: A, B, C, then what a sparse or scaled MMA needs besides."""
    inputs = [value for operand in operands for value in elements(operand)]
    function, statics = plan(mma, target_named(k.target).number)
    width = 64 if mma.dtype == "f64" else 32
    count = mma.fragments.d.registers * 32 // width
    following = _following(mma.fragments, mma.registers, words(tuple(inputs)))
    results = [f"b{width}"] * count
    return k.collect(function, ALL_LANES, inputs, results, statics=statics, aligned=True, following=following)


def words(values: Operand) -> int:
    """The 32-bit registers of an operand."""
    return sum(-(-part.type.width // 32) for part in elements(values))


def mma_of(m: Modifiers, fragments: FragmentLayouts, a: Vector, b: Vector, c: Vector, **more: Any) -> WarpMma:
    """The MMA that modifiers and operands specify; without `.atype` the multiplicands are f16."""
    return WarpMma(
        fragments,
        (words(a), words(b), words(c)),
        m.atype or "f16",
        m.btype or "f16",
        m.ctype,
        m.dtype,
        saturate=bool(m.satfinite),
        rounding=m.rnd or "rn",
        conjunction=m.operation == "and",
        **more,
    )


_following = cache(following_mma)


@cache
def plan(mma: WarpMma, target: int) -> tuple[Callable[..., Any], Statics]:
    """The function that multiplies, and its constants."""
    model = model_of(target)
    if mma.scale is not None:
        return multiply_scaled, (_scaled(mma, model),)
    rows, columns, depth = _extents(mma)
    if mma.atype == "f64":
        rounding = ROUNDING[mma.rounding]
        return multiply_doubles, (DoubleMma(rows, columns, depth, rounding, _positions(mma)),)
    if mma.atype == "b1":
        return multiply_bits, (BitMma(rows, columns, depth, int(mma.conjunction), _positions(mma)),)
    if mma.atype in ("s8", "u8", "s4", "u4"):
        return multiply_integers, (_integers(mma),)
    if mma.fragments.a.copies == 4 and target >= 80:
        return multiply_quarters, (ELEMENT_BITS[mma.ctype], ELEMENT_BITS[mma.dtype], _positions(mma))
    return multiply_floats, (_floats(mma, model),)


def _extents(mma: WarpMma) -> tuple[int, int, int]:
    b = mma.fragments.b
    return mma.fragments.a.rows, b.rows, b.columns


def _positions(mma: WarpMma, chunk: int = 0, by_columns: bool = False) -> ElementPositions:
    """The positions of all elements; with a `chunk`, the columns of A and B as `Layout.halves` orders them.

    Those of A, C and D are row after row, or else `by_columns`.
    """
    a, b, c, d = mma.fragments.a, mma.fragments.b, mma.fragments.c, mma.fragments.d
    if chunk:
        a, b = a.halves(chunk), b.halves(2 * chunk if mma.sparse else chunk)
    if by_columns:
        a, c, d = a.by_columns, c.by_columns, d.by_columns
    first, second, third = mma.registers
    kept, choices = _choices(mma, chunk, by_columns)
    return ElementPositions(
        a=constants(a.positions),
        b=constants(b.after(first)),
        c=constants(c.after(first + second)),
        d=constants(d.after(first + second + third + _more(mma))),
        kept=kept,
        choices=constants(choices),
    )


def _more(mma: WarpMma) -> int:
    """How many registers come after C: one of metadata, six for scale factors."""
    return (1 if mma.sparse else 0) + (6 if mma.scale else 0)


def _choices(mma: WarpMma, chunk: int, by_columns: bool) -> tuple[int, tuple[int, ...]]:
    """For a sparse A: how many elements of a chunk it keeps, and the positions of metadata."""
    if mma.sparse is None:
        return 0, UNUSED
    shape, selector = mma.sparse
    layout = metadata(shape, mma.atype, selector, mma.bits)
    layout = layout.halves(chunk) if chunk else layout
    positions = (layout.by_columns if by_columns else layout).after(sum(mma.registers))
    return kept_of(layout_bits(mma)), positions


def layout_bits(mma: WarpMma) -> int:
    """Bits an element of A takes in a register."""
    return mma.bits or ELEMENT_BITS[mma.atype]


def _integers(mma: WarpMma) -> IntegerMma:
    rows, columns, depth = _extents(mma)
    return IntegerMma(
        rows=rows,
        columns=columns,
        depth=depth,
        bits=layout_bits(mma),
        a_signed=int(mma.atype[0] == "s"),
        b_signed=int(mma.btype[0] == "s"),
        saturate=int(mma.saturate),
        positions=_positions(mma),
    )


def _step(mma: WarpMma, model: Model) -> Addition:
    kinds = {"f16": model.half, "bf16": model.half, "tf32": model.tf32}
    step = kinds.get(mma.atype, model.fp8)
    return replace(step, products=min(step.products, mma.longest_step or step.products))


def accumulation(fraction: int, a_format: int, b_format: int, result: int) -> Accumulation:
    """How products of two formats are added up."""
    lacking = fraction - MANTISSA_BITS[a_format] - MANTISSA_BITS[b_format]
    return Accumulation(fraction=fraction, lacking=lacking, result=result)


def _floats(mma: WarpMma, model: Model) -> FloatMma:
    """A model that makes fp8 f16 multiplies the low halves of registers first, then the high ones, and adds C last."""
    step = _step(mma, model)
    rows, columns, depth = _extents(mma)
    suffix = " as f16" if step.as_f16 else ""
    a_format, b_format = NUMBER_OF[mma.atype + suffix], NUMBER_OF[mma.btype + suffix]
    all_f16 = mma.ctype == mma.dtype == "f16"
    result = F16 if all_f16 else F32_SHORT if step.short else F32
    products = step.products * 2 if mma.sparse else step.products
    return FloatMma(
        rows=rows,
        columns=columns,
        depth=depth,
        copies=mma.fragments.a.copies,
        a_format=a_format,
        b_format=b_format,
        c_bits=ELEMENT_BITS[mma.ctype],
        d_bits=ELEMENT_BITS[mma.dtype],
        step=depth // 2 if step.as_f16 else min(products, depth),
        late=int(step.as_f16),
        accumulation=accumulation(step.fraction, a_format, b_format, result),
        positions=_positions(mma, 2 if step.as_f16 else 0, by_columns=True),
    )


def _scaled(mma: WarpMma, model: Model) -> ScaledMma:
    assert mma.scale is not None
    blocks, type = mma.scale
    a_format, b_format = NUMBER_OF[mma.atype], NUMBER_OF[mma.btype]
    return ScaledMma(
        depth=mma.fragments.b.columns,
        a_format=a_format,
        b_format=b_format,
        blocks=blocks,
        scale_format=UE4M3 if type == "ue4m3" else UE8M0,
        scales=sum(mma.registers) + (1 if mma.sparse else 0),
        accumulation=accumulation(model.fp8.fraction, a_format, b_format, F32),
        positions=_positions(mma, by_columns=True),
    )
