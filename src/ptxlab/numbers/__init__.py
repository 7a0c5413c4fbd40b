"""Number formats and exact arithmetic: what a bit pattern is worth, and which pattern a result rounds to.

`decode` and `encode` go between patterns and exact values; `arithmetic` works on patterns.
"""

from ptxlab.numbers.encoding import clamp_negative, clamp_unit, encode
from ptxlab.numbers.formats import (
    BF16,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    FORMATS,
    S2F6,
    TF32,
    UE4M3,
    UE5M3,
    UE8M0,
    FixedPoint,
    Format,
    Special,
    Value,
    decode,
)
from ptxlab.numbers.rounding import RandomBits, Rounding, round_to_integer

__all__ = [
    "BF16",
    "E2M1",
    "E2M3",
    "E3M2",
    "E4M3",
    "E5M2",
    "F16",
    "F32",
    "F64",
    "FORMATS",
    "S2F6",
    "TF32",
    "UE4M3",
    "UE5M3",
    "UE8M0",
    "FixedPoint",
    "Format",
    "RandomBits",
    "Rounding",
    "Special",
    "Value",
    "clamp_negative",
    "clamp_unit",
    "decode",
    "encode",
    "round_to_integer",
]
