"""Reductions: by a butterfly of shuffles in a warp, through shared memory in a block, and in a cluster of blocks; and
the sums of a warp's lanes up to each one.

These are macros for kernels in Python: each writes its instructions where it is called.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ptxlab.author import Pointer, b32, b64, f32, ptx, u32

STORE = ptx.st["async"].weak["shared::cluster"]["mbarrier::complete_tx::bytes"]
WARP = 32
EVERY_LANE = 0xFFFFFFFF
V = TypeVar("V")  # a number, or a tuple of several


class Combine(Protocol):
    """Two values, or two tuples of several, as one. It may have a way of its own for those of many lanes."""

    def __call__(self, one: Any, other: Any) -> Any: ...


def add(one: f32, other: f32) -> f32:
    """The sum."""
    return one + other


def larger(one: f32, other: f32) -> f32:
    """The larger one."""
    return ptx.max.f32(one, other)


def over_warp(value: V, combine: Combine) -> V:
    """One value from those of all 32 lanes, in every lane, after five steps."""
    return over_lanes(value, combine, WARP)


def over_lanes(value: V, combine: Combine, lanes: int) -> V:
    """One value from those of so many lanes after each other, a power of two, in each of them."""
    if hasattr(combine, "over_lanes"):
        found: V = combine.over_lanes(value, lanes)
        return found
    distance = lanes // 2
    while distance:
        value = combine(value, _exchanged(value, distance))
        distance //= 2
    return value


def prefix_sum(value: u32, lane: u32 | None = None) -> u32:
    """The sum of the integers of all lanes of a warp up to each one, its own included, after five steps."""
    for distance in (1, 2, 4, 8, 16):
        other = ptx.shfl.sync.up.b32(value, distance, 0, EVERY_LANE)
        value = value + ptx.selp.u32(other, 0, (ptx.laneid if lane is None else lane) >= distance)
    return value


def _exchanged(value: object, distance: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_exchanged(one, distance) for one in value)
    return ptx.shfl.sync.bfly.b32(value, distance, 31, EVERY_LANE, out=f32())


def over_block(value: V, combine: Combine, threads: int) -> V:
    """One value from those of all threads of a block, in every thread, with one barrier.

    Each warp stores its own in shared memory; after the barrier each warp combines all of them. Each call has memory of
    its own, so the next one needs no second barrier.
    """
    value = over_lanes(value, combine, min(threads, WARP))
    if threads <= WARP:
        return value
    warps = threads // WARP
    thread = ptx.tid.x
    memory = of_warps(value, warps)
    with ptx.when((thread & (WARP - 1)) == 0):
        memory.at(thread >> 5).store(value)
    ptx.bar.sync(0)
    of_all: V = memory.at(thread & (warps - 1)).load()
    return over_lanes(of_all, combine, warps)


def of_warps(value: object, warps: int) -> Pointer:
    """Shared memory for a value of each warp: one number, or two, or four."""
    count = len(value) if isinstance(value, tuple) else 1
    memory = ptx.shared(f32, warps * count, align=4 * count, name="of_warps")
    return memory.vector(count) if count > 1 else memory


class Cluster:
    """The blocks of a cluster, which combine values once: each warp stores its own in the memory of every block.

    `st.async` counts what has arrived at an mbarrier of that block. Nothing is written to a block before it runs: the
    barrier of the cluster is for that, and while a thread waits for the others, the row is read. A block does not exit
    before it has received what is written to it, since it waits for that.
    """

    def __init__(self, threads: int, blocks: int) -> None:
        self.warps, self.blocks = threads // WARP, blocks
        self.arrived = ptx.shared(b64, 1, name="arrived").at(0)
        with ptx.when(ptx.tid.x == 0):
            ptx.mbarrier.init.shared.b64(self.arrived, 1)
            ptx.fence.mbarrier_init.release.cluster()
        ptx.barrier.cluster.arrive.relaxed()

    def combine(self, value: V, combine: Combine) -> V:
        """One value from those of all threads of the cluster, in every thread."""
        value = over_warp(value, combine)
        lane, warp = ptx.tid.x & (WARP - 1), ptx.tid.x >> 5
        count = self.warps * self.blocks
        memory = of_warps(value, count)
        with ptx.when(ptx.tid.x == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(self.arrived, memory.size * count)
        ptx.barrier.cluster.wait.acquire()
        with ptx.when(lane < self.blocks):
            store = STORE[f"v{len(value)}"].b32 if isinstance(value, tuple) else STORE.b32
            own = memory.at(ptx.cluster_ctarank * self.warps + warp)
            store(there(own, lane), value, there(self.arrived, lane))
        with ptx.loop():
            done = ptx.mbarrier.try_wait.parity.acquire.cluster["shared::cta"].b64(self.arrived, 0)
            ptx.repeat_when(~done)
        found: V = self._all(memory, combine)
        return found

    def _all(self, memory: Pointer, combine: Combine) -> Any:
        """What all warps of the cluster have stored, as one."""
        lane, count = ptx.tid.x & (WARP - 1), self.warps * self.blocks
        value = memory.at(lane & (count - 1)).load()
        for start in range(WARP, count, WARP):
            value = combine(value, memory.at(lane + start).load())
        return over_lanes(value, combine, min(count, WARP))


def there(own: Pointer, block: u32) -> Pointer:
    """The same variable of another block of the cluster."""
    return ptx.pointer_to(b32, "shared::cluster", ptx.mapa.shared__cluster.u32(own.address, block))
