"""Whether an answer is right; it is checked before anything is timed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ptxlab.launch.launches import Arrays
from ptxlab.measure.entry import Entry, Size


class WrongAnswerError(Exception):
    """A contender that does not compute what the reference says."""


@dataclass(frozen=True)
class Error:
    """How far an answer is from the reference in float64."""

    relative: float
    """‖answer − reference‖ / ‖reference‖, the largest of the problem's answers."""
    mean: float
    """The mean of |answer − reference|."""


def expect(xp: ModuleType, entry: Entry, arrays: Arrays) -> Arrays:
    """The right answers, in float64, by NumPy or torch."""
    found: Arrays = entry.reference(xp, **{name: as_float64(xp, value) for name, value in arrays.items()})
    return found


def check(xp: ModuleType, entry: Entry, size: Size, arrays: Arrays, expected: Arrays, contender: str) -> Error:
    """How far the answers in `arrays` are from what is expected; too far is a `WrongAnswerError`."""
    allowed, relative, mean = entry.allowed(size), 0.0, 0.0
    for name, wanted in expected.items():
        given = as_float64(xp, arrays[name])
        if tuple(given.shape) != tuple(wanted.shape):
            raise WrongAnswerError(
                f"{contender}: `{name}` is {tuple(given.shape)}, the reference {tuple(wanted.shape)}"
            )
        difference = abs(given - wanted)
        off = float((difference * difference).sum()) ** 0.5
        scale = float((wanted * wanted).sum()) ** 0.5
        error = off / scale if scale else (0.0 if off == 0 else math.inf)
        if not error <= allowed:  # NaN is wrong, too
            index = furthest(xp, difference)
            raise WrongAnswerError(
                f"{contender}: `{name}` is wrong: ‖answer − reference‖ is {error:.2e} of ‖reference‖, "
                f"{allowed:.0e} is allowed; "
                f"element {index} is {float(given[index])!r} instead of {float(wanted[index])!r}"
            )
        relative, mean = max(relative, error), max(mean, float(difference.sum()) / max(math.prod(given.shape), 1))
    return Error(relative, mean)


def furthest(xp: ModuleType, difference: Any) -> tuple[int, ...]:
    """Where the answer is furthest from the reference; a NaN is furthest."""
    distance = xp.where(difference == difference, difference, math.inf)
    index, shape = int(distance.argmax()), tuple(difference.shape)
    found = []
    for extent in reversed(shape):
        index, rest = divmod(index, extent)
        found.append(rest)
    return tuple(reversed(found))


def as_float64(xp: ModuleType, value: Any) -> Any:
    """An array in float64; other values as they are."""
    if not hasattr(value, "dtype"):
        return value
    return value.astype(xp.float64) if hasattr(value, "astype") else value.to(xp.float64)
