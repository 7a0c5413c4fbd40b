"""What a value of lanes that execute a kernel together looks like, beside one that is the same in all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

NUMBER = re.compile(r"-?\d+$")


class NotTogetherError(Exception):
    """Lanes cannot execute this together; the message says what."""


@dataclass(frozen=True, slots=True)
class Extension:
    """A sum of 32 bits that was extended to 64: where it wraps around, lanes are not evenly spaced."""

    start: str  # the 32 bits of the first lane
    step: int  # from lane to lane, of the 32 bits
    cast: str  # `zext` or `sext`
    factor: int  # that the extended number was multiplied by


@dataclass(frozen=True, slots=True)
class Strided:
    """A value whose name is that of the first lane; the others follow at a distance of `stride`."""

    stride: int
    extension: Extension | None = None

    @property
    def kind(self) -> tuple[object, ...]:
        """What two values must have in common to be held by one variable."""
        if self.extension is None:
            return (self.stride,)
        return self.stride, self.extension.step, self.extension.cast, self.extension.factor


@dataclass(frozen=True, slots=True)
class Indexed:
    """A value of 64 bits whose name is that of its uniform part: in each lane a number of 32 bits is added to it.

    So an address in an array is, which is checked as a number. Only what is computed in one block is known to be this.
    """

    index: str  # a vector of 32 bits
    cast: str  # `zext` or `sext`
    factor: int  # that the extended number is multiplied by


@dataclass(frozen=True, slots=True)
class Varying:
    """A vector."""


Held = Strided | Varying  # by a variable
Shape = Held | Indexed
VARYING = Varying()


def moved(operation: str, shapes: Sequence[Shape | None], second: str) -> Indexed | None:
    """The shape of the sum of an indexed value and a uniform one, or of its product with a constant."""
    a, b = shapes
    if isinstance(a, Indexed) and b is None:
        if operation in ("add", "sub"):
            return a
        factor = _factor(operation, second)
        if factor is not None and 0 < a.factor * factor < 1 << 16:
            return Indexed(a.index, a.cast, a.factor * factor)
    return b if isinstance(b, Indexed) and a is None and operation == "add" else None


def _factor(operation: str, second: str) -> int | None:
    """What an operation with a constant multiplies by."""
    if not NUMBER.match(second):
        return None
    return int(second) if operation == "mul" else 1 << int(second) if operation == "shl" else None


def combined(operation: str, shapes: Sequence[Shape | None], second: str) -> Strided | None:
    """The shape of a sum, or of a product with a constant, of values that are linear or uniform."""
    if any(isinstance(shape, Indexed) for shape in shapes):
        return None
    a, b = (shape if isinstance(shape, Strided) else Strided(0) for shape in shapes)
    if operation in ("add", "sub"):
        if a.extension is not None and b.stride == 0 and b.extension is None:
            return a
        if operation == "add" and b.extension is not None and a.stride == 0 and a.extension is None:
            return b
        if a.extension is None and b.extension is None:
            return Strided(a.stride + (b.stride if operation == "add" else -b.stride))
        return None
    factor = _factor(operation, second)
    if factor is None or not 0 < abs(factor) < 1 << 16 or abs(a.stride * factor) >= 1 << 24:
        return None
    if a.extension is None:
        return Strided(a.stride * factor)
    e = a.extension
    return Strided(a.stride * factor, Extension(e.start, e.step, e.cast, e.factor * factor))


def cast_number(operation: str, type: str, number: str, to: str) -> str:
    value, width = int(number), int(type[1:])
    return str(wrapped(value & ((1 << width) - 1) if operation == "zext" else value, int(to[1:])))


def wrapped(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value
