"""Turns of warpgroups: one computes P while the tensor cores multiply for another, and then lets that one."""

from __future__ import annotations

from ptxlab.author import ptx, u32
from ptxlab.kernels.parts.warpgroups import GROUP

FIRST = 8  # the named barrier at which warpgroup 0 waits; those of the others come after it


class WeightTurns:
    """A ring of `groups` warpgroups. Each waits at a barrier of its own, at which the one before it arrives.

    A named barrier takes a third of the time of an `mbarrier`.
    """

    def __init__(self, group: u32, groups: int) -> None:
        self.group, self.groups = group, groups

    def start(self) -> None:
        """Let the first begin."""
        ptx.barrier.arrive.aligned(u32(FIRST), 2 * GROUP, when=self.group == self.groups - 1)

    def wait(self) -> None:
        """Wait for the turn."""
        ptx.barrier.sync.aligned(self.group + FIRST, 2 * GROUP)

    def give(self) -> None:
        """Let the next one begin."""
        following = ptx.selp.u32(0, self.group + 1, self.group == self.groups - 1)
        ptx.barrier.arrive.aligned(following + FIRST, 2 * GROUP)

    def end(self) -> None:
        """The first takes the turn that is left: all have had as many."""
        ptx.barrier.sync.aligned(u32(FIRST), 2 * GROUP, when=self.group == 0)
