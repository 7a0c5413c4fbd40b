"""Threads and mbarriers of a block when a launch was stopped, read from its memory for an explanation."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import barriers, faults, state, thread_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.runtime.asynchronous.mbarrier_memory import BYTES, BYTES_MASK, EXPECTED
from ptxlab.isa.chapters.mbarrier import ARRIVALS
from ptxlab.native import offset_of, size_of

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch
    from ptxlab.emulate.host.worker import HostWorker

SPINS = -1  # like a status: a thread that polls in a loop
WAITING = (
    thread_parts.AT_COLLECTIVE,
    thread_parts.ACTIVE,
    thread_parts.AT_BARRIER,
    thread_parts.AT_PHASE,
    thread_parts.AT_PRODUCTS,
    thread_parts.AT_CLUSTER,
    thread_parts.AT_PEER,
    thread_parts.AT_REGISTERS,
)


@dataclass(frozen=True)
class ThreadSnapshot:
    """One thread: what it does (`status`), at which instruction, and what it waits for."""

    number: int
    status: int
    instruction: int
    barrier: int
    members: int
    waits_at: int  # the mbarrier; of a thread in a loop, the address that it polls, 0 if that is not known
    waits_for: int
    asked: int
    ran: int
    frame: int
    arrival: int  # 0 unless it has arrived at the cluster barrier, and not waited there

    @property
    def warp(self) -> int:
        return self.number // 32

    @property
    def lane(self) -> int:
        return self.number % 32


@dataclass(frozen=True)
class Mbarrier:
    """An mbarrier: the arrivals that a phase expects, those and the bytes still pending, and what is known of it."""

    expected: int
    pending: int
    pending_bytes: int
    phase: StructArray | None

    @property
    def arrived(self) -> int:
        return max(self.expected - self.pending, 0)

    @property
    def has_started(self) -> bool:
        """Whether something arrived in this phase, or bytes are expected."""
        return bool(self.arrived or self.pending_bytes)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has ever arrived, and no wait has succeeded."""
        phase = self.phase
        return not self.has_started and phase is not None and not phase.get("completed") and not phase.get("passed")


class BlockSnapshot:
    """A block as it was when it stopped, and the others of its `cluster`."""

    def __init__(self, launch: RunningLaunch, address: int) -> None:
        self.launch = launch
        self.cluster: list[BlockSnapshot] = []
        self.record = StructArray.at(state.Block, address)
        self.number = self.record.get("number")
        threads = StructArray.at(state.Thread, self.record.get("threads"))
        names = (
            "status",
            "waiting.instruction",
            "waiting.barrier",
            "waiting.members",
            "target.offset",
            "target.number",
            "target.asked",
            "ran",
            "memory.frame",
            "arrival.phase",
        )
        self.threads = [
            ThreadSnapshot(number, *(threads.get(name, number) for name in names))
            for number in range(self.record.get("count"))
        ]

    @property
    def name(self) -> str:
        """`block (1,0,0)`"""
        return block_name(self.launch, self.number)

    @property
    def peer(self) -> BlockSnapshot | None:
        """The other block of its pair, if the cluster has one."""
        rank = self.record.get("rank") ^ 1
        return next((other for other in self.cluster if other.record.get("rank") == rank), None)

    @property
    def is_cause(self) -> bool:
        """Whether a thread has not exited and waits for something else than the cluster."""
        return any(thread.status not in (thread_parts.DONE, thread_parts.AT_CLUSTER) for thread in self.threads)

    @property
    def is_still(self) -> bool:
        """Whether its threads run without making progress."""
        return bool(StructArray.at(state.Cluster, self.record.get("cluster")).get("watch.is_still"))

    def barrier(self, number: int) -> StructArray:
        """One of the sixteen barriers."""
        return StructArray.at(barriers.Barrier, self._inside("barriers.numbered", number, barriers.Barrier))

    def phase(self, offset: int) -> StructArray | None:
        """What is known of the mbarrier at an offset of shared memory."""
        for index in range(offset // 8, offset // 8 + barriers.KNOWN_PHASES):
            found = StructArray.at(barriers.Phase, self.phase_address(index % barriers.KNOWN_PHASES))
            if not found.get("is_known"):
                break
            if found.get("offset") == offset:
                return found
        return None

    def phase_address(self, index: int) -> int:
        """Where the notes on mbarriers with that index are."""
        return self._inside("barriers.phases", index, barriers.Phase)

    def mbarrier(self, offset: int) -> Mbarrier:
        """The mbarrier at an offset of shared memory."""
        phase = self.phase(offset)
        bits = ctypes.c_uint64.from_address(self.record.get("memory.shared") + offset).value
        if phase is not None:
            bits = phase.get("bits")
        bytes = bits >> BYTES & BYTES_MASK
        return Mbarrier(
            expected=bits >> EXPECTED & ARRIVALS,
            pending=bits & ARRIVALS,
            pending_bytes=bytes - (bytes >> 20 << 21),
            phase=phase,
        )

    def _inside(self, name: str, index: int, owner: type) -> int:
        return self.record.address + offset_of(state.Block, name) + index * size_of(owner)


@dataclass(frozen=True)
class LastWait:
    """The last wait of a thread on an mbarrier that is over."""

    instruction: int
    offset: int
    phases: int

    @property
    def phase(self) -> str:
        """`by phase 1`, or `at once, before phase 0`"""
        return f"by phase {self.phases - 1}" if self.phases else "at once, before phase 0"


def last_wait(snapshot: BlockSnapshot, thread: int) -> LastWait | None:
    """That of a thread of a block, if there was one, and it is known."""
    threads = StructArray.at(state.Thread, snapshot.record.get("threads"))
    wait, at, phases = (threads.get(f"order.{name}", thread) for name in ("wait", "wait_at", "wait_phases"))
    return LastWait(at, wait - 1, phases) if wait else None


def snapshot_of(launch: RunningLaunch, worker: HostWorker) -> BlockSnapshot | None:
    """The block that a worker stopped in, if it was in one.

    Of a cluster it is the one with the fault; where all hang, the first that waits for more than the others.
    """
    broken = worker.record.get("progress.broken")
    if not broken:
        return None
    blocks = broken + offset_of(state.Cluster, "blocks")
    count = StructArray.at(state.Cluster, broken).get("count")
    snapshots = [BlockSnapshot(launch, ctypes.c_uint64.from_address(blocks + 8 * rank).value) for rank in range(count)]
    for snapshot in snapshots:
        snapshot.cluster = [other for other in snapshots if other is not snapshot]
    if worker.fault.get("kind") == faults.HANG:
        return next((snapshot for snapshot in snapshots if snapshot.is_cause), snapshots[0])
    return next((snapshot for snapshot in snapshots if snapshot.number == worker.fault.get("block")), snapshots[0])


def block_name(launch: RunningLaunch, number: int) -> str:
    """`block (1,0,0)`, and of which launch it is where several run together: `block (1,0,0) of rank 2`"""
    launch = launch.of(number)
    of = "" if launch.place is None else f" of {launch.place.title}"
    return f"block {_coordinates(launch.grid, launch.number_in_grid(number))}{of}"


def thread_name(launch: RunningLaunch, block: int, thread: int) -> str:
    """`thread (1,0,0) of block (2,0,0)`"""
    return f"{thread_name_in_block(launch.of(block), thread)} of {block_name(launch, block)}"


def thread_name_in_block(launch: RunningLaunch, thread: int) -> str:
    """`thread (1,0,0)`"""
    return f"thread {_coordinates(launch.block, thread)}"


def access_fact(launch: RunningLaunch, instruction: int, block: int, thread: int) -> dict[str, int]:
    """Which instruction of which thread a finding is about, by numbers: its line, its block, its thread there."""
    launch = launch.of(block)
    rank = {} if launch.place is None else {"rank": launch.place.device, "launch": launch.place.number}
    number = launch.number_in_grid(block)
    return {"line": launch.line_of(instruction) or 0, "block": number, "thread": thread, **rank}


def _coordinates(extents: tuple[int, int, int], number: int) -> str:
    """`(1,0,0)`"""
    x, y, _ = extents
    return f"({number % x},{number // x % y},{number // x // y})"


def companion(launch: RunningLaunch, number: int, rank: int) -> int:
    """The number of the block with that rank in the cluster of a block."""
    (gx, gy, _), (cx, cy, cz) = launch.grid, launch.cluster
    first = number - launch.number_in_grid(number)
    number -= first
    x, y, z = number % gx, number // gx % gy, number // gx // gy
    x, y, z = x - x % cx + rank % cx, y - y % cy + rank // cx % cy, z - z % cz + rank // cx // cy
    return first + x + gx * (y + gy * z)


def ranges(numbers: Iterable[int]) -> str:
    """`0 to 15 and 31`"""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" if b > a + 1 else f"{a} and {b}" for a, b in parts]
    if len(texts) > 4:
        return f"{', '.join(texts[:3])} and others"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def do(threads: Sequence[ThreadSnapshot], everyone: Sequence[ThreadSnapshot], one: str, several: str) -> str:
    """`warp 0 waits`, `warps 0 to 2 wait`: who, with the verb that fits."""
    name = who(threads, everyone)
    return f"{name} {one if name.startswith(('thread ', 'warp ')) else several}"


def who(threads: Sequence[ThreadSnapshot], everyone: Sequence[ThreadSnapshot]) -> str:
    """`warps 0 to 2`, where these are whole warps; `lanes 0 to 15 of warp 3`; `threads 7 and 40`; `thread 7`."""
    if len(threads) == 1:
        return f"thread {threads[0].number}"
    warps = {thread.warp for thread in threads}
    numbers = {thread.number for thread in threads}
    if all(thread.number in numbers for thread in everyone if thread.warp in warps):
        return f"warp{'s' * (len(warps) > 1)} {ranges(warps)}"
    if len(warps) == 1:
        return f"lanes {ranges(thread.lane for thread in threads)} of warp {min(warps)}"
    return f"threads {ranges(numbers)}"
