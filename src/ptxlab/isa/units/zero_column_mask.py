"""Which columns of B a `tcgen05.mma.ws` takes as zeros: the zero-column mask descriptor (PTX ISA 9.7.16.4.3).

Spans of columns that are used and spans of columns that are skipped alternate. Each of the parts of N that the rows
leave lanes for (one for 128 rows, two for 64, four for 32) starts somewhere in that pattern. The manual's table has the
two lengths the other way round; its examples and CUTLASS (`MaskAndShiftB`) agree on this one.

bits = ZeroColumns(skipped=3, used=4).encode()
"""

from __future__ import annotations

from ptxlab.native import native, u32, u64
from ptxlab.values import dataclass

LONGEST_SPAN = 256
MOST_SHIFT = 32


@native(inline=True)
def shift_of(descriptor: u64) -> u32:
    """The column of B with which column 0 of D is computed."""
    return u32(descriptor >> 56) & 63


@native(inline=True)
def most_shift(bits: u32) -> u32:
    """The largest shift that an instruction descriptor allows."""
    return u32(4) << (bits >> 30) if bits >> 30 != 0 else u32(0)


@native
def is_zero_column(descriptor: u64, column: u32, width: u32) -> u32:
    """Whether zeros are taken for a column of B; `width` columns have a part of the mask."""
    if descriptor >> 39 & 1 == 0:
        return 0
    part: u64 = u64(column // width)
    skipped: u32 = (u32(descriptor >> 40) & 0xFF) + 1
    used: u32 = (u32(descriptor >> 48) & 0xFF) + 1
    position: u32 = (column % width + (u32(descriptor >> (8 * part)) & 0xFF)) % (skipped + used)
    if descriptor >> (32 + part) & 1 != 0:
        return 1 if position < skipped else 0
    return 1 if position >= used else 0


@dataclass(frozen=True)
class ZeroColumns:
    """What a zero-column mask descriptor says: lengths of the spans, where each part starts in them, and the shift."""

    skipped: int = 1
    """Consecutive columns that count as zeros."""
    used: int = 1
    """Consecutive columns that are used."""
    starts: tuple[int, ...] = (0, 0, 0, 0)
    """For each part, how far it starts in its first span."""
    skips_first: tuple[bool, ...] = (False, False, False, False)
    """For each part, whether its first span is one that is skipped."""
    shift: int = 0
    """The column of B with which column 0 of D is computed."""

    def encode(self) -> int:
        """The 64 bits; a `ValueError` says which part does not fit."""
        for name in ("skipped", "used"):
            if not 1 <= getattr(self, name) <= LONGEST_SPAN:
                raise ValueError(f"`{name}` is {getattr(self, name)}: a span has 1 to {LONGEST_SPAN} columns")
        if not 0 <= self.shift <= MOST_SHIFT:
            raise ValueError(f"`shift` is {self.shift}: it must be 0 to {MOST_SHIFT}")
        bits = 1 << 39 | self.skipped - 1 << 40 | self.used - 1 << 48 | self.shift << 56
        for part, (start, skips) in enumerate(zip(self.starts, self.skips_first, strict=True)):
            bits |= (start & 0xFF) << 8 * part | skips << 32 + part
        return bits
