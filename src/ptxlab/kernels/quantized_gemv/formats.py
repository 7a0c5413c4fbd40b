"""Weights with scales for groups of them: where a lane finds its scales, and how they are applied.

| format | weights | scales | a scale for |
|---|---|---|---|
| `nvfp4` | e2m1 | e4m3, and one f32 for all | 16 of a row |
| `mxfp4` | e2m1 | ue8m0, the exponent of a power of two | 32 of a row |
| `int4` | 0 to 15 | bf16, with a zero point from 0 to 15 | 128 of a row |
| `fp8` | e4m3 | f32 | a row |

In a chunk of 16 rows by 64 bytes, lane 4 r + c has 16 bytes of row r and 16 of row r + 8: pieces number c, and for
weights of 4 bits c + 4, of 16 weights. Its scales are beside each other, those of row r first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.author import Pointer, b32, bf16x2, f32, ptx, u32
from ptxlab.kernels.quantized_gemv.codes import E2M1, E4M3, U4, Codes

MMA = ptx.mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
WORDS = 4  # words of a row that a lane has in a chunk
PIECE = 16  # weights of a row that are beside each other in a lane
_NOTHING = 4  # a byte that is 0, for prmt


@dataclass(frozen=True)
class Format:
    """A kind of weights; subclasses write the instructions for its scales."""

    name: str
    codes: Codes
    group: int
    """Weights of a row that share a scale; 0 is a whole row."""
    scale_bytes: int
    """Bytes of scales in a chunk."""
    exponent: int = 0
    """Sums are too small by this power of two."""

    @property
    def depth(self) -> int:
        """Weights of a row in a chunk."""
        return 4 * WORDS * 32 // self.codes.bits

    def lane_offset(self, lane: u32) -> u32:
        """Where a lane's scales are in those of a chunk, in bytes."""
        return lane * 4

    @property
    def scale_words(self) -> int:
        """Registers that a lane's scales take."""
        return 1

    def read(self, load: Any, source: Pointer, registers: list[b32], inside: Any) -> None:
        """The scales of a lane."""
        load.b32(source, out=registers[0], when=inside)

    def multiply(self, words: Sequence[Sequence[b32]], scales: list[b32], x: Sequence[b32], sums: list[f32]) -> None:
        """Add the products of both rows with x to the sums."""
        multipliers = self.multipliers(scales)
        units = WORDS // self.codes.words
        for unit in range(units):
            first = unit * self.codes.words
            pairs = [self.codes.decode(row[first : first + self.codes.words]) for row in words]
            scaled = [
                [ptx.mul.rn.bf16x2(pair, several[unit * len(several) // units]) for pair in row]
                for row, several in zip(pairs, multipliers, strict=True)
            ]
            multiply_pairs(scaled, x[unit * len(pairs[0]) :], sums)

    def multipliers(self, scales: Any) -> list[list[Any]]:
        """What the pairs of both rows are multiplied with, as pairs of bf16: for each piece one, or one for all."""
        raise NotImplementedError


def multiply_pairs(pairs: Sequence[Sequence[bf16x2]], x: Sequence[b32], sums: list[f32]) -> None:
    """Pairs of both rows with those of x, two an MMA."""
    for at in range(0, len(pairs[0]), 2):
        MMA((pairs[0][at], pairs[1][at], pairs[0][at + 1], pairs[1][at + 1]), (x[at], x[at + 1]), sums, out=sums)


def power(exponent: int) -> b32:
    """A pair of bf16, both this power of two."""
    return b32((127 + exponent << 7) * 0x10001)


class Nvfp4(Format):
    """A scale is e4m3: as a bf16 its bits are its value times 2^-120."""

    def multipliers(self, scales: list[b32]) -> list[list[bf16x2]]:
        found = []
        for byte in range(4):
            both = ptx.shl.b32(ptx.prmt.b32(scales[0], 0, byte * 0x101 + _NOTHING * 0x1010), 4)
            value = ptx.mul.rn.bf16x2(both, power(120))
            found.append(ptx.mul.rn.bf16x2(value, power(126 - self.exponent)))
        return [found[:2], found[2:]]


class Mxfp4(Format):
    """A scale is the exponent of a bf16 itself; two lanes have the same ones."""

    def lane_offset(self, lane: u32) -> u32:
        return (lane >> 1) * 4

    def multipliers(self, scales: list[b32]) -> list[list[b32]]:
        more = (126 - self.exponent << 7) * 0x10001
        both = [ptx.prmt.b32(scales[0], 0, byte * 0x101 + _NOTHING * 0x1010) for byte in range(4)]
        found = [ptx.mad.lo.u32(one.view(u32), 128, more, out=b32()) for one in both]
        return [found[:2], found[2:]]


class Int4(Format):
    """A word has the scale of a group in its lower half and 128 + its zero point in the upper one, both bf16."""

    def lane_offset(self, lane: u32) -> u32:
        return (lane >> 2) * 8

    @property
    def scale_words(self) -> int:
        return 2

    def read(self, load: Any, source: Pointer, registers: list[b32], inside: object) -> None:
        load.v2.b32(source, out=tuple(registers), when=inside)

    def multiply(self, words: Sequence[Sequence[b32]], scales: list[b32], x: Sequence[b32], sums: list[f32]) -> None:
        zeros = [ptx.prmt.b32(one, 0, 0x3232) for one in scales]
        products = [f32(0.0) for _ in sums]
        for unit in range(WORDS):
            pairs = [
                [ptx.sub.rn.bf16x2(pair, zero) for pair in self.codes.decode(row[unit : unit + 1])]
                for row, zero in zip(words, zeros, strict=True)
            ]
            multiply_pairs(pairs, x[4 * unit :], products)
        factors = [ptx.shl.b32(one, 16, out=f32()) for one in scales]
        for at, product in enumerate(products):
            ptx.fma.rn.f32(product, factors[at // 2], sums[at], out=sums[at])


class Fp8(Format):
    """Scales are of rows: the last sums are multiplied with them."""

    @property
    def scale_words(self) -> int:
        return 0

    def multipliers(self, scales: Any) -> list[list[b32]]:
        return [[power(120)]] * 2


NVFP4 = Nvfp4("nvfp4", E2M1, 16, 128, exponent=8)
MXFP4 = Mxfp4("mxfp4", E2M1, 32, 64, exponent=64)
INT4 = Int4("int4", U4, 128, 64)
FP8 = Fp8("fp8", E4M3, 0, 0)
FORMATS = {format.name: format for format in (NVFP4, MXFP4, INT4, FP8)}
