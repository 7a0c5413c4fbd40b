"""Whether every timed call computes what the checked one did: fingerprints of answers, taken on the GPU.

Before a sample, what contenders write is overwritten with NaNs and pushed out of the L2 cache; after it, a number is
computed from all bits of each answer. A call that writes nothing, or something else, is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ptxlab.device.arrays import Array
from ptxlab.launch.launches import Arrays
from ptxlab.measure.checking import WrongAnswerError, as_float64
from ptxlab.measure.data import poison

_ROW = 1021  # elements; a prime, so that no pattern of a kernel repeats with it
_BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def fingerprint(xp: ModuleType, array: Array) -> Any:
    """A number of 64 bits that depends on every bit of an array and, but for sums that collide, on its position.

    >>> import numpy
    >>> one, other = numpy.arange(5000, dtype=numpy.float32), numpy.arange(5000, dtype=numpy.float32)
    >>> other[[7, 4000]] = other[[4000, 7]]
    >>> bool(fingerprint(numpy, one) == fingerprint(numpy, other))
    False
    """
    bits = array.reshape(-1).view(getattr(xp, _BITS[array.itemsize]))
    whole = bits.shape[0] // _ROW * _ROW
    rows, rest = bits[:whole].reshape(-1, _ROW), bits[whole:]
    parts = rows.sum(0, dtype=xp.int64), rows.sum(1, dtype=xp.int64), rest
    first, second, third = ((sums * _weights(xp, sums)).sum(dtype=xp.int64).reshape(1) for sums in parts)
    return first + 3 * second + 5 * third


def _weights(xp: ModuleType, like: Any) -> Any:
    """Odd numbers without a pattern, as many as there are sums."""
    near = {"device": like.device} if hasattr(xp, "cuda") else {}
    return xp.arange(like.shape[0], dtype=xp.int64, **near) * 2654435761 % 2147483647 * 2 + 1


class Answers:
    """What a contender wrote into each set of data, and the fingerprints of it, in the order of its calls."""

    def __init__(self, torch: ModuleType, name: str, sets: Sequence[Arrays], names: Sequence[str], evict: Any) -> None:
        self.torch, self.name, self.sets, self.names, self.evict = torch, name, sets, names, evict
        self.returned: list[Arrays] = [{} for _ in sets]
        self.taken: list[list[Any]] = [[] for _ in sets]
        self.checked: Arrays = {}
        self.distances: dict[str, list[float]] = {}
        """How far answers of the first set were from the checked ones, in the norm of these, where bits differed."""

    def keep(self, number: int, action: Callable[[], object]) -> Callable[[], object]:
        """The action on a set, such that what a library returns is kept as its answer."""

        def run() -> None:
            found = action()
            if isinstance(found, dict):
                self.returned[number] = found

        return run

    def of(self, number: int) -> Arrays:
        """The answers of a set."""
        return {name: self.returned[number].get(name, self.sets[number][name]) for name in self.names}

    def keep_checked(self) -> None:
        """The answers of the first set were right."""
        self.checked = {name: value.clone() for name, value in self.of(0).items()}
        self.take(1)

    def spoil(self, count: int) -> None:
        """Overwrite the answers of so many sets, and leave nothing of that in the L2 cache."""
        for number in range(count):
            for value in self.of(number).values():
                poison(self.torch, value)
        self.evict.sum()

    def take(self, count: int) -> None:
        """Take the fingerprints of so many sets."""
        for number in range(count):
            self.taken[number].append([fingerprint(self.torch, value) for value in self.of(number).values()])
        first, *_, last = self.taken[0] * 2
        if [one.item() for one in first] != [one.item() for one in last]:  # before another contender writes there
            for name, value in self.of(0).items():
                given, wanted = (as_float64(self.torch, one) for one in (value, self.checked[name]))
                off, scale = (float((one * one).sum()) ** 0.5 for one in (given - wanted, wanted))
                self.distances.setdefault(name, []).append(off / scale if scale else off)

    def compare(self, allowed: float) -> tuple[int, int]:
        """How many answers were compared with an earlier one of the same data, and how many had the same bits.

        Other bits are allowed where the library adds in another order in each call: then the answers of the first set
        are near the one that was checked.
        """
        compared = same = 0
        for taken in self.taken:
            numbers = [tuple(one.item() for one in each) for each in taken]
            compared += len(numbers[1:])
            same += sum(one == numbers[0] for one in numbers[1:])
        for name, distances in self.distances.items():
            if not all(one <= 2 * allowed for one in distances):  # NaN is wrong, too
                raise WrongAnswerError(f"{self.name}: `{name}` was right when it was checked, and not when timed")
        return compared, same
