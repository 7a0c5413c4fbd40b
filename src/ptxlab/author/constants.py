"""Python numbers as constants of PTX: an integer that fits, a float as its bits."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

from ptxlab.author.lines import refuse
from ptxlab.isa import Type
from ptxlab.isa.operand import Expected
from ptxlab.numbers import F64, FORMATS, decode, encode


def is_number(value: object) -> bool:
    """Whether a value is one number of Python or NumPy: no register, and no array of NumPy."""
    return (hasattr(value, "__float__") or hasattr(value, "__index__")) and not hasattr(value, "__len__")


def print_constant(number: Any, expected: Expected, text: str) -> str:
    """A Python number as the operand `expected` of the instruction `text`."""
    type = expected.type
    if type is not None and type.kind == "f":
        return print_float(float(number), type)
    if not hasattr(number, "__index__"):
        return print_float(float(number), type)
    value = operator.index(number)
    allowed = expected.allowed
    if allowed is not None and value not in allowed:
        refuse("immediate-range", f"`{expected.name}` of `{text}` is {value}, expected {expected.describe()}")
    if type is not None and not fits(value, type):
        refuse("immediate-range", f"`{expected.name}` of `{text}` is {value}, which `.{type.name}` does not hold")
    return print_integer(value)


def fits(value: int, type: Type) -> bool:
    """Whether an integer has that many bits, read as signed or as unsigned."""
    return -(1 << max(type.width - 1, 0)) <= value < 1 << type.width


def print_integer(value: int) -> str:
    """An integer; masks read better in hexadecimal."""
    if value == -(1 << 63):
        return "(.s64)0x8000000000000000"
    return f"{value:#x}" if value >= 1 << 16 else str(value)


def print_float(number: float, type: Type | None) -> str:
    """A float by its bits: of single precision, unless the operand is wider."""
    if type is not None and type.width == 64:
        return f"0d{int.from_bytes(struct.pack('<d', number), 'little'):016X}"
    return f"0f{float_bits(number, 'f32'):08X}"


def float_bits(number: float, format: str) -> int:
    """The bits of the nearest number of a format, `f32`, `f16` or `bf16`; one that is beyond the largest is refused."""
    bits = encode(FORMATS[format], decode(F64, int.from_bytes(struct.pack("<d", number), "little")))
    if math.isfinite(number) and abs(number) > 1 and bits == float_bits(math.copysign(math.inf, number), format):
        refuse(
            "immediate-range",
            f"{number} is beyond every `{format}`",
            helps=['`float("inf")` is infinity'],
        )
    return bits
