"""The number formats of PTX, and the exact value of a bit pattern.

A floating-point format is described by its fields and by how it spends the patterns at the top of its range; every
pattern has a value that is either a fraction or one of four special values. Nothing here rounds.
"""

import enum
from fractions import Fraction
from functools import cache

from ptxlab.values import dataclass


class Special(enum.Enum):
    """A value that no fraction can hold."""

    NAN = "NaN"
    POSITIVE_INFINITY = "+infinity"
    NEGATIVE_INFINITY = "-infinity"
    NEGATIVE_ZERO = "-0"


Value = Fraction | Special


@dataclass(frozen=True)
class Format:
    """A floating-point format: sign, exponent, mantissa, from the highest bit down, then padding."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    infinities: bool = True
    nan: int | None = None
    """The canonical NaN; None where the format has no NaN."""
    signed: bool = True
    padding: int = 0
    """Low bits of the register that carry no value."""

    @property
    def width(self) -> int:
        """Bits of a pattern, padding included."""
        return self.signed + self.exponent_bits + self.mantissa_bits + self.padding

    @property
    def sign_bit(self) -> int:
        """The sign as a mask, 0 for an unsigned format."""
        return 1 << (self.width - 1) if self.signed else 0

    @property
    def infinity(self) -> int:
        """The pattern of positive infinity."""
        assert self.infinities
        return ((1 << self.exponent_bits) - 1) << (self.mantissa_bits + self.padding)

    @property
    def largest(self) -> int:
        """The pattern of the largest finite value, the manual's MAX_NORM."""
        step = 1 << self.padding
        if self.infinities:
            return self.infinity - step
        all_ones = (1 << (self.width - self.signed)) - step
        return all_ones if self.nan is None else all_ones - step

    @property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal value."""
        return 1 - self.bias if self.mantissa_bits else -self.bias


@dataclass(frozen=True)
class FixedPoint:
    """A two's complement integer counted in units of 2**-fraction_bits."""

    name: str
    integer_bits: int
    fraction_bits: int

    @property
    def width(self) -> int:
        """Bits of a pattern."""
        return self.integer_bits + self.fraction_bits


F64 = Format("f64", 11, 52, 1023, nan=0xFFF8_0000_0000_0000)
F32 = Format("f32", 8, 23, 127, nan=0x7FFF_FFFF)
F16 = Format("f16", 5, 10, 15, nan=0x7FFF)
BF16 = Format("bf16", 8, 7, 127, nan=0x7FFF)
# PTX ISA 5.2.3 leaves the layout of tf32 open; every target so far takes the upper 19 bits of an f32.
TF32 = Format("tf32", 8, 10, 127, nan=0x7FFF_E000, padding=13)
E5M2 = Format("e5m2", 5, 2, 15, nan=0x7F)
E4M3 = Format("e4m3", 4, 3, 7, infinities=False, nan=0x7F)
E3M2 = Format("e3m2", 3, 2, 3, infinities=False)
E2M3 = Format("e2m3", 2, 3, 1, infinities=False)
E2M1 = Format("e2m1", 2, 1, 1, infinities=False)
UE8M0 = Format("ue8m0", 8, 0, 127, infinities=False, nan=0xFF, signed=False)
UE4M3 = Format("ue4m3", 4, 3, 7, infinities=False, nan=0x7F, signed=False)
UE5M3 = Format("ue5m3", 5, 3, 15, infinities=False, nan=0xFF, signed=False)
S2F6 = FixedPoint("s2f6", 2, 6)

FORMATS: dict[str, Format | FixedPoint] = {
    format.name: format
    for format in (F64, F32, F16, BF16, TF32, E5M2, E4M3, E3M2, E2M3, E2M1, UE8M0, UE4M3, UE5M3, S2F6)
}


@cache
def power_of_two(exponent: int) -> Fraction:
    """2**exponent."""
    return Fraction(2) ** exponent


def decode(format: Format | FixedPoint, bits: int) -> Value:
    """The exact value of a bit pattern.

    >>> decode(E4M3, 0x7E)
    Fraction(448, 1)
    >>> decode(F16, 0x8000)
    <Special.NEGATIVE_ZERO: '-0'>
    """
    assert 0 <= bits < 1 << format.width
    if isinstance(format, FixedPoint):
        signed = bits - ((bits >> (format.width - 1)) << format.width)
        return Fraction(signed, 1 << format.fraction_bits)
    negative = bool(bits & format.sign_bit)
    magnitude = (bits & ~format.sign_bit) >> format.padding
    largest = format.largest >> format.padding
    if magnitude > largest:
        if not format.infinities or magnitude > largest + 1:
            return Special.NAN
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if magnitude == 0 and format.mantissa_bits:
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    value = _magnitude_value(format, magnitude)
    return -value if negative else value


def _magnitude_value(format: Format, magnitude: int) -> Fraction:
    """The value of a finite pattern without its sign and padding."""
    exponent = magnitude >> format.mantissa_bits
    mantissa = magnitude & ((1 << format.mantissa_bits) - 1)
    # Without a mantissa there are no subnormal numbers and no zero: ue8m0 0x00 is 2**-127 (OCP MX 1.0, 5.4.1).
    normal = exponent > 0 or not format.mantissa_bits
    significand = mantissa + (normal << format.mantissa_bits)
    power = (exponent - format.bias if normal else format.least_exponent) - format.mantissa_bits
    return significand * power_of_two(power)
