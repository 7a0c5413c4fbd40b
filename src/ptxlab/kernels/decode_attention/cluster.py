"""Short caches: the blocks of one cluster share a head, and put its result together through shared memory.

Block number r of n has the tiles r, r + n and so on, whatever the length of the sequence is: so the first of them can
be copied while that length, and the queries, are still on their way. At the end each block has a few columns of the
result: the others store their sums of these there, and an mbarrier counts the bytes. There is no memory to write to
and read from again, and no counter of blocks.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import b64, f32, ptx
from ptxlab.kernels.decode_attention.attend import Warp
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.results import Results
from ptxlab.kernels.decode_attention.schedule import tiles_of
from ptxlab.kernels.parts.reductions import STORE, there

BYTES = 24  # of four sums, their maximum and their total


class InCluster(Results):
    """What the blocks of a cluster exchange."""

    def __init__(self, plan: Plan, warp: Warp, factor: Any) -> None:
        super().__init__(plan, warp, factor)
        self.blocks, self.rank = plan.cluster, ptx.cluster_ctarank
        self.held = self.held + 2 * plan.ring // 4
        chunks = plan.rows * plan.size // 4 // self.blocks
        self.sums = ptx.shared(f32, chunks * self.blocks * 4, align=16, name="sums").vector(4)
        self.scales = ptx.shared(f32, chunks * self.blocks * 2, align=8, name="scales").vector(2)
        self.arrived = ptx.shared(b64, 1, name="arrived").at(0)
        with ptx.when(self.thread == 0):
            ptx.mbarrier.init.shared.b64(self.arrived, 1)
            ptx.fence.mbarrier_init.release.cluster()
        ptx.barrier.cluster.arrive.relaxed()

    def finish(self, o: Any, rows: Any) -> None:
        """Put together what the warps of all blocks have, and write the result."""
        plan, blocks = self.plan, self.blocks
        total = rows * (plan.size // 4)
        own = (total - self.rank + (blocks - 1)) // blocks  # this block's part of the result, in fours
        with ptx.when(self.thread == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(self.arrived, own * (blocks * BYTES))
        self.leave()
        ptx.bar.sync(0)
        ptx.barrier.cluster.wait.acquire()  # all blocks run
        for row, column in self.chunks(rows):
            number = row * (plan.size // 4) + column // 4
            owner, place = number % blocks, number // blocks * blocks + self.rank
            sums, *scale = self.over_warps(row, column)
            arrived = there(self.arrived, owner)
            STORE.v4.b32(there(self.sums + place, owner), tuple(sums), arrived)
            STORE.v2.b32(there(self.scales + place, owner), tuple(scale), arrived)
        with ptx.loop():
            done = ptx.mbarrier.try_wait.parity.acquire.cluster["shared::cta"].b64(self.arrived, 0)
            ptx.repeat_when(~done)
        for place in ptx.range(self.thread, own, plan.threads):
            read = [self._received(place * blocks + part) for part in range(blocks)]
            number = place * blocks + self.rank
            across = plan.size // 4
            self.write(o, number // across, number % across * 4, *self.together(read))

    def _received(self, place: Any) -> tuple[Any, Any, Any]:
        sums, scale = tuple(f32() for _ in range(4)), (f32(), f32())
        ptx.ld.shared.v4.f32(self.sums + place, out=sums)
        ptx.ld.shared.v2.f32(self.scales + place, out=scale)
        return sums, *scale

    def count(self, length: Any) -> Any:
        """Tiles of keys that this block has of a sequence."""
        return (ptx.max.u32(tiles_of(length, self.plan.tile), self.rank) - self.rank + (self.blocks - 1)) // self.blocks
