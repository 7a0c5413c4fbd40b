"""What the operators of a debugger's expressions do: each makes, of evaluations of its operands, that of the whole.

Numbers are computed as C++ does; see `expressions.py`, which reads the text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

from ptxlab.debug.objects import (
    Object,
    Operand,
    ReadableMemory,
    Result,
    UnknownError,
    address_of,
    common,
    converted,
    dereference,
    element,
    load,
    member,
    resolve,
)
from ptxlab.debug.types import CudaType, array_of, named, pointer_to

_COMPARED = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le,
             ">=": operator.ge}  # fmt: skip
_BITS = {"|": operator.or_, "^": operator.xor, "&": operator.and_, "<<": operator.lshift, ">>": operator.rshift}
_NUMBERS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BOOL = named("bool")


class Names(ReadableMemory, Protocol):
    """What the names in an expression mean, to a thread."""

    def find(self, name: str) -> Operand:
        """A variable, an argument or a constant."""
        ...

    def register(self, name: str) -> Any:
        """A register."""
        ...

    def shaped(self, address: int, index: tuple[int, ...]) -> Object:
        """An element of the array that is at an address, by several indices."""
        ...


Evaluation = Callable[[Names], Operand]


def type_of(operand: Operand) -> CudaType | None:
    """The type of an operand; None: it has none."""
    return operand.type


def cast_to(type: CudaType, inner: Evaluation) -> Evaluation:
    """An operand as another type."""

    def cast(names: Names) -> Operand:
        if type.kind == "structure":
            raise UnknownError(f"a value cannot be made a `{type}`; a pointer can point to one")
        found = load(inner(names), names)
        if type.kind == "pointer" and found.type is not None and found.type.kind == "pointer":
            kept = found.type.space if type.space == "generic" else type.space
            return Result(found.value, pointer_to(type.element, kept))
        return converted(found.value, type)

    return cast


def choice(condition: Evaluation, first: Evaluation, second: Evaluation) -> Evaluation:
    """`condition ? first : second`."""
    return lambda names: (first if load(condition(names), names).value else second)(names)


def member_of(inner: Evaluation, name: str) -> Evaluation:
    """`inner.name`."""
    return lambda names: member(inner(names), name, names)


def subscript(inner: Evaluation, indices: list[Evaluation]) -> Evaluation:
    """`inner[index]`, with one or more of them."""

    def subscripted(names: Names) -> Operand:
        found = inner(names)
        at = tuple(int(load(one(names), names).value) for one in indices)
        if isinstance(found, Object):
            found = resolve(found, names)
        if len(at) > 1 and found.type is not None and found.type.kind == "pointer":
            return names.shaped(int(load(found, names).value), at)
        for index in at:
            found = element(found, index, names)
        return found

    return subscripted


def _negated(inner: Evaluation) -> Evaluation:
    def negated(names: Names) -> Operand:
        found = load(inner(names), names)
        return converted(-found.value, common(found, Result(0)))

    return negated


def _inverted(inner: Evaluation) -> Evaluation:
    def inverted(names: Names) -> Operand:
        found = load(inner(names), names)
        return converted(~int(found.value), common(found, Result(0)))

    return inverted


def _address(inner: Evaluation) -> Evaluation:
    def address(names: Names) -> Operand:
        found = inner(names)
        if isinstance(found, Result):
            raise UnknownError("a number or a register has no address")
        return address_of(resolve(found, names))

    return address


UNARIES: dict[str, Callable[[Evaluation], Evaluation]] = {
    "-": _negated,
    "+": lambda inner: lambda names: load(inner(names), names),
    "~": _inverted,
    "!": lambda inner: lambda names: Result(not load(inner(names), names).value, BOOL),
    "*": lambda inner: lambda names: dereference(inner(names), names),
    "&": _address,
}


def binary(word: str, left: Evaluation, right: Evaluation) -> Evaluation:
    """Two operands with an operator between them."""

    def computed(names: Names) -> Operand:
        if word in ("and", "&&", "or", "||"):
            first = bool(load(left(names), names).value)
            is_decided = first == (word in ("or", "||"))
            return Result(first if is_decided else bool(load(right(names), names).value), BOOL)
        if word == "@":
            return _repeated(left(names), int(load(right(names), names).value))
        return _computed(word, load(left(names), names), load(right(names), names))

    return computed


def _repeated(first: Operand, count: int) -> Object:
    """`*A@8`: so many elements from one on."""
    if isinstance(first, Result) or first.data is not None or count < 1:
        raise UnknownError("`@` is between something in memory and a number of elements: `*A@8`")
    return Object(array_of(first.type, [count]), first.space, first.address)


def _computed(word: str, one: Result, other: Result) -> Result:
    pointers = [operand.type for operand in (one, other) if operand.type is not None and operand.type.kind == "pointer"]
    if pointers and word in ("+", "-"):
        return _moved(word, one, other)
    if word in _COMPARED:
        type = None if pointers else common(one, other)
        values = [converted(operand.value, type).value for operand in (one, other)]
        return Result(bool(_COMPARED[word](*values)), BOOL)
    if word in _BITS:
        shifted = word in ("<<", ">>")
        if shifted and not 0 <= int(other.value) < 1024:
            raise UnknownError(f"a number cannot be shifted by {other.value}")
        type = common(one, Result(0)) if shifted else common(one, other)
        return converted(_BITS[word](_whole(one), _whole(other)), type)
    type = common(one, other)
    values = [converted(operand.value, type).value for operand in (one, other)]
    return converted(_NUMBERS[word](*values) if word in _NUMBERS else _divided(word, *values), type)


def _whole(operand: Result) -> int:
    if isinstance(operand.value, float):
        raise UnknownError(f"{operand.value} is not a whole number")
    return int(operand.value)


def _moved(word: str, one: Result, other: Result) -> Result:
    """A pointer some elements further, or how many are between two."""
    if one.type is None or one.type.kind != "pointer":
        one, other = other, one
    assert one.type is not None
    size = one.type.element.size or 1
    if other.type is not None and other.type.kind == "pointer":
        return Result((int(one.value) - int(other.value)) // size)
    return converted(int(one.value) + size * int(other.value) * (1 if word == "+" else -1), one.type)


def _divided(word: str, one: float, other: float) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        if word == "//" or word == "%":
            return one // other if word == "//" else one % other
        if not other:
            return float("nan") if not one else float("inf") * (1 if one > 0 else -1)
        return one / other
    if not other:
        raise UnknownError("division by zero")
    if word == "//":
        return one // other
    quotient = abs(int(one)) // abs(int(other)) * (1 if (one < 0) == (other < 0) else -1)  # towards zero, as C++ does
    return quotient if word == "/" else int(one) - quotient * int(other)
