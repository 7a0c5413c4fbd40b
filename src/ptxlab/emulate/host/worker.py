"""What one core works with: the record that machine code reads, its memory, and what it reports about its blocks."""

from __future__ import annotations

import ctypes
import mmap
import threading
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import address_spaces, clocks, faults, findings, state
from ptxlab.emulate.abi.structs import StructArray, zeroed_bytes
from ptxlab.emulate.host.needs import RESIDENTS
from ptxlab.emulate.host.written import written_parameters
from ptxlab.emulate.runtime.schedule.random import scrambled
from ptxlab.emulate.translate.provenance import ALL
from ptxlab.native.checking import share

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

QUANTUM = 4096  # jumps backwards that a thread may take before others have a turn
ROUNDS = 64  # of all warps of a block that bring nothing new, until other blocks have a turn
# Where blocks can wait for each other, those that do should not wait long for the ones they wait for.
TALKING_QUANTUM, TALKING_ROUNDS, TALKING_TURN = 512, 4, 1024
PROFILE_QUANTUM = 64  # lanes of a warp that stay near each other leave few requests open
MOST_FINDINGS = 40  # of a launch, at least half of which may be races
MOST_HISTORY = 4 << 30  # bytes for what the detectors remember of global memory
MOST_TOGETHER = 64  # clusters that take turns with a seed
SHARES, MOST_AT_ONCE = 32, 64  # of the clusters a worker takes a 32nd of its share at a time, and no more than 64


def _residents(seed: int, talks: bool) -> int:
    """How many clusters take turns at most: with a seed, any number if it matters, and otherwise one."""
    if not seed:
        return RESIDENTS
    random = scrambled(seed)
    return 1 if not talks else MOST_TOGETHER if random & 1 else 1 << random // 2 % MOST_TOGETHER.bit_length()


class HostWorker:
    """One of the cores that run the blocks of a launch."""

    def __init__(self, launch: RunningLaunch, workers: int) -> None:
        facts = launch.compiled.facts
        self.record = StructArray(state.Worker)
        self.fault = StructArray(faults.Fault)
        self.late = StructArray(faults.Fault)
        self.history = StructArray(clocks.History)
        self.findings = StructArray(findings.Finding, MOST_FINDINGS)
        self.undefined = StructArray(clocks.UndefinedValue, (clocks.SOURCES + clocks.STORES) * 32)
        self.history.set(findings=self.findings.address, finding_capacity=MOST_FINDINGS)
        self.history.set(undefined=self.undefined.address)
        if launch.checks:
            self.history.set(limit=min(launch.free_memory // 4, MOST_HISTORY) // workers, is_trial=int(launch.is_trial))
            self.history.set(is_together=int(launch.is_together))
        self.hints = StructArray(address_spaces.Hint, facts["hints"])
        self.hint_count = facts["hints"]
        self.forget_hints()
        self.counters = (ctypes.c_uint64 * max(len(facts["counters"]), 1)).from_buffer(
            zeroed_bytes(8 * len(facts["counters"]))
        )
        # Space for the clusters of all workers, in case this one continues them; it takes memory only where it is used.
        capacity = max(1, min(launch.clusters, launch.needs.limit * workers))
        self.residents = share((ctypes.c_void_p * capacity).from_buffer(mmap.mmap(-1, 8 * capacity)))
        self.end = threading.Event()
        self.end.set()
        self._set_code(launch)
        self._set_extents(launch)
        self._set_memory(launch)
        self._set_schedule(launch, workers)
        self._set_findings(launch)

    def _set_code(self, launch: RunningLaunch) -> None:
        """The kernel, and the memory that its threads need."""
        compiled, facts, needs = launch.compiled, launch.compiled.facts, launch.needs
        # `ctypes.cast` would have the callback refer to itself, and the launch stay until garbage is collected.
        self.record.set(host=ctypes.c_void_p.from_buffer(launch.callback).value or 0)
        self.record.part("code").set(
            entry=compiled.address("entry"),
            lanes=compiled.address("lanes") if launch.is_together else 0,
            group=facts["group"],
            never_waits=int(launch.is_together and facts["never_waits"]),
            sites=compiled.address("sites"),
            callees=compiled.address("callees"),
            callee_count=len(layout.function_numbers(compiled.module)),
            counters=ctypes.addressof(self.counters),
            counter_count=len(facts["counters"]) if facts["clock"] else 0,
            steps=ctypes.addressof(launch.steps),
            frame_size=needs.frame,
            local_size=needs.local,
            largest_frame=max(facts["frame_sizes"]),
            largest_local=max(facts["local_sizes"]),
            entry_local=facts["local_sizes"][0],
            exchange_words=facts["exchange_words"],
            registers=facts["registers"],
        )

    def _set_extents(self, launch: RunningLaunch) -> None:
        """The sizes of the launch."""
        shape = self.record.part("shape")
        for name, extents in (("block", launch.block), ("grid", launch.grid), ("cluster", launch.cluster)):
            x, y, z = extents
            shape.part(name).set(x=x, y=y, z=z)
        shape.set(cluster_size=launch.cluster_size, is_explicit_cluster=int(launch.is_explicit_cluster))
        if launch.place is not None:
            shape.set(first_block=launch.place.first_block, device=launch.place.device)

    def _set_memory(self, launch: RunningLaunch) -> None:
        """The memory of a block and of the grid."""
        reserved = launch.compiled.variables.reserved_size
        self.record.part("memory").set(
            allocations=launch.regions.table.address,
            allocation_count=len(launch.regions),
            hints=self.hints.address,
            parameters=ctypes.addressof(launch.parameters),
            parameter_size=launch.parameter_size,
            tracked=ALL if launch.in_chain else written_parameters(launch),
            heap=launch.heap_start,
            workspace_low=launch.workspace & 0xFFFF_FFFF,
            workspace_high=launch.workspace >> 32,
            textures=launch.textures.address,
            texture_count=launch.textures.count,
            texture_variables=launch.textures.variables,
            multicasts=launch.multicast.address,
            multicast_count=len(launch.multicast.placed),
        )
        self.record.part("shared").set(
            size=launch.shared_size,
            dynamic=launch.dynamic_size,
            reserved=reserved,
            user=launch.shared_size - reserved,
        )

    def _set_schedule(self, launch: RunningLaunch, workers: int) -> None:
        """Which clusters are run, how many by turns, and when the turn of a thread ends."""
        facts, needs = launch.compiled.facts, launch.needs
        self.record.set(stop=ctypes.addressof(launch.stop), seed=launch.seed)
        self.record.part("clusters").set(
            next=ctypes.addressof(launch.next),
            finished=ctypes.addressof(launch.finished),
            numbers=0 if launch.numbers is None else ctypes.addressof(launch.numbers),
            total=launch.clusters,
            chunk=max(1, min(MOST_AT_ONCE, launch.clusters // (workers * SHARES))),
            stuck=ctypes.addressof(launch.stuck),
            stuck_limit=workers if launch.is_trial else 0,
            residents=ctypes.addressof(self.residents),
            capacity=min(needs.residents, _residents(launch.seed, facts["talks"])),
            limit=needs.limit,
            is_alone=int(workers == 1),
        )
        self.record.part("turns").set(
            quantum=TALKING_QUANTUM if facts["talks"] else QUANTUM,
            rounds=TALKING_ROUNDS if facts["talks"] else ROUNDS,
            most_rounds=TALKING_TURN if facts["talks"] else (1 << 32) - 1,
        )

    def _set_findings(self, launch: RunningLaunch) -> None:
        """What is detected, and what is counted to know whether threads make progress."""
        facts = launch.compiled.facts
        self.record.set(
            checks=int(launch.checks),
            fault=self.fault.address,
            late=self.late.address,
            history=self.history.address,
        )
        self.record.part("progress").set(
            changes=ctypes.addressof(launch.changes),
            looks=ctypes.addressof(launch.looks),
            change_count=len(facts["changes"]),
            far_count=facts["far"],
            look_count=len(facts["looks"]),
            mark_size=facts["frame_sizes"][0],
            marked=ctypes.addressof(launch.marked),
        )

    def follow(self, leader: HostWorker, stop: int) -> None:
        """Have another worker schedule its clusters: both stop together, and have one history and one fault."""
        self.fault, self.late, self.history, self.findings = leader.fault, leader.late, leader.history, leader.findings
        self.record.set(stop=stop, fault=leader.fault.address, late=leader.late.address, history=leader.history.address)

    @property
    def found_something(self) -> bool:
        """Whether there is a fault or a finding of its blocks, or an access that was not checked."""
        faulty = self.fault.get("kind") or self.late.get("kind")
        return bool(faulty or self.history.get("finding_count") or self.history.get("unwatched"))

    def forget_hints(self) -> None:
        """Make every instruction search for its memory again."""
        for index in range(self.hint_count):
            self.hints.set(index, base=0, count=0, data=0)

    def profile(self, sites: int) -> tuple[StructArray, StructArray, StructArray]:
        """Note the requests that warps make: what is known of them, those that are open, and what they came to."""
        from ptxlab.emulate.runtime.memory import profile as requests

        self.cached = share((ctypes.c_uint64 * requests.CACHED)())
        record = StructArray(requests.Profile)
        pending = StructArray(requests.Request, requests.CAPACITY)
        tallies = StructArray(requests.Tally, sites)
        record.set(requests=pending.address, tallies=tallies.address, cached=ctypes.addressof(self.cached))
        self.record.set(profile=record.address)
        self.record.part("turns").set(quantum=PROFILE_QUANTUM)
        return record, pending, tallies
