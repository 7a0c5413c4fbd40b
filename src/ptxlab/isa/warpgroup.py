"""What `wgmma` hands to the function that multiplies: the part of a warp, layouts, formats, the model of tensor cores.

Each warp of a warpgroup does its own quarter, sixteen rows of A and D, with all of B. Their fragments are those of
`mma` with sixteen rows and as many columns (CUTLASS: `mma_traits_sm90_gmma.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.numbers.tensor_core import F16, F32, F32_SHORT, MANTISSA_BITS, NUMBER_OF
from ptxlab.numbers.tensor_core_models import WARPGROUP

from .asynchronous import MatrixChunks
from .descriptor import CHUNK, K_MAJOR, MN_MAJOR
from .fragment import ELEMENT_BITS, extents
from .layouts import Layout, accumulator, kept_of, metadata, multiplicand, width
from .machine import Machine, Value
from .products import ALL_LANES, UNUSED, Statics, Vector
from .warpgroup_multiplication import (
    IN_REGISTERS,
    ROWS,
    multiply_shared_bits,
    multiply_shared_floats,
    multiply_shared_integers,
)

HEAD = 6  # words between the accumulators and A: descriptor of A, number of the warp, descriptor of B, `scale_d`


@dataclass(frozen=True)
class Product:
    """A multiplication by a warpgroup. `a_major` and `b_major` are as `descriptor.py` and `IN_REGISTERS` have them."""

    shape: str
    atype: str
    btype: str
    dtype: str
    a_major: int
    b_major: int
    saturate: bool = False
    negate_a: bool = False
    negate_b: bool = False
    selector: int | None = None
    """Which lanes supply metadata, if A is sparse."""

    @property
    def bits(self) -> int:
        """Bits of an element of A or B."""
        return ELEMENT_BITS[self.atype]

    @property
    def depth(self) -> int:
        """The products for each element of D, those with zeros that are not stored included."""
        return extents(self.shape)[2]

    @property
    def stored(self) -> int:
        """The elements that are stored of a row of A."""
        return self.depth if self.selector is None else self.depth // 2

    @property
    def columns(self) -> int:
        """The columns of B and D."""
        return extents(self.shape)[1]

    @property
    def fragments(self) -> tuple[Layout, Layout]:
        """The layouts of A and D in the registers of one warp."""
        return multiplicand(ROWS, self.stored, self.atype), accumulator(ROWS, self.columns, self.dtype)


def collect(
    k: Machine, product: Product, d: Vector, a: Vector | None, a_desc: Value | None, b_desc: Value, scale_d: Value,
    metadata: Value | None,
) -> Vector:  # fmt: skip
    """Multiply what the descriptors name, and add it to `d`."""
    read(k, product, a_desc, b_desc)
    nowhere = k.constant("u64", 0)
    inputs = [*d, nowhere if a_desc is None else a_desc, k.warp, b_desc, scale_d, *(a or ())]
    if metadata is not None:
        inputs.append(metadata)
    function, statics = plan(product, len(d))
    return k.collect(function, ALL_LANES, inputs, ["b32"] * len(d), statics=statics, aligned=True, reads_shared=True)


def read(k: Machine, product: Product, a_desc: Value | None, b_desc: Value) -> None:
    """Look at the memory that a warp reads: its own rows of A, and all of B."""
    each = CHUNK * 8 // product.bits  # elements of a chunk
    if a_desc is not None and product.a_major == K_MAJOR:
        k.wgmma.read(
            MatrixChunks("a", a_desc, K_MAJOR, product.bits, (k.warp & 3) * ROWS, ROWS, 0, product.stored // each)
        )
    elif a_desc is not None:
        chunks = ROWS // each
        k.wgmma.read(
            MatrixChunks("a", a_desc, MN_MAJOR, product.bits, 0, product.stored, (k.warp & 3) * chunks, chunks)
        )
    if product.b_major == K_MAJOR:
        k.wgmma.read(MatrixChunks("b", b_desc, K_MAJOR, product.bits, 0, product.columns, 0, product.depth // each))
    else:
        k.wgmma.read(MatrixChunks("b", b_desc, MN_MAJOR, product.bits, 0, product.depth, 0, product.columns // each))


@cache
def plan(product: Product, accumulators: int) -> tuple[Callable[..., Any], Statics]:
    """The function that multiplies, and its constants; D takes so many registers."""
    a, d = product.fragments
    held = accumulators + HEAD
    registers = a.registers if product.a_major == IN_REGISTERS else 0
    sparse = product.selector is not None
    results = held + registers + int(sparse)
    where = (product.a_major, product.b_major, accumulators, results)
    a_places = tuple(place - width(product.atype)[1] for place in a.after(held)) if registers else UNUSED
    if product.atype == "b1":
        words = a_places[::32] if registers else UNUSED
        return multiply_shared_bits, (product.columns, product.depth // 32, *where, words, d.places)
    kept: int = 0
    choices: tuple[int, ...] = UNUSED
    if product.selector is not None:
        kept = kept_of(product.bits)
        choices = metadata(product.shape, product.atype, product.selector).after(held + registers)
    places = (kept, a_places, d.places, choices)
    if product.dtype == "s32":
        signs = (int(product.atype[0] == "s"), int(product.btype[0] == "s"))
        return multiply_shared_integers, (
            product.columns, product.depth, *signs, int(product.saturate), *where, *places,
        )  # fmt: skip
    return multiply_shared_floats, (product.columns, product.depth, *_floats(product), *where, *places)


def _floats(product: Product) -> Statics:
    kinds = {"f16": WARPGROUP.half, "bf16": WARPGROUP.half, "tf32": WARPGROUP.tf32}
    step = kinds.get(product.atype, WARPGROUP.fp8)
    a_format, b_format = NUMBER_OF[product.atype], NUMBER_OF[product.btype]
    result = F16 if product.dtype == "f16" else F32_SHORT if step.short else F32
    return (
        *width(product.atype),
        a_format,
        b_format,
        int(product.negate_a) << product.bits - 1,
        int(product.negate_b) << product.bits - 1,
        ELEMENT_BITS[product.dtype],
        result,
        step.fraction,
        step.fraction - MANTISSA_BITS[a_format] - MANTISSA_BITS[b_format],
    )
