"""Values of a thread while its code is being written: each operator writes an instruction of LLVM.

A value holds bits, so it is an integer to LLVM (`i1` for a predicate) whatever its type. A value that was computed
before the thread waited for others is kept in the thread's frame when it is used again after that; see `Function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxlab.isa.types import Type, type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

PREDICATE = type_named("pred")
_FLOATS = {"f32": "float", "f64": "double", "tf32": "float"}
# Sign bit and infinity of floats that the host may not be able to compare.
_HALVES = {"f16": 0x7C00, "bf16": 0x7F80}


def bits_of(type: Type) -> str:
    """The integer that holds a value of `type`."""
    return f"i{type.width}"


class LlvmValue:
    """Bits with a type; `text` is their name in LLVM IR."""

    __slots__ = ("_raw", "_text", "epoch", "function", "type", "undefined")

    def __init__(self, function: Function, type: Type, text: str, raw: str | None = None) -> None:
        self.function = function
        self.type = type
        self._text = text
        self._raw = raw
        self.epoch = function.frame.epoch
        self.undefined: str | None = None  # its shadow, where one instruction hands it on to another; see `undefined`

    @property
    def text(self) -> str:
        """The name of the value, fetched back from the frame if the thread has waited since it was computed."""
        if self.epoch != self.function.frame.epoch:
            if self._text[0] in "%":
                self._text = self.function.frame.carry(self._text, bits_of(self.type), self.epoch)
            self.epoch = self.function.frame.epoch
        return self._text

    @property
    def raw(self) -> str:
        """The value as a `float`, of which a NaN may have other bits: good for arithmetic, which only asks for NaNs."""
        found = self.known_raw
        if found is None:
            return self.function.builder.value(f"bitcast i32 {self.text} to float")
        return found if found[:2] != "%r" else self.function.builder.value(f"load float, ptr {found}")

    @property
    def known_raw(self) -> str | None:
        """That value, or the variable that holds it, if there is one and the thread has not waited since."""
        return self._raw if self.epoch == self.function.frame.epoch else None

    @property
    def typed(self) -> str:
        return f"{bits_of(self.type)} {self.text}"

    @property
    def is_signed(self) -> bool:
        return self.type.kind == "s"

    def _operate(self, operation: str, other: LlvmValue | int) -> LlvmValue:
        first, second = self.text, self._same(other)
        text = folded(operation, first, second, self.type)
        if text is None:
            text = self.function.builder.value(f"{operation} {bits_of(self.type)} {first}, {second}")
        return LlvmValue(self.function, self.type, text)

    def _same(self, other: LlvmValue | int) -> str:
        if isinstance(other, int):
            return constant_text(other, self.type)
        assert other.type.width == self.type.width, f"{self.type} and {other.type}"
        return other.text

    def _compare(self, signed: str, unsigned: str, ordered: str, other: LlvmValue | int) -> LlvmValue:
        builder = self.function.builder
        if self.type.kind != "f":
            operation = signed if self.is_signed else unsigned
            first, second = self.text, self._same(other)
            known = compared(operation, first, second, self.type.width)
            text = builder.value(f"icmp {operation} {bits_of(self.type)} {first}, {second}") if known is None else known
        elif self.type.name in _FLOATS:
            name = _FLOATS[self.type.name]
            a, b = (
                builder.value(f"bitcast {bits_of(self.type)} {x} to {name}") for x in (self.text, self._same(other))
            )
            text = builder.value(f"fcmp {ordered} {name} {a}, {b}")
        else:
            text = self._compare_halves(signed, ordered, other)
        return LlvmValue(self.function, PREDICATE, text)

    def _compare_halves(self, signed: str, ordered: str, other: LlvmValue | int) -> str:
        """Compare 16-bit floats as integers: their magnitudes with the sign applied."""
        builder, infinity = self.function.builder, _HALVES[self.type.name]
        keys, nans = [], []
        for bits in (self.text, self._same(other)):
            magnitude = builder.value(f"and i16 {bits}, 32767")
            negative = builder.value(f"icmp slt i16 {bits}, 0")
            opposite = builder.value(f"sub i16 0, {magnitude}")
            keys.append(builder.value(f"select i1 {negative}, i16 {opposite}, i16 {magnitude}"))
            nans.append(builder.value(f"icmp ugt i16 {magnitude}, {infinity}"))
        nan = builder.value(f"or i1 {nans[0]}, {nans[1]}")
        found = builder.value(f"icmp {signed} i16 {keys[0]}, {keys[1]}")
        return builder.value(f"select i1 {nan}, i1 {'true' if ordered == 'une' else 'false'}, i1 {found}")

    def __add__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("add", other)

    def __sub__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("sub", other)

    def __mul__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("mul", other)

    def __floordiv__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("sdiv" if self.is_signed else "udiv", other)

    def __mod__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("srem" if self.is_signed else "urem", other)

    def __neg__(self) -> LlvmValue:
        return LlvmValue(
            self.function, self.type, self.function.builder.value(f"sub {bits_of(self.type)} 0, {self.text}")
        )

    def __and__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("and", other)

    def __or__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("or", other)

    def __xor__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("xor", other)

    def __invert__(self) -> LlvmValue:
        return self._operate("xor", -1)

    def __lshift__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("shl", self._count(other))

    def __rshift__(self, other: LlvmValue | int) -> LlvmValue:
        return self._operate("ashr" if self.is_signed else "lshr", self._count(other))

    def _count(self, other: LlvmValue | int) -> LlvmValue | int:
        """A shift count in the width of what it shifts."""
        if isinstance(other, int) or other.type.width == self.type.width:
            return other
        return LlvmValue(self.function, self.type, resize(other, self.type.width, signed=False))

    def __lt__(self, other: LlvmValue | int) -> LlvmValue:
        return self._compare("slt", "ult", "olt", other)

    def __le__(self, other: LlvmValue | int) -> LlvmValue:
        return self._compare("sle", "ule", "ole", other)

    def __gt__(self, other: LlvmValue | int) -> LlvmValue:
        return self._compare("sgt", "ugt", "ogt", other)

    def __ge__(self, other: LlvmValue | int) -> LlvmValue:
        return self._compare("sge", "uge", "oge", other)

    def __eq__(self, other: LlvmValue | int) -> LlvmValue:  # type: ignore[override]
        return self._compare("eq", "eq", "oeq", other)

    def __ne__(self, other: LlvmValue | int) -> LlvmValue:  # type: ignore[override]
        return self._compare("ne", "ne", "une", other)

    def __bool__(self) -> bool:
        raise AssertionError("a value of a thread is not known when its code is written: use `k.select`")

    __hash__ = None  # type: ignore[assignment]


def constant_text(value: int, type: Type) -> str:
    """A constant as LLVM writes it, wrapped to the width of `type`."""
    return bits_text(value, type.width)


def bits_text(value: int, width: int) -> str:
    """The lowest bits of a constant as LLVM writes them."""
    value &= (1 << width) - 1
    if width == 1:
        return "true" if value else "false"
    return str(value - (1 << width) if value >> (width - 1) else value)


def number_of(text: str) -> int | None:
    """The number that a text is, if it is one, unlike `true` and `false`."""
    return None if text[0] == "%" or not text[-1].isdigit() else int(text)


def folded(operation: str, first: str, second: str, type: Type) -> str | None:
    """What an operation gives of constants, or with a zero that changes nothing; None if LLVM has to compute it.

    Most of what a thread computes of constants is where its parameters and variables are.
    """
    if second == "0" and operation in _NEUTRAL:
        return first
    a, b = number_of(first), number_of(second)
    if a is None or b is None or operation not in _FOLDED:
        return None
    return constant_text(_FOLDED[operation](a, b), type)


def compared(operation: str, first: str, second: str, width: int) -> str | None:
    """What a comparison of constants gives; None of other values."""
    a, b = number_of(first), number_of(second)
    if a is None or b is None:
        return None
    if operation[0] == "u":
        a, b = a % (1 << width), b % (1 << width)
    return "true" if _COMPARED[operation[-2:]](a, b) else "false"


_NEUTRAL = frozenset({"add", "sub", "or", "xor"})
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}


def resize(value: LlvmValue, width: int, signed: bool) -> str:
    """The bits of a value cut or extended to `width`."""
    if value.type.width == width:
        return value.text
    number = number_of(value.text)
    if number is not None:
        return bits_text(number if signed else number % (1 << value.type.width), width)
    operation = "trunc" if width < value.type.width else "sext" if signed else "zext"
    return value.function.builder.value(f"{operation} {value.typed} to i{width}")


class LlvmAddress:
    """Where an instruction points: an offset or address of 64 bits in a state space, None for a generic address."""

    __slots__ = ("space", "value")

    def __init__(self, space: str | None, value: LlvmValue) -> None:
        self.space = space
        self.value = value

    def __add__(self, bytes: int | LlvmValue) -> LlvmAddress:
        return LlvmAddress(self.space, self.value + bytes)
