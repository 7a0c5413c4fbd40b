"""Rounding of an exact value to an integer, in every mode PTX has."""

import math
from fractions import Fraction
from typing import Literal

from ptxlab.values import dataclass

Rounding = Literal["rn", "rna", "rz", "rm", "rp", "rs"]


@dataclass(frozen=True)
class RandomBits:
    """The random bits of one value rounded by `.rs`, as an integer of `count` bits."""

    bits: int
    count: int

    def __post_init__(self) -> None:
        """Refuse bits beyond the count."""
        assert 0 <= self.bits < 1 << self.count


def round_to_integer(value: Fraction, rounding: Rounding, random: RandomBits | None = None) -> int:
    """The integer that `value` rounds to.

    >>> [round_to_integer(Fraction(-5, 2), rounding) for rounding in ("rn", "rna", "rz", "rm", "rp")]
    [-2, -3, -2, -3, -2]
    >>> round_to_integer(Fraction(5, 4), "rs", RandomBits(3, 2))
    2
    """
    match rounding:
        case "rn":
            return round(value)
        case "rna":
            return _with_sign(math.floor(abs(value) + Fraction(1, 2)), value)
        case "rz":
            return math.trunc(value)
        case "rm":
            return math.floor(value)
        case "rp":
            return math.ceil(value)
        case "rs":
            assert random is not None
            # PTX ISA 9.7.9.21: away from zero when the discarded bits plus the random bits carry out. Discarded bits
            # below the last random bit cannot change the carry.
            return _with_sign(math.floor(abs(value) + Fraction(random.bits, 1 << random.count)), value)


def _with_sign(magnitude: int, value: Fraction) -> int:
    """`magnitude` with the sign of `value`."""
    return -magnitude if value < 0 else magnitude
