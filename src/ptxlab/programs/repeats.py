"""Launches that a program repeats, as benchmarks do: one that changed nothing is not run again.

A launch depends on its kernel, its arguments and the memory of the device alone. If it leaves the memory as it was,
then the same launch, with the same memory, does so again, prints the same and has the same findings. One that does
change memory is run as often as the program asks, unless the user has set a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

_BYTES_A_SECOND = 1_500_000_000  # that are copied or compared, with new pages
_EACH = 16  # launches after which it is tried again; before, at the second, fourth and eighth
_SHARE, _LATER_SHARE = 0.08, 0.6  # of a launch's time that may go into that, before and after that many
_LARGEST = 1 << 30  # bytes that are kept

Memory = Sequence["NDArray[Any]"]


@dataclass
class _Known:
    """How often a launch was run, and how long it took the last time."""

    count: int = 0
    seconds: float = 0.0


class Repeats:
    """The launches of a process so far."""

    def __init__(self, most: int | None = None) -> None:
        self._most, self.skipped = most, 0
        self._known: dict[Hashable, _Known] = {}
        self._state: Memory | None = None
        self._settled: dict[Hashable, str] = {}  # launches that leave `_state` as it is, with what they print
        self._without: set[Hashable] = set()  # launches that ran, and access no memory

    def run(
        self, key: Hashable, memory: Callable[[], Memory] | None, launch: Callable[[], tuple[int, str]]
    ) -> tuple[int, str]:
        """The status and the output of a launch; `key` is all that it depends on but for `memory`, if it has any."""
        known = self._known.setdefault(key, _Known())
        known.count += 1
        if self._most is not None and known.count > self._most:
            self.skipped += 1
            return 0, ""
        if memory is None:
            status, output = (0, "") if key in self._without else launch()
            if status == 0:
                self._without.add(key)
            return status, output
        is_tried = known.count > 1 and self._keep(key, known, memory())
        if is_tried and key in self._settled:
            return 0, self._settled[key]
        started = time.perf_counter(), time.process_time()
        status, output = launch()
        known.seconds = min(time.perf_counter() - started[0], time.process_time() - started[1])
        if is_tried and status == 0 and self._is_state(memory()):
            self._settled[key] = output
        elif is_tried:
            self._state, self._settled = None, {}
        return status, output

    def _keep(self, key: Hashable, known: _Known, memory: Memory) -> bool:
        """Whether the memory is `_state`; where it is worth the time, it is made so."""
        size = sum(map(len, memory))
        share = _SHARE if known.count < _EACH else _LATER_SHARE
        if key in self._settled:  # it is compared, and neither kept nor run
            share = 2
        is_quick = size < share * known.seconds * _BYTES_A_SECOND / 2
        if self._state is not None and is_quick:
            if self._is_state(memory):
                return True
            self._state, self._settled = None, {}
        if not is_quick or size > _LARGEST or (known.count & (known.count - 1) and known.count % _EACH):
            return False
        self._state = [part.copy() for part in memory]
        return True

    def _is_state(self, memory: Memory) -> bool:
        state = self._state
        return state is not None and len(state) == len(memory) and all(map(numpy.array_equal, state, memory))
