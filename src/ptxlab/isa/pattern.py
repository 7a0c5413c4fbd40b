"""The values of the reference machine: bits in a register, with the operators that semantics are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ptxlab.isa.machine import Value
from ptxlab.isa.types import Type, type_named
from ptxlab.numbers import FORMATS, Format, Special, decode
from ptxlab.values import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pattern:
    """The bits of one value, with the type they are read as."""

    type: Type
    bits: int

    def __post_init__(self) -> None:
        assert 0 <= self.bits < 1 << self.type.width, f"{self.bits:#x} is not a {self.type}"

    @staticmethod
    def of(type: str | Type, number: int) -> Pattern:
        """`number`, wrapped to the width of `type`."""
        type = type_named(type) if isinstance(type, str) else type
        return Pattern(type, number & ((1 << type.width) - 1))

    @property
    def number(self) -> int:
        """The integer that the bits represent."""
        assert self.type.lanes == 1, f"{self.type} is several integers"
        negative = self.type.kind == "s" and self.bits >> (self.type.width - 1)
        return self.bits - (1 << self.type.width) if negative else self.bits

    def __repr__(self) -> str:
        return f"Pattern({self.type}, {self.bits:#x})"

    def __bool__(self) -> bool:
        raise AssertionError("a decision on a value is taken by `k.select`, not by `if`")

    def _beside(self, other: Value | int, kinds: str, *, one_sign: bool = False) -> Pattern:
        """The other side of an operator that is there for these kinds of types."""
        assert self.type.kind in kinds, f"{self.type} does not have this operator"
        if isinstance(other, int):
            return Pattern.of(self.type, other)
        assert isinstance(other, Pattern)
        assert other.type.kind in kinds, f"{other.type} does not have this operator"
        assert other.type.width == self.type.width, f"{self.type} beside {other.type}"
        assert not one_sign or (self.type.kind == "s") == (other.type.kind == "s"), f"{self.type} beside {other.type}"
        return other

    def _result(self, number: int) -> Pattern:
        return Pattern.of(self.type, number)

    def __add__(self, other: Value | int) -> Pattern:
        return self._result(self.number + self._beside(other, "bus").number)

    def __sub__(self, other: Value | int) -> Pattern:
        return self._result(self.number - self._beside(other, "bus").number)

    def __mul__(self, other: Value | int) -> Pattern:
        return self._result(self.number * self._beside(other, "bus").number)

    def __floordiv__(self, other: Value | int) -> Pattern:
        return self._result(self._divided(other)[0])

    def __mod__(self, other: Value | int) -> Pattern:
        return self._result(self._divided(other)[1])

    def _divided(self, other: Value | int) -> tuple[int, int]:
        """Quotient, rounded towards zero, and remainder."""
        dividend, divisor = self.number, self._beside(other, "bus", one_sign=True).number
        assert divisor != 0, "division by zero"
        quotient = abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
        assert Pattern.of(self.type, quotient).number == quotient, "the quotient does not fit"
        return quotient, dividend - quotient * divisor

    def __neg__(self) -> Pattern:
        return self._result(0) - self

    def __and__(self, other: Value | int) -> Pattern:
        return self._result(self.bits & self._beside(other, "busp").bits)

    def __or__(self, other: Value | int) -> Pattern:
        return self._result(self.bits | self._beside(other, "busp").bits)

    def __xor__(self, other: Value | int) -> Pattern:
        return self._result(self.bits ^ self._beside(other, "busp").bits)

    def __invert__(self) -> Pattern:
        return self ^ -1

    def __lshift__(self, other: Value | int) -> Pattern:
        return self._result(self.number << self._count(other))

    def __rshift__(self, other: Value | int) -> Pattern:
        return self._result(self.number >> self._count(other))

    def _count(self, other: Value | int) -> int:
        assert self.type.kind in "bus", f"{self.type} does not have this operator"
        count = other if isinstance(other, int) else cast(Pattern, other).bits
        assert 0 <= count < self.type.width, f"shift of {self.type} by {count}"
        return count

    def __lt__(self, other: Value | int) -> Pattern:
        return self._ordered(other, lambda a, b: a < b)

    def __le__(self, other: Value | int) -> Pattern:
        return self._ordered(other, lambda a, b: a <= b)

    def __gt__(self, other: Value | int) -> Pattern:
        return self._ordered(other, lambda a, b: a > b)

    def __ge__(self, other: Value | int) -> Pattern:
        return self._ordered(other, lambda a, b: a >= b)

    def _ordered(self, other: Value | int, holds: Callable[[Any, Any], bool]) -> Pattern:
        if self.type.kind == "f":
            return self._floats_are(other, holds)
        return Pattern.of("pred", holds(self.number, self._beside(other, "bus", one_sign=True).number))

    def __eq__(self, other: object) -> Pattern:  # type: ignore[override]
        assert isinstance(other, int | Pattern)
        if self.type.kind == "f":
            return self._floats_are(other, lambda a, b: bool(a == b))
        return Pattern.of("pred", self.bits == self._beside(cast("Value | int", other), "busp").bits)

    def __ne__(self, other: object) -> Pattern:  # type: ignore[override]
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]

    def _floats_are(self, other: Value | int | Pattern, holds: Callable[[Any, Any], bool]) -> Pattern:
        assert isinstance(other, Pattern)
        assert other.type is self.type, f"{self.type} beside {other.type}"
        pair = [_ordinary(decode(format_of(self.type), value.bits)) for value in (self, other)]
        return Pattern.of("pred", None not in pair and holds(*pair))


def format_of(type: Type) -> Format:
    """The number format of a floating-point type."""
    format = FORMATS[type.name]
    assert isinstance(format, Format)
    return format


def _ordinary(value: object) -> Any:
    """A decoded float as something that Python can order; None for a NaN."""
    plain = {
        Special.NAN: None,
        Special.NEGATIVE_ZERO: 0,
        Special.POSITIVE_INFINITY: float("inf"),
        Special.NEGATIVE_INFINITY: float("-inf"),
    }
    return plain[value] if isinstance(value, Special) else value
