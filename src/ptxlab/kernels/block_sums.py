"""Sums over blocks: each has multiplied a part of k, and stores a part of the columns of their tile.

A thread writes its accumulators where the other blocks can read them, and then adds what the same thread of each of
them wrote, in the order of blocks, so that the result is the same in every run. `ThroughCluster` does that in shared
memory, which blocks of a cluster can read; `ThroughMemory` in global memory, for any number of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import f32, ptx
from ptxlab.kernels.operands import STRIPE
from ptxlab.kernels.tile_stores import CHUNK
from ptxlab.kernels.warpgroups import GROUP, meet

EVERYONE = 8  # the barrier of all consumers; those of each warpgroup have its number


@dataclass(frozen=True)
class Parts:
    """`split` blocks compute a tile together, each a part of k; next to it may be others, of the same cluster.

    The tile has `columns` columns, and 64 rows for each of `tall` MMAs of `groups` warpgroups.
    """

    groups: int
    tall: int
    columns: int
    split: int
    cluster: int = 1

    @property
    def count(self) -> int:
        """Blocks that store a part of the tile each."""
        chunks = self.columns // CHUNK
        return max(count for count in range(1, self.split + 1) if chunks % count == 0)

    @property
    def width(self) -> int:
        """Columns that a block stores."""
        return self.columns // self.count

    @property
    def bytes(self) -> int:
        """Bytes of what a block leaves for the others that compute the same tile."""
        return 4 * STRIPE * self.tall * self.groups * self.columns if self.split > 1 else 0

    def offset(self, part: int, chunk: int) -> int:
        """How many numbers after its first ones a thread has those of a chunk of columns."""
        return (part * (self.columns // CHUNK) + chunk) * self.groups * GROUP * 4


class Exchange:
    """What both have in common: `own` is where a thread writes, `others` where it reads; sums are `accumulator`."""

    space = ""

    def __init__(self, accumulator: Any, parts: Parts, rank: Any) -> None:
        self.accumulator, self.parts, self.rank = accumulator, parts, rank
        self.own: Any = None
        self.others: list[Any] = []
        self.thread = ptx.tid.x * 4

    def deposit(self, accumulators: list[list[Any]]) -> None:
        """Write the accumulators for the other blocks."""
        store = ptx.st[self.space].v4.b32
        for part, values in enumerate(accumulators):
            for chunk in range(self.parts.columns // CHUNK):
                store(self.own + self.parts.offset(part, chunk), tuple(values[4 * chunk : 4 * chunk + 4]))

    def collect(self) -> list[list[Any]]:
        """The sums of this block's columns."""
        few = self.parts.width // CHUNK
        return [[one for chunk in range(few) for one in self.add(part, chunk)] for part in range(self.parts.tall)]

    def add(self, part: int, chunk: int) -> list[Any]:
        """The sums of one chunk."""
        read = [[self.accumulator() for _ in range(4)] for _ in self.others]
        for values, other in zip(read, self.others, strict=True):
            ptx.ld[other.space].v4.b32(other + self.parts.offset(part, chunk), out=tuple(values))
        return [sum(values[1:], values[0]) for values in zip(*read, strict=True)]

    def synchronize(self) -> None:
        """Synchronize all consumers of the block."""
        ptx.barrier.sync.aligned(EVERYONE, self.parts.groups * GROUP)


class ThroughCluster(Exchange):
    """Blocks of a cluster read each other's shared memory, where the stages were."""

    space = "shared"

    def __init__(self, accumulator: Any, parts: Parts, rank: Any, memory: Any) -> None:
        super().__init__(accumulator, parts, rank)
        self.own = memory.view(f32) + self.thread
        columns = (self.own + rank * parts.offset(0, parts.width // CHUNK)).address
        there = [ptx.mapa.shared__cluster.u32(columns, number) for number in range(parts.split)]
        self.others = [ptx.pointer_to(f32, "shared::cluster", address) for address in there]

    def deposit(self, accumulators: list[list[Any]]) -> None:
        """Write them when all consumers have read the last stage, and wait for the other blocks."""
        self.synchronize()
        super().deposit(accumulators)
        meet()

    def leave(self) -> None:
        """The kernel's last barrier keeps the memory."""


class ThroughMemory(Exchange):
    """Blocks write to global memory, and count at an integer of their tile who has written and who has read.

    The count is 0 again when all have read: `atom.inc` starts over after twice as many as there are blocks.
    """

    space = "global"

    def __init__(self, accumulator: Any, parts: Parts, rank: Any, partial: Any, counters: Any) -> None:
        super().__init__(accumulator, parts, rank)
        size, first = parts.bytes // 4, ptx.ctaid.x - rank * parts.cluster
        self.own = partial + ptx.mad.wide.u32(ptx.ctaid.x, size, ptx.cvt.u64.u32(self.thread))
        columns = self.thread + rank * parts.offset(0, parts.width // CHUNK)
        self.others = [
            partial + ptx.mad.wide.u32(first + number * parts.cluster, size, ptx.cvt.u64.u32(columns))
            for number in range(parts.split)
        ]
        tile = ptx.ctaid.x // (parts.split * parts.cluster) * parts.cluster
        self.counter = counters + (tile + ptx.cluster_ctarank if parts.cluster > 1 else tile)
        self.is_first = ptx.tid.x == 0

    def count(self) -> None:
        """Count this block."""
        ptx.atom.acq_rel.gpu.global_.inc.u32(self.counter, 2 * self.parts.split - 1)

    def deposit(self, accumulators: list[list[Any]]) -> None:
        """Write them, and wait until the other blocks have done so."""
        super().deposit(accumulators)
        self.synchronize()
        with ptx.when(self.is_first):
            self.count()
            with ptx.loop():
                ptx.repeat_when(ptx.ld.acquire.gpu.global_.u32(self.counter) < self.parts.split)
        self.synchronize()

    def leave(self) -> None:
        """Count this block as one that has read."""
        self.synchronize()
        with ptx.when(self.is_first):
            self.count()
