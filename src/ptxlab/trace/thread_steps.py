"""The steps of one thread: their numbers in the launch, their instructions, and how deep in calls each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxlab.trace.columns import Columns, Numbers
from ptxlab.trace.registers import depths


@dataclass(frozen=True)
class ThreadSteps:
    """What a thread executes, in order."""

    numbers: Numbers
    instructions: Numbers
    depths: Numbers

    def next(self, position: int) -> int:
        """The index of the first step that is not executed at a position; as many as there are, if all are."""
        return int(np.searchsorted(self.numbers, position))

    def callers(self, index: int) -> list[int]:
        """The indices of the calls that a step is in, the innermost first."""
        found: list[int] = []
        depth = int(self.depths[index])
        for below in range(depth - 1, -1, -1):
            before = np.flatnonzero(self.depths[:index] == below)
            if len(before):
                index = int(before[-1])
                found.append(index)
        return found


def steps_of(columns: Columns, thread: int) -> ThreadSteps:
    """The steps of a thread of the grid."""
    entries = columns.entries_by(thread)
    kinds = columns.segment[entries]
    counts = columns.first_step[entries + 1] - columns.first_step[entries]
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers = np.repeat(columns.first_step[entries], counts) + inside
    tables = [np.array([number for number, _ in segment.steps], np.int64) for segment in columns.segments]
    starts = np.cumsum([0, *map(len, tables)])
    table = np.concatenate([*tables, np.zeros(0, np.int64)])
    instructions = table[np.repeat(starts[kinds], counts) + inside]
    depth, _ = depths(columns, entries)
    known = numbers < columns.steps
    return ThreadSteps(numbers[known], instructions[known], np.repeat(depth, counts)[known])
