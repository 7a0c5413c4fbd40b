"""Formats, rounding modes and modifiers as the integers that compiled functions take.

A format is an index into the tables below; the functions that read them are `@native`, so that with a constant index
nothing of a table is left in machine code. Patterns are held in 64 bits, without the padding of tf32.
"""

from ptxlab.native import s32, table, u32, u64
from ptxlab.numbers.formats import FORMATS, Format

F64, F32, F16, BF16, TF32, E5M2, E4M3, E3M2, E2M3, E2M1, UE8M0, UE4M3, UE5M3 = range(13)

RN, RZ, RM, RP, RNA, RS = range(6)
ROUNDING = {"rn": RN, "rz": RZ, "rm": RM, "rp": RP, "rna": RNA, "rs": RS}

FTZ, SAT, RELU, SATFINITE = 1, 2, 4, 8

_FORMATS = [format for format in FORMATS.values() if isinstance(format, Format)]
FORMAT = {format.name: index for index, format in enumerate(_FORMATS)}


def _beyond(format: Format) -> int:
    """The pattern beyond the largest finite number, unless the conversion saturates."""
    if format.infinities:
        return format.infinity
    return format.largest if format.nan is None else format.nan


MANTISSA = table(u32, tuple(format.mantissa_bits for format in _FORMATS))
BIAS = table(s32, tuple(format.bias for format in _FORMATS))
LEAST = table(s32, tuple(format.least_exponent for format in _FORMATS))
SIGN = table(u64, tuple(format.sign_bit >> format.padding for format in _FORMATS))
LARGEST = table(u64, tuple(format.largest >> format.padding for format in _FORMATS))
BEYOND = table(u64, tuple(_beyond(format) >> format.padding for format in _FORMATS))
# The pattern of infinity, 0 where there is none, and that of the canonical NaN, or what replaces it.
INFINITY = table(u64, tuple(format.infinity >> format.padding if format.infinities else 0 for format in _FORMATS))
NAN = table(u64, tuple((format.largest if format.nan is None else format.nan) >> format.padding for format in _FORMATS))
ONE = table(u64, tuple(format.bias << format.mantissa_bits for format in _FORMATS))


def modifiers(*, ftz: bool = False, sat: bool = False, relu: bool = False, satfinite: bool = False) -> int:
    """The modifiers of an instruction as one integer.

    >>> modifiers(ftz=True, relu=True) == FTZ | RELU
    True
    """
    return FTZ * bool(ftz) | SAT * bool(sat) | RELU * bool(relu) | SATFINITE * bool(satfinite)
