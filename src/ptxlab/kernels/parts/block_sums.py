"""Sums over blocks: each has multiplied a part of k, and stores a part of the columns of their tile.

A thread writes its accumulators to where the blocks are that store them, and then adds what the same thread of each
block wrote for its own, in the order of blocks, so that the result is the same in every run. `ThroughCluster` does that
in shared memory, which blocks of a cluster can write; `ThroughMemory` in global memory, for any number of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Scalar, b64, f32, pred, ptx
from ptxlab.kernels.parts.operands import STRIPE
from ptxlab.kernels.parts.tile_stores import CHUNK
from ptxlab.kernels.parts.warpgroups import GROUP

if TYPE_CHECKING:
    pass

PUSH = ptx["st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32"]
EVERYONE = 8  # the barrier of all consumers; those of each warpgroup have its number


@dataclass(frozen=True)
class Parts:
    """`split_k` blocks compute a tile together, each a part of k; next to it may be others, of the same cluster.

    The tile has `columns` columns, and 64 rows for each of `tall` MMAs of `groups` warpgroups.
    """

    groups: int
    tall: int
    columns: int
    split_k: int
    cluster: int = 1

    @property
    def count(self) -> int:
        """Blocks that store a part of the tile each."""
        chunks = self.columns // CHUNK
        return max(count for count in range(1, self.split_k + 1) if chunks % count == 0)

    @property
    def width(self) -> int:
        """Columns that a block stores."""
        return self.columns // self.count

    @property
    def size(self) -> int:
        """Numbers that a block computes for another one, or for itself."""
        return STRIPE * self.tall * self.groups * self.width

    @property
    def received(self) -> int:
        """Bytes of what a block adds."""
        return 4 * self.size * self.split_k if self.split_k > 1 else 0

    @property
    def bytes(self) -> int:
        """Bytes of what a block computes."""
        return 4 * self.size * self.count if self.split_k > 1 else 0


class Exchange:
    """What both have in common: `others` is where a thread reads what each block wrote; sums are `accumulator`."""

    def __init__(self, accumulator: type[Scalar], parts: Parts, rank: Any) -> None:
        self.accumulator, self.parts, self.rank = accumulator, parts, rank
        self.others: list[Any] = []
        self.thread = ptx.tid.x * 4

    @property
    def columns(self) -> int:
        """Columns of D that a block stores."""
        return self.parts.width

    def offset(self, part: int, chunk: int) -> int:
        """How many numbers after its first ones a thread has those of a chunk of columns."""
        return (part * (self.parts.width // CHUNK) + chunk) * self.parts.groups * GROUP * 4

    def write(self, store: Any, first: Any, accumulators: list[list[Any]], target: int, *signal: Any) -> None:
        """Write the columns that one block stores."""
        few = self.parts.width // CHUNK
        for part, values in enumerate(accumulators):
            for chunk in range(few):
                store(first + self.offset(part, chunk), tuple(values[4 * (target * few + chunk) :][:4]), *signal)

    def collect(self) -> list[list[Any]]:
        """The sums of this block's columns."""
        few = self.parts.width // CHUNK
        return [[one for chunk in range(few) for one in self.add(part, chunk)] for part in range(self.parts.tall)]

    def add(self, part: int, chunk: int) -> list[Any]:
        """The sums of one chunk."""
        read = [[self.accumulator() for _ in range(4)] for _ in self.others]
        for values, other in zip(read, self.others, strict=True):
            ptx.ld[other.space].v4.b32(other + self.offset(part, chunk), out=tuple(values))
        return [sum(values[1:], values[0]) for values in zip(*read, strict=True)]

    def synchronize(self) -> None:
        """Synchronize all consumers of the block."""
        ptx.barrier.sync.aligned(EVERYONE, self.parts.groups * GROUP)


class ThroughCluster(Exchange):
    """Blocks of a cluster write to each other's shared memory, where the stages were.

    Of two barriers, `free` says that all blocks have read their last stages, `summed` that all numbers are there.
    """

    def __init__(
        self, accumulator: type[Scalar], parts: Parts, rank: Any, memory: Pointer, free: Pointer, summed: Pointer
    ) -> None:
        super().__init__(accumulator, parts, rank)
        self.free, self.summed = free, summed
        own = memory.view(f32) + self.thread
        self.own = own + rank * parts.size
        self.others = [own + number * parts.size for number in range(parts.split_k)]

    @staticmethod
    def barriers(parts: Parts, when: pred) -> tuple[Pointer, Pointer]:
        """Both barriers, which the thread of `when` initializes: all warps arrive at the first."""
        free, summed = (ptx.shared(b64, 1, name=name).at(0) for name in ("free", "summed"))
        ptx.mbarrier.init.shared.b64(free, 4 * parts.groups * parts.split_k, when=when)
        ptx.mbarrier.init.shared.b64(summed, 1, when=when)
        return free, summed

    def deposit(self, accumulators: list[list[object]]) -> None:
        """Write them when all blocks have read their last stage, and wait until all are there."""
        parts = self.parts
        stores = self.rank < parts.count
        with ptx.when(ptx.and_.pred(ptx.tid.x == 0, stores)):
            ptx.mbarrier.arrive.expect_tx.shared.b64(self.summed, 4 * parts.size * (parts.split_k - 1))
        with ptx.when(ptx.laneid < parts.split_k):
            ptx.mbarrier.arrive.shared__cluster.b64(ptx.mapa.shared__cluster.u32(self.free.address, ptx.laneid))
        wait_once(self.free)
        for target in range(parts.count):
            with ptx.when(self.rank == target):
                self.write(ptx.st.shared.v4.b32, self.own, accumulators, target)
            with ptx.when(self.rank != target):
                there, signal = (ptx.mapa.shared__cluster.u32(one.address, target) for one in (self.own, self.summed))
                self.write(PUSH, ptx.pointer_to(f32, "shared::cluster", there), accumulators, target, signal)
        with ptx.when(stores):
            wait_once(self.summed)


def wait_once(barrier: Pointer) -> None:
    """Wait for the first phase of an `mbarrier`."""
    with ptx.loop():
        ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(barrier, 0))


class ThroughMemory(Exchange):
    """Blocks write to global memory, and count at an integer of their tile who has written and who has seen it.

    The count is 0 again when all have seen all others: `red.inc` starts over after twice as many as there are blocks.
    What a block computed for itself stays in registers.
    """

    kept: list[list[Any]]

    def __init__(self, accumulator: type[Scalar], parts: Parts, rank: object, partial: Any, counters: Any) -> None:
        super().__init__(accumulator, parts, rank)
        tile = ptx.ctaid.x // (parts.split_k * parts.cluster) * parts.cluster
        if parts.cluster > 1:
            tile = tile + ptx.cluster_ctarank
        thread = ptx.cvt.u64.u32(self.thread)
        slots = partial + ptx.mad.wide.u32(tile, parts.count * parts.split_k * parts.size, thread)
        self.own = slots + ptx.mul.wide.u32(rank, parts.size)
        first = slots + ptx.mul.wide.u32(rank, parts.split_k * parts.size)
        self.others = [first + number * parts.size for number in range(parts.split_k)]
        self.counter = counters + tile
        self.last, self.is_first = 2 * parts.split_k - 1, ptx.tid.x == 0

    def deposit(self, accumulators: list[list[object]]) -> None:
        """Write what others store, and wait until the other blocks have done so."""
        parts, own = self.parts, 4 * (self.parts.width // CHUNK)
        self.kept = [values[:own] for values in accumulators]
        select = ptx.selp[self.accumulator.type.name]
        for target in range(parts.count):
            is_other = self.rank != target
            with ptx.when(is_other):
                start = self.own + target * parts.split_k * parts.size
                self.write(ptx.st.global_.v4.b32, start, accumulators, target)
            if target:
                pairs = zip(self.kept, accumulators, strict=True)
                self.kept = [
                    [select(old, new, is_other) for old, new in zip(kept, values[target * own :], strict=False)]
                    for kept, values in pairs
                ]
        self.synchronize()
        with ptx.when(self.is_first):
            ptx.red.release.gpu.global_.inc.u32(self.counter, self.last)
            with ptx.loop():
                ptx.repeat_when(ptx.ld.acquire.gpu.global_.u32(self.counter) < self.parts.split_k)
            ptx.red.relaxed.gpu.global_.inc.u32(self.counter, self.last)  # this block has seen all others
        self.synchronize()

    def add(self, part: int, chunk: int) -> list[Any]:
        read = [[self.accumulator(one) for one in self.kept[part][4 * chunk :][:4]] for _ in self.others]
        for number, (values, other) in enumerate(zip(read, self.others, strict=True)):
            there = other + self.offset(part, chunk)
            ptx.ld.global_.v4.b32(there, out=tuple(values), when=self.rank != number)
        return [sum(values[1:], values[0]) for values in zip(*read, strict=True)]
