"""Paths between segments: what comes after what in the turns of loops, and where a barrier of the block is between."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Segment, following
from ptxlab.prove.terms.terms import Loop


class Paths:
    """The ways of threads through a kernel: all of a block pass the same barriers, in the same order."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        segments = execution.notes.segments
        self.barriers = [one for one in segments if one.barrier is not None and not one.is_of_warp]
        self._after: dict[tuple[Segment, tuple[Loop, ...]], set[Segment]] = {}

    def after(self, start: Segment, loops: tuple[Loop, ...] = ()) -> set[Segment]:
        """A segment and all that may come after it in the same turns of loops."""
        if (start, loops) not in self._after:
            self._after[start, loops] = self._following(start, loops, ())
        return self._after[start, loops]

    def is_synchronized(self, one: Segment, other: Segment, loops: tuple[Loop, ...] = ()) -> bool:
        """Whether each path to a segment, in a turn of loops, passes a barrier which only comes after another segment.

        So what a thread does in the one, once in each of these turns, is before what any thread does in the other.
        """
        barriers = [barrier for barrier in self.barriers if barrier in self.after(one, loops)
                    and one not in self.after(barrier, loops)]  # fmt: skip
        heads = [self.execution.entry] if not loops else [
            head for segment in self.execution.notes.segments for head, back in segment.successors if back is loops[-1]
        ]  # fmt: skip
        return bool(heads) and all(other not in self._following(head, loops, barriers) for head in heads)

    @staticmethod
    def _following(start: Segment, loops: Sequence[Loop], barriers: Collection[Segment]) -> set[Segment]:
        return following(start, lambda one, back: back not in loops and one not in barriers)
