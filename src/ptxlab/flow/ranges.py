"""Arithmetic on what is known of integers: on exact bits, and on ranges.

A range is of integers modulo the width of a type: 0 to 5 and 2^32 to 2^32 + 5 are the same range of a `.u32`. What an
operator that minds the sign gets is brought to the numbers of its type first; a range that does not fit there is any
number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ptxlab.isa.exact import Exact
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.types import Type

from .steps import Step


class Range(Protocol):
    """Integers from `low` to `high`, both included."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...


Bounds = tuple[int, int]


def wrap(value: int, type: Type) -> int:
    """The bits of an integer in a type."""
    return value & ((1 << type.width) - 1)


def limits(type: Type) -> Bounds:
    """The least and the greatest integer of a type."""
    half = 1 << (type.width - 1)
    return (-half, half - 1) if type.kind == "s" else (0, 2 * half - 1)


def read(number: Range, type: Type) -> Bounds:
    """The integers that a range is, read as a type."""
    least, greatest = limits(type)
    turns = (number.low - least) >> type.width
    low, high = number.low - (turns << type.width), number.high - (turns << type.width)
    return (low, high) if high <= greatest else (least, greatest)


def _unsigned(number: Range, type: Type) -> Bounds:
    low, high = number.low, number.high
    turns = low >> type.width
    low, high = low - (turns << type.width), high - (turns << type.width)
    return (low, high) if high < 1 << type.width else (0, (1 << type.width) - 1)


def span(bounds: Bounds, type: Type) -> Bounds:
    """A range of results, or all numbers of the type if it goes round."""
    return bounds if bounds[1] - bounds[0] < 1 << type.width else limits(type)


def _extremes(step: Step, operation: Callable[[int, int], int], first: Bounds, second: Bounds) -> Bounds:
    found = [operation(a, b) for a in first for b in second]
    return span((min(found), max(found)), step.type)


def _sum(step: Step, numbers: Sequence[Range]) -> Bounds:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return span((a + c, b + d), step.type)


def _difference(step: Step, numbers: Sequence[Range]) -> Bounds:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return span((a - d, b - c), step.type)


def _product(step: Step, numbers: Sequence[Range]) -> Bounds:
    return _extremes(step, lambda a, b: a * b, *(read(number, step.of) for number in numbers))


def _quotient(step: Step, numbers: Sequence[Range]) -> Bounds | None:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return (a // d, b // c) if a >= 0 and c > 0 else None


def _remainder(step: Step, numbers: Sequence[Range]) -> Bounds | None:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    if a < 0 or c <= 0:
        return None
    return (a, b) if b < c else (0, min(b, d - 1))


def _and(step: Step, numbers: Sequence[Range]) -> Bounds:
    return 0, min(_unsigned(number, step.of)[1] for number in numbers)


def _or(step: Step, numbers: Sequence[Range]) -> Bounds:
    found = [_unsigned(number, step.of) for number in numbers]
    return max(low for low, _ in found), (1 << max(high for _, high in found).bit_length()) - 1


def _xor(step: Step, numbers: Sequence[Range]) -> Bounds:
    return 0, _or(step, numbers)[1]


def _left(step: Step, numbers: Sequence[Range]) -> Bounds:
    count = _unsigned(numbers[1], step.of)
    if count[1] >= step.of.width:
        return limits(step.type)
    return _extremes(step, lambda a, b: a << b, read(numbers[0], step.of), count)


def _right(step: Step, numbers: Sequence[Range]) -> Bounds:
    count = _unsigned(numbers[1], step.of)
    if count[1] >= step.of.width:
        return limits(step.type)
    return _extremes(step, lambda a, b: a >> b, read(numbers[0], step.of), count)


def _less(step: Step, numbers: Sequence[Range]) -> bool | None:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return True if b < c else False if a >= d else None


def _at_most(step: Step, numbers: Sequence[Range]) -> bool | None:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return True if b <= c else False if a > d else None


def _equal(step: Step, numbers: Sequence[Range]) -> bool | None:
    (a, b), (c, d) = (read(number, step.of) for number in numbers)
    return False if b < c or d < a else None


def _cast(step: Step, numbers: Sequence[Range]) -> Bounds:
    return span(read(numbers[0], step.of), step.type)


def _pack(step: Step, numbers: Sequence[Range]) -> Bounds:
    low = high = position = 0
    for number, part in zip(numbers, step.detail, strict=True):
        bounds = _unsigned(number, part)
        low, high, position = low + (bounds[0] << position), high + (bounds[1] << position), position + part.width
    return low, high


def _part(step: Step, numbers: Sequence[Range]) -> Bounds | None:
    low, high = (bound >> step.detail for bound in _unsigned(numbers[0], step.of))
    return (low, high) if high < 1 << step.type.width else None


RANGES: dict[str, Callable[[Step, Sequence[Range]], Bounds | None]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "//": _quotient,
    "%": _remainder,
    "&": _and,
    "|": _or,
    "^": _xor,
    "<<": _left,
    ">>": _right,
    "cast": _cast,
    "pack": _pack,
    "part": _part,
}
"""What a step makes of ranges; None: anything."""
DECISIONS: dict[str, Callable[[Step, Sequence[Range]], bool | None]] = {"<": _less, "<=": _at_most, "==": _equal}
"""What a comparison of ranges decides for all of them."""


def bounds_of(step: Step, numbers: Sequence[Range]) -> Bounds:
    """What a step makes of ranges, all numbers of the type if nothing is known."""
    find = RANGES.get(step.operation) if step.of.kind != "f" and step.of.lanes == 1 else None
    return (None if find is None else find(step, numbers)) or limits(step.type)


def function_of(step: Step) -> Callable[..., int] | None:
    """What a step makes of bits; None for a native function or a float, which the reference machine computes."""
    make = _FUNCTIONS.get(step.operation)
    return None if make is None or (step.of.kind == "f" and step.operation in "<==") else make(step)


def fold(step: Step, bits: Sequence[int]) -> int | None:
    """What a step makes of the bits of its parts; None if that does not follow from them."""
    compute = function_of(step)
    if compute is not None:
        return compute(*bits)
    if step.operation == "select":
        return bits[1] if bits[0] else bits[2]
    machine = Exact()
    if step.operation == "call":
        function, how = step.detail
        values = iter(bits)
        given = [one if isinstance(one, int) else Pattern.of(one, next(values)) for one in how]
        called: Any = machine.call(function, *given, type=step.type.name)
        return int(called.bits)
    if step.operation == "arithmetic":
        operation, how = step.detail
        found: Any = machine.arithmetic(operation, *(Pattern.of(step.of, one) for one in bits), **how)
        return int(found.bits)
    if step.operation in ("<", "<=", "=="):
        compared: Any = _COMPARED[step.operation](*(Pattern.of(step.of, one) for one in bits))
        return int(compared.bits)
    return None


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {"<": operator.lt, "<=": operator.le, "==": operator.eq}


def _plain(operation: Callable[[int, int], int]) -> Callable[[Step], Callable[..., int]]:
    """An operator that does not mind the sign."""

    def make(step: Step) -> Callable[..., int]:
        mask = (1 << step.type.width) - 1
        return lambda a, b: operation(a, b) & mask

    return make


def _signed(operation: Callable[[int, int], int], *, counts: bool = False) -> Callable[[Step], Callable[..., int]]:
    """An operator that reads both sides, or only the first, as numbers of their type."""

    def make(step: Step) -> Callable[..., int]:
        mask, sign = (1 << step.type.width) - 1, 1 << (step.of.width - 1) if step.of.kind == "s" else 0
        if not sign:
            return lambda a, b: operation(a, b) & mask
        if counts:
            return lambda a, b: operation((a ^ sign) - sign, b) & mask
        return lambda a, b: operation((a ^ sign) - sign, (b ^ sign) - sign) & mask

    return make


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _make_cast(step: Step) -> Callable[..., int]:
    mask, sign = (1 << step.type.width) - 1, 1 << (step.of.width - 1) if step.of.kind == "s" else 0
    return lambda a: ((a ^ sign) - sign) & mask


def _make_part(step: Step) -> Callable[..., int]:
    mask, bit = (1 << step.type.width) - 1, step.detail
    return lambda a: a >> bit & mask


def _make_pack(step: Step) -> Callable[..., int]:
    positions = [sum(part.width for part in step.detail[:number]) for number in range(len(step.detail))]
    return lambda *parts: sum(part << position for part, position in zip(parts, positions, strict=True))


_FUNCTIONS: dict[str, Callable[[Step], Callable[..., int]]] = {
    "+": _plain(lambda a, b: a + b),
    "-": _plain(lambda a, b: a - b),
    "*": _plain(lambda a, b: a * b),
    "&": _plain(lambda a, b: a & b),
    "|": _plain(lambda a, b: a | b),
    "^": _plain(lambda a, b: a ^ b),
    "<<": _plain(lambda a, b: a << b),
    ">>": _signed(lambda a, b: a >> b, counts=True),
    "//": _signed(_divide),
    "%": _signed(lambda a, b: a - _divide(a, b) * b),
    "<": _signed(lambda a, b: a < b),
    "<=": _signed(lambda a, b: a <= b),
    "==": _plain(lambda a, b: a == b),
    "cast": _make_cast,
    "part": _make_part,
    "pack": _make_pack,
    "shuffle": lambda step: lambda value, lane, clamp: value,
}
