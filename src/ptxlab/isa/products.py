"""What `mma`, `mma.sp` and `wmma.mma` hand to the function that multiplies: layouts, formats, the model of the target.

A `Product` is the same for all instructions of one spelling, so it is made once; `collect` runs it on registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ptxlab.numbers.parameters import ROUNDING
from ptxlab.numbers.tensor_core import F16, F32, F32_SHORT, MANTISSA_BITS, NUMBER_OF
from ptxlab.numbers.tensor_core_models import Model, Step, model_of

from .form import Modifiers
from .fragment import ELEMENT_BITS
from .layouts import Fragments, kept_of, metadata
from .machine import Machine, Value
from .multiplication import (
    multiply_bits,
    multiply_doubles,
    multiply_floats,
    multiply_integers,
    multiply_quarters,
)
from .multiplication_scaled import UE4M3, UE8M0, multiply_scaled
from .targets import target_named

Vector = tuple[Value, ...]
Statics = tuple[int | tuple[int, ...], ...]
ALL_LANES = 0xFFFFFFFF
UNUSED = (0,)  # a table that the function does not look at


@dataclass(frozen=True)
class Product:
    """A multiplication: its layouts, the registers of each operand, and what the modifiers say."""

    fragments: Fragments
    registers: tuple[int, int, int]
    """32-bit registers of A, B and C: where in the mail the next one begins."""
    atype: str
    btype: str
    ctype: str
    dtype: str
    saturate: bool = False
    rounding: str = "rn"
    conjunction: bool = False
    sparse: tuple[str, int] | None = None
    """The shape, if A is stored without its zeros, and which lanes supply metadata. They lie in a register after C."""
    bits: int | None = None
    """Bits an element takes, where that is not what its type says."""
    scale: tuple[int, str] | None = None
    """Blocks in a row, and the type of scale factors, whose registers are the last ones."""
    longest_step: int | None = None
    """At most so many products in a step, where an instruction is done by several of a smaller shape."""


def collect(k: Machine, product: Product, *operands: Vector | Value) -> Vector:
    """Multiply the matrices that the warp holds: A, B, C, then what a sparse or scaled product needs besides."""
    inputs = [value for operand in operands for value in (operand if isinstance(operand, tuple) else (operand,))]
    function, statics = plan(product, target_named(k.target).number)
    width = 64 if product.dtype == "f64" else 32
    count = product.fragments.d.registers * 32 // width
    return k.collect(function, ALL_LANES, inputs, [f"b{width}"] * count, statics=statics, aligned=True)


def words(values: Vector | Value) -> int:
    """The 32-bit registers of an operand."""
    parts = values if isinstance(values, tuple) else (values,)
    return sum(-(-part.type.width // 32) for part in parts)


def product_of(m: Modifiers, fragments: Fragments, a: Vector, b: Vector, c: Vector, **more: Any) -> Product:
    """The product that modifiers and operands ask for; without `.atype` the multiplicands are f16."""
    return Product(
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


@cache
def plan(product: Product, target: int) -> tuple[Callable[..., Any], Statics]:
    """The function that multiplies, and its constants."""
    model = model_of(target)
    if product.scale is not None:
        return multiply_scaled, _scaled(product, model)
    rows, columns, depth = _extents(product)
    if product.atype == "f64":
        return multiply_doubles, (rows, columns, depth, ROUNDING[product.rounding], *_places(product))
    if product.atype == "b1":
        return multiply_bits, (rows, columns, depth, int(product.conjunction), *_places(product))
    if product.atype in ("s8", "u8", "s4", "u4"):
        return multiply_integers, _integers(product)
    if product.fragments.a.copies == 4 and target >= 80:
        return multiply_quarters, (ELEMENT_BITS[product.ctype], ELEMENT_BITS[product.dtype], *_places(product))
    return multiply_floats, _floats(product, model)


def _extents(product: Product) -> tuple[int, int, int]:
    b = product.fragments.b
    return product.fragments.a.rows, b.rows, b.columns


def _places(product: Product, chunk: int = 0) -> Statics:
    """The places of A, B, C and D; with a `chunk`, the columns of A and B as `Layout.halves` orders them."""
    a, b, c, d = product.fragments.a, product.fragments.b, product.fragments.c, product.fragments.d
    if chunk:
        a, b = a.halves(chunk), b.halves(2 * chunk if product.sparse else chunk)
    first, second, third = product.registers
    return a.places, b.after(first), c.after(first + second), d.after(first + second + third + _more(product))


def _more(product: Product) -> int:
    """How many registers come after C: one of metadata, six for scale factors."""
    return (1 if product.sparse else 0) + (6 if product.scale else 0)


def _choices(product: Product, chunk: int = 0) -> tuple[int, tuple[int, ...]]:
    """For a sparse A: how many elements of a chunk it keeps, and the places of metadata."""
    if product.sparse is None:
        return 0, UNUSED
    shape, selector = product.sparse
    layout = metadata(shape, product.atype, selector, product.bits)
    places = (layout.halves(chunk) if chunk else layout).after(sum(product.registers))
    return kept_of(layout_bits(product)), places


def layout_bits(product: Product) -> int:
    """Bits an element of A takes in a register."""
    return product.bits or ELEMENT_BITS[product.atype]


def _integers(product: Product) -> Statics:
    signs = (int(product.atype[0] == "s"), int(product.btype[0] == "s"))
    kept, choices = _choices(product)
    return (
        *_extents(product),
        layout_bits(product),
        *signs,
        int(product.saturate),
        kept,
        *_places(product),
        choices,
    )


def _step(product: Product, model: Model) -> Step:
    kinds = {"f16": model.half, "bf16": model.half, "tf32": model.tf32}
    step = kinds.get(product.atype, model.fp8)
    return replace(step, products=min(step.products, product.longest_step or step.products))


def _floats(product: Product, model: Model) -> Statics:
    """A model that makes fp8 f16 multiplies the low halves of registers first, then the high ones, and adds C last."""
    step = _step(product, model)
    rows, columns, depth = _extents(product)
    chunk = 2 if step.as_f16 else 0
    suffix = " as f16" if step.as_f16 else ""
    a_format, b_format = NUMBER_OF[product.atype + suffix], NUMBER_OF[product.btype + suffix]
    all_f16 = product.ctype == product.dtype == "f16"
    result = F16 if all_f16 else F32_SHORT if step.short else F32
    products = step.products * 2 if product.sparse else step.products
    kept, choices = _choices(product, chunk)
    return (
        rows,
        columns,
        depth,
        product.fragments.a.copies,
        a_format,
        b_format,
        ELEMENT_BITS[product.ctype],
        ELEMENT_BITS[product.dtype],
        result,
        depth // 2 if step.as_f16 else min(products, depth),
        step.fraction,
        step.fraction - MANTISSA_BITS[a_format] - MANTISSA_BITS[b_format],
        int(step.as_f16),
        kept,
        *_places(product, chunk),
        choices,
    )


def _scaled(product: Product, model: Model) -> Statics:
    assert product.scale is not None
    blocks, type = product.scale
    a_format, b_format = NUMBER_OF[product.atype], NUMBER_OF[product.btype]
    kept, choices = _choices(product)
    return (
        product.fragments.b.columns,
        a_format,
        b_format,
        model.fp8.fraction,
        model.fp8.fraction - MANTISSA_BITS[a_format] - MANTISSA_BITS[b_format],
        kept,
        blocks,
        UE4M3 if type == "ue4m3" else UE8M0,
        sum(product.registers) + (1 if product.sparse else 0),
        *_places(product),
        choices,
    )
