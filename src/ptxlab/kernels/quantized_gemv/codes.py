"""How codes of 4 or 8 bits are packed in words, so that few instructions make them pairs of bf16.

A bf16 has its sign in bit 15, its exponent in bits 14 to 7. A code e2m1 is in it with its sign in bit 15 and the rest
in bits 8 to 6: that is its value times 2^-126, zero and 0.5 included, which are subnormal then. A mask alone finds one
such pair in a word. Others are found after a shift, and those that fit nowhere have their bits in two words: a `lop3`
is the exclusive or of both, and the mask. What else is at these bits is known when the codes are packed, and taken into
account there: packing is a linear system over bits, which `tables` solves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import b32, ptx

_XOR_AND, _AND_OR = 0x28, 0xEA  # tables of lop3: (a ^ b) & c, and (a & b) | c


@dataclass(frozen=True)
class Codes:
    """Codes in units of a few words, and the instructions that decode them.

    Pair number p of a unit is the exclusive or of words of the unit, each shifted left so many bits, and the mask; bit
    number b of a code is then bit `positions[b]` of a half. `added` are bits that are set in each pair.
    """

    bits: int
    words: int
    positions: tuple[int, ...]
    pairs: tuple[tuple[tuple[int, int], ...], ...]
    added: int = 0

    @property
    def mask(self) -> int:
        """The bits of a pair that belong to its two codes."""
        half = sum(1 << position for position in self.positions)
        return half << 16 | half

    def decode(self, unit: Any) -> list[b32]:
        """The instructions: words in registers as pairs in registers."""
        shifted: dict[tuple[int, int], Any] = {}

        def operand(word: int, shift: int) -> Any:
            if (word, shift) not in shifted:
                moved = ptx.shl.b32(unit[word], shift) if shift > 0 else ptx.shr.b32(unit[word], -shift)
                shifted[word, shift] = moved if shift else unit[word]
            return shifted[word, shift]

        found = []
        for terms in self.pairs:
            first, *second = (operand(*term) for term in terms)
            if second:
                found.append(ptx.lop3.b32(first, second[0], self.mask, _XOR_AND))
            elif self.added:
                found.append(ptx.lop3.b32(first, self.mask, self.added, _AND_OR))
            else:
                found.append(ptx.and_.b32(first, self.mask))
        return found

    def tables(self) -> list[list[int]]:
        """For each code of a unit, what each of its values adds to the unit's words, by exclusive or."""
        return _tables(self)


@cache
def _tables(codes: Codes) -> list[list[int]]:
    """Solve what `decode` does to bits: the words whose pairs have one bit set, for each bit."""
    rows = []  # the bits of the words that each bit of a code is the exclusive or of, and which bit that is
    for number, terms in enumerate(codes.pairs):
        for half in range(2):
            for bit, position in enumerate(codes.positions):
                sources = 0
                for word, shift in terms:
                    source = 16 * half + position - shift
                    sources ^= 1 << (32 * word + source) if 0 <= source < 32 else 0
                rows.append((sources, 1 << ((2 * number + half) * codes.bits + bit)))
    for column in range(32 * codes.words):  # Gauss and Jordan
        pivot = next(at for at in range(column, len(rows)) if rows[at][0] >> column & 1)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for at, (sources, bits) in enumerate(rows):
            if at != column and sources >> column & 1:
                rows[at] = sources ^ rows[column][0], bits ^ rows[column][1]

    def packed(bits: int) -> int:
        return sum((bits & needed).bit_count() % 2 << at for at, (_, needed) in enumerate(rows))

    count = 2 * len(codes.pairs)
    return [[packed(value << (number * codes.bits)) for value in range(1 << codes.bits)] for number in range(count)]


E2M1 = Codes(
    bits=4,
    words=2,
    positions=(6, 7, 8, 15),
    pairs=(
        ((1, 0),), ((1, 3),), ((1, 6),), ((0, 0),),
        ((0, -6), (1, 1)), ((0, -3), (1, 2)), ((0, 3), (1, 4)), ((0, 6), (1, 5)),
    ),
)  # fmt: skip
"""Pairs are the values times 2^-126."""

E4M3 = Codes(bits=8, words=1, positions=(4, 5, 6, 7, 8, 9, 10, 15), pairs=(((0, 0),), ((0, 4), (0, -4))))
"""Pairs are the values times 2^-120."""

U4 = Codes(4, 1, (0, 1, 2, 3), (((0, 0),), ((0, -4),), ((0, -8),), ((0, -12),)), added=0x43004300)
"""Pairs are the values and 128, whose bf16 has room for four bits at its end."""
