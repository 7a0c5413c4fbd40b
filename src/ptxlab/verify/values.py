"""Arrays compared with what they should hold, and the difference in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SHOWN = 6  # indices that are listed


@dataclass(frozen=True)
class Difference:
    """Where an array is wrong."""

    count: int
    of: int
    places: tuple[tuple[int, ...], ...]
    """The indices of the first that are wrong."""
    is_range: bool
    """Whether all of them are beside each other, from the first to `last`."""
    last: tuple[int, ...]
    found: Any
    """The first of them; None if it still has the value from before."""
    expected: Any
    unwritten: int
    """How many of them still have the value from before."""

    @classmethod
    def between(cls, found: Any, wanted: Any, wrong: Any, unwritten: Any) -> Difference:
        """The difference by which elements are wrong, and which still have the value from before."""
        flat = np.flatnonzero(wrong)
        places = [tuple(int(i) for i in np.unravel_index(one, wrong.shape)) for one in (*flat[:SHOWN], flat[-1])]
        first, last = places[0], places.pop()
        value = None if unwritten[first] else found[first]
        is_range = bool(flat[-1] - flat[0] + 1 == len(flat))
        left = int((unwritten & wrong).sum())
        return cls(len(flat), wrong.size, tuple(places), is_range, last, value, wanted[first], left)


def is_same(found: object, values: object, tolerance: float) -> bool:
    """Whether all are these values, also those next to 0."""
    return not _wrong(found, values, tolerance, least=0.0).any()


def compare(found: object, before: object, wanted: object, tolerance: float) -> Difference | None:
    """Where an array differs from what is wanted; None if nowhere."""
    wrong = _wrong(found, wanted, tolerance)
    if not wrong.any():
        return None
    same = np.asarray(found).view(np.uint8) == np.asarray(before).view(np.uint8)
    unwritten = same.reshape(*wrong.shape, -1).all(axis=-1)
    return Difference.between(np.asarray(found), np.broadcast_to(np.asarray(wanted), wrong.shape), wrong, unwritten)


def _wrong(found: object, wanted: object, tolerance: float, least: float = 1.0) -> Any:
    """Which elements are wrong; `least` is what the tolerance is multiplied by for an expected 0."""
    array = np.asarray(found)
    exact = np.broadcast_to(np.asarray(wanted), array.shape)
    same = (array == exact) | ((array != array) & (exact != exact))
    if not tolerance:
        return ~same
    with np.errstate(invalid="ignore", over="ignore"):
        values, right = array.astype(np.float64), exact.astype(np.float64)
        return ~(same | (np.abs(values - right) <= tolerance * (least + np.abs(right))))


def spell(name: str, found: Difference) -> str:
    """The difference in words: which elements, and the first of them."""
    value = "was not written" if found.found is None else f"is {_number(found.found)}"
    first = f"`{_element(name, found.places[0])}` {value}, expected {_number(found.expected)}"
    if found.of == 1 or found.count == 1:
        return first
    if found.count == found.of:
        which = f"all {found.of:,} elements are wrong"
    elif found.is_range:
        which = f"{found.count:,} of {found.of:,} are wrong, {_index(found.places[0])} to {_index(found.last)}"
    else:
        listed = ", ".join(map(_index, found.places)) + ", …" * (found.count > SHOWN)
        which = f"{found.count:,} of {found.of:,} are wrong: {listed}"
    some = f", {found.unwritten:,} of them not written" if 0 < found.unwritten < found.count else ""
    return f"{first}; {which}{some}"


def _element(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, index))}]"


def _index(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"


def _number(value: Any) -> str:
    return f"{float(value):.7g}" if np.issubdtype(np.asarray(value).dtype, np.floating) else f"{int(value)}"
