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
from .warp_mma import ALL_LANES, UNUSED, Statics, Vector
from .warpgroup_multiplication import (
    IN_REGISTERS,
    ROWS,
    multiply_shared_bits,
    multiply_shared_floats,
    multiply_shared_integers,
)

HEAD = 6  # words between the accumulators and A: descriptor of A, number of the warp, descriptor of B, `scale_d`


@dataclass(frozen=True)
class WarpgroupMma:
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
    k: Machine, mma: WarpgroupMma, d: Vector, a: Vector | None, a_desc: Value | None, b_desc: Value, scale_d: Value,
    metadata: Value | None,
) -> Vector:  # fmt: skip
    """Multiply what the descriptors name, and add it to `d`."""
    read(k, mma, a_desc, b_desc)
    nowhere = k.constant("u64", 0)
    inputs = [*d, nowhere if a_desc is None else a_desc, k.warp, b_desc, scale_d, *(a or ())]
    if metadata is not None:
        inputs.append(metadata)
    function, statics = plan(mma, len(d))
    return k.collect(function, ALL_LANES, inputs, ["b32"] * len(d), statics=statics, aligned=True, reads_shared=True)


def read(k: Machine, mma: WarpgroupMma, a_desc: Value | None, b_desc: Value) -> None:
    """Track the memory that a warp reads: its own rows of A, and all of B."""
    each = CHUNK * 8 // mma.bits  # elements of a chunk
    if a_desc is not None and mma.a_major == K_MAJOR:
        k.wgmma.read(MatrixChunks("a", a_desc, K_MAJOR, mma.bits, (k.warp & 3) * ROWS, ROWS, 0, mma.stored // each))
    elif a_desc is not None:
        chunks = ROWS // each
        k.wgmma.read(MatrixChunks("a", a_desc, MN_MAJOR, mma.bits, 0, mma.stored, (k.warp & 3) * chunks, chunks))
    if mma.b_major == K_MAJOR:
        k.wgmma.read(MatrixChunks("b", b_desc, K_MAJOR, mma.bits, 0, mma.columns, 0, mma.depth // each))
    else:
        k.wgmma.read(MatrixChunks("b", b_desc, MN_MAJOR, mma.bits, 0, mma.depth, 0, mma.columns // each))


@cache
def plan(mma: WarpgroupMma, accumulators: int) -> tuple[Callable[..., Any], Statics]:
    """The function that multiplies, and its constants; D takes so many registers."""
    a, d = mma.fragments
    held = accumulators + HEAD
    registers = a.registers if mma.a_major == IN_REGISTERS else 0
    sparse = mma.selector is not None
    results = held + registers + int(sparse)
    where = (mma.a_major, mma.b_major, accumulators, results)
    a_places = tuple(place - width(mma.atype)[1] for place in a.after(held)) if registers else UNUSED
    if mma.atype == "b1":
        words = a_places[::32] if registers else UNUSED
        return multiply_shared_bits, (mma.columns, mma.depth // 32, *where, words, d.places)
    kept: int = 0
    choices: tuple[int, ...] = UNUSED
    if mma.selector is not None:
        kept = kept_of(mma.bits)
        choices = metadata(mma.shape, mma.atype, mma.selector).after(held + registers)
    places = (kept, a_places, d.places, choices)
    if mma.dtype == "s32":
        signs = (int(mma.atype[0] == "s"), int(mma.btype[0] == "s"))
        return multiply_shared_integers, (
            mma.columns, mma.depth, *signs, int(mma.saturate), *where, *places,
        )  # fmt: skip
    return multiply_shared_floats, (mma.columns, mma.depth, *_floats(mma), *where, *places)


def _floats(mma: WarpgroupMma) -> Statics:
    kinds = {"f16": WARPGROUP.half, "bf16": WARPGROUP.half, "tf32": WARPGROUP.tf32}
    step = kinds.get(mma.atype, WARPGROUP.fp8)
    a_format, b_format = NUMBER_OF[mma.atype], NUMBER_OF[mma.btype]
    result = F16 if mma.dtype == "f16" else F32_SHORT if step.short else F32
    return (
        *width(mma.atype),
        a_format,
        b_format,
        int(mma.negate_a) << mma.bits - 1,
        int(mma.negate_b) << mma.bits - 1,
        ELEMENT_BITS[mma.dtype],
        result,
        step.fraction,
        step.fraction - MANTISSA_BITS[a_format] - MANTISSA_BITS[b_format],
    )
