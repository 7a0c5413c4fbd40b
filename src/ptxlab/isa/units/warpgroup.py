"""What `wgmma` hands to the function that multiplies: the part of a warp, layouts, formats, the model of tensor cores.

Each warp of a warpgroup does its own quarter, sixteen rows of A and D, with all of B. Their fragments are those of
`mma` with sixteen rows and as many columns (CUTLASS: `mma_traits_sm90_gmma.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.native import constants
from ptxlab.numbers.tensor_core import F16, F32, F32_SHORT, NUMBER_OF
from ptxlab.numbers.tensor_core_models import WARPGROUP

from ..asynchronous import MatrixChunks
from ..machine import Machine, Value, Vector
from .descriptor import CHUNK, K_MAJOR, MN_MAJOR
from .fragment import ELEMENT_BITS, extents
from .layouts import Layout, accumulator, kept_of, metadata, multiplicand, width
from .warp_mma import ALL_LANES, UNUSED, accumulation
from .warpgroup_multiplication import (
    IN_REGISTERS,
    ROWS,
    SharedFloatMma,
    SharedIntegerMma,
    SharedMma,
    multiply_shared_bits,
    multiply_shared_floats,
    multiply_shared_integers,
)

if TYPE_CHECKING:
    from ..machine import Statics

HEAD = 6  # words between the accumulators and A: descriptor of A, number of the warp, descriptor of B, `scale_d`


@dataclass(frozen=True)
class WarpgroupMultiplication:
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
    k: Machine, mma: WarpgroupMultiplication, d: Vector, a: Vector | None, a_desc: Value | None, b_desc: Value,
    scale_d: Value, metadata: Value | None,
) -> Vector:  # fmt: skip
    """Multiply what the descriptors name, and add it to `d`."""
    read(k, mma, a_desc, b_desc)
    nowhere = k.constant("u64", 0)
    inputs = [*d, nowhere if a_desc is None else a_desc, k.warp, b_desc, scale_d, *(a or ())]
    if metadata is not None:
        inputs.append(metadata)
    function, statics = plan(mma, len(d))
    return k.collect(function, ALL_LANES, inputs, ["b32"] * len(d), statics=statics, aligned=True, reads_shared=True)


def read(k: Machine, mma: WarpgroupMultiplication, a_desc: Value | None, b_desc: Value) -> None:
    """Track the memory that a warp reads: its own rows of A, and all of B."""
    each = CHUNK * 8 // mma.bits  # elements of a chunk
    if a_desc is not None and mma.a_major == K_MAJOR:
        k.wgmma.read(
            MatrixChunks("a", a_desc, K_MAJOR, mma.bits, mma.atype, (k.warp & 3) * ROWS, ROWS, 0, mma.stored // each)
        )
    elif a_desc is not None:
        chunks = ROWS // each
        k.wgmma.read(
            MatrixChunks("a", a_desc, MN_MAJOR, mma.bits, mma.atype, 0, mma.stored, (k.warp & 3) * chunks, chunks)
        )
    if mma.b_major == K_MAJOR:
        k.wgmma.read(MatrixChunks("b", b_desc, K_MAJOR, mma.bits, mma.btype, 0, mma.columns, 0, mma.depth // each))
    else:
        k.wgmma.read(MatrixChunks("b", b_desc, MN_MAJOR, mma.bits, mma.btype, 0, mma.depth, 0, mma.columns // each))


@cache
def plan(mma: WarpgroupMultiplication, accumulators: int) -> tuple[Callable[..., Any], Statics]:
    """The function that multiplies, and its constants; D takes so many registers."""
    common = _common(mma, accumulators)
    if mma.atype == "b1":
        return multiply_shared_bits, (common,)
    if mma.dtype == "s32":
        a_signed, b_signed = int(mma.atype[0] == "s"), int(mma.btype[0] == "s")
        return multiply_shared_integers, (SharedIntegerMma(common, a_signed, b_signed, int(mma.saturate)),)
    return multiply_shared_floats, (_floats(mma, common),)


def _common(mma: WarpgroupMultiplication, accumulators: int) -> SharedMma:
    a, d = mma.fragments
    held = accumulators + HEAD
    registers = a.registers if mma.a_major == IN_REGISTERS else 0
    a_positions = tuple(position - width(mma.atype)[1] for position in a.after(held)) if registers else UNUSED
    in_words = mma.atype == "b1"  # 32 elements are one
    choices: tuple[int, ...] = UNUSED
    if mma.selector is not None:
        choices = metadata(mma.shape, mma.atype, mma.selector).after(held + registers)
    return SharedMma(
        columns=mma.columns,
        depth=mma.depth // 32 if in_words else mma.depth,
        bits=32 if in_words else width(mma.atype)[0],
        a_major=mma.a_major,
        b_major=mma.b_major,
        words=accumulators,
        results=held + registers + int(mma.selector is not None),
        kept=0 if mma.selector is None else kept_of(mma.bits),
        a_positions=constants(a_positions[::32] if in_words else a_positions),
        d_positions=constants(d.by_columns.positions),
        choices=constants(choices),
    )


def _floats(mma: WarpgroupMultiplication, common: SharedMma) -> SharedFloatMma:
    kinds = {"f16": WARPGROUP.half, "bf16": WARPGROUP.half, "tf32": WARPGROUP.tf32}
    step = kinds.get(mma.atype, WARPGROUP.fp8)
    a_format, b_format = NUMBER_OF[mma.atype], NUMBER_OF[mma.btype]
    result = F16 if mma.dtype == "f16" else F32_SHORT if step.short else F32
    return SharedFloatMma(
        common=common,
        padding=width(mma.atype)[1],
        a_format=a_format,
        b_format=b_format,
        a_sign=int(mma.negate_a) << mma.bits - 1,
        b_sign=int(mma.negate_b) << mma.bits - 1,
        d_bits=ELEMENT_BITS[mma.dtype],
        accumulation=accumulation(step.fraction, a_format, b_format, result),
    )
