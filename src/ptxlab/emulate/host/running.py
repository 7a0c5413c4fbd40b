"""A launch while it runs: memory for its arguments, workers for its blocks, and a trial if there are several."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import PurePath
from typing import TYPE_CHECKING

from ptxlab import interrupts
from ptxlab.device.arguments import ARGUMENTS, HEAP, AddressSpace, pack
from ptxlab.device.limits import available, check_memory
from ptxlab.device.multicast import PlacedMulticast
from ptxlab.device.options import Extents
from ptxlab.device.record import Record
from ptxlab.device.regions import Region
from ptxlab.emulate.abi import entries, state, thread_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.host.host_order import HostOrder
from ptxlab.emulate.host.merging import merged_findings
from ptxlab.emulate.host.module_memory import ModuleMemory
from ptxlab.emulate.host.multicast import MulticastTable
from ptxlab.emulate.host.needs import needs_of, space_to_keep
from ptxlab.emulate.host.regions import WORKSPACE, Regions, workspace
from ptxlab.emulate.host.services import Services
from ptxlab.emulate.host.textures import TextureTable
from ptxlab.emulate.host.worker import HostWorker
from ptxlab.emulate.translate.compile import Compiled
from ptxlab.ir.origin import Origins
from ptxlab.native import environment
from ptxlab.native.checking import share
from ptxlab.report import Span
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.host.recording import HostRecorder

SPARE = 65536  # allocations that a kernel may make itself

Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, *[ctypes.c_uint64] * 5)
Progress = Callable[[int, int], None]
Host = Callable[[int, Sequence[bool]], bool]
"""Whether host code may still change memory, where no thread can continue.

It is given how often kernels have done so, and which launches of the team are complete.
"""


@dataclass(frozen=True)
class Configuration:
    """What a launch is to run, once the kernel's directives have been applied to its options."""

    grid: Extents
    block: Extents
    cluster: Extents | None
    shared: int
    """Bytes of dynamic shared memory."""
    seed: int = 0
    numbers: Sequence[int] | None = None
    """The clusters to run, by their numbers; None for all of them."""
    checks: bool = False
    cooperative: bool = False
    record: Record | None = None
    watched: Sequence[Region] = ()
    """Memory of which the host wants to know what was read."""


@dataclass(frozen=True)
class LaunchPlace:
    """Where a launch is among those that run together: its number, its GPU, and the memory that GPU may access."""

    number: int
    count: int
    """How many run together."""
    first_block: int
    """The number of its first block, among those of all launches."""
    kind: int
    """The same for all that one line of the host launches of one kernel."""
    device: int
    title: str
    """`rank 1`: what messages call it."""
    regions: Sequence[Region]
    hidden: Sequence[Region]
    """Memory of other GPUs that this one may not access, and what was freed."""
    host_line: Span | None
    order: HostOrder
    """How the host would order it with another launch."""
    overlaps: frozenset[int] = frozenset()
    """The launches, by their numbers, that may still run when it starts."""
    is_kernel: bool = True
    """Whether the user wrote it, not the node itself, as copies."""
    stream: int = 0
    """The number of its stream on its GPU."""
    multicasts: Sequence[PlacedMulticast] = ()
    """Multicast addresses beside those of its arguments."""
    resident: int = 1 << 20
    """How many of its blocks its GPU holds at a time; of copies, which need no SM, any number."""


class RunningLaunch:
    """One launch while it runs."""

    def __init__(
        self,
        compiled: Compiled,
        memory: ModuleMemory,
        args: Sequence[object],
        configuration: Configuration,
        workers: int,
        space: AddressSpace | None = None,
        place: LaunchPlace | None = None,
        *,
        together: bool = True,
    ) -> None:
        """`space` is shared with the launches before this one, of a chain of grids; `place` is in a team of them.

        Lanes execute the kernel `together` if it is translated for that. With detectors that is a trial.
        """
        self.compiled, self.memory, self.place = compiled, memory, place
        self.team: Sequence[RunningLaunch] = (self,)
        self.before: RunningLaunch | None = None  # the grid before it, which may still run when this one starts
        self.in_chain = space is not None
        self._take(configuration)
        self.is_together = together and self._can_be_together()
        parameters = pack(compiled.module, compiled.kernel, args, space, memory.host.objects)
        self.host_memory = parameters.memory
        self.textures = TextureTable(parameters.objects)
        self.multicast = MulticastTable([*parameters.multicasts, *(() if place is None else place.multicasts)])
        self.parameters = share(ctypes.create_string_buffer(bytes(parameters.data), max(len(parameters.data), 1)))
        self.parameter_size = len(parameters.data)
        self.stop = share(ctypes.c_uint32(0))
        self.next = share(ctypes.c_uint64(0))
        self.finished = share(ctypes.c_uint64(0))
        self.stuck = share(ctypes.c_uint64(0))
        self.services = Services(self)
        self.callback = Callback(self.services.answer)
        self.lock = threading.Lock()
        workers = max(1, min(workers, self.clusters))
        self.free_memory = available()
        free = self.free_memory // workers
        self.needs = needs_of(compiled, self.block, self.shared_size, self.cluster_size, free)
        workers = max(1, min(workers, self.free_memory // self.needs.cluster))
        workers = self._take_regions([*parameters.regions, *self.textures.regions], workers)
        threads = math.prod(self.block)
        check_memory(compiled.module, compiled.kernel, threads, self.cluster_size, self.needs.cluster, self.free_memory)
        self.profiles: list[tuple[StructArray, StructArray, StructArray]] = []
        facts = compiled.facts
        self.changes, self.looks = (_array(facts[name]) for name in ("changes", "looks"))
        self.steps = _array([end - start for start, end in facts["counters"]] if facts["clock"] else [])
        self.marked = share(ctypes.create_string_buffer(b"\1" * (facts["frame_sizes"][0] // 8)))
        for offset in facts["timed_slots"]:
            self.marked[offset // 8] = b"\0"
        self.workers = [HostWorker(self, workers) for _ in range(workers)]
        self.recorder = self._recorder(configuration.record)

    def _take(self, configuration: Configuration) -> None:
        """Note the sizes of the launch, and which clusters it runs."""
        self.grid, self.block = configuration.grid, configuration.block
        self.cluster = configuration.cluster or (1, 1, 1)
        self.is_explicit_cluster = configuration.cluster is not None
        self.cluster_size = math.prod(self.cluster)
        self.seed, self.checks = configuration.seed, configuration.checks
        self.workspace = WORKSPACE if configuration.cooperative else 0
        self.watched = configuration.watched
        numbers = configuration.numbers
        self.numbers = None if numbers is None else share((ctypes.c_uint64 * max(len(numbers), 1))(*numbers))
        self.clusters = math.prod(self.grid) // self.cluster_size if numbers is None else len(numbers)
        self.total = self.clusters * self.cluster_size  # blocks
        self.dynamic_size = configuration.shared
        self.shared_size = self.compiled.variables.dynamic_offset + configuration.shared

    def _take_regions(self, arguments: Sequence[Region], workers: int) -> int:
        """Gather the memory that the kernel may touch; how many workers can, since a trial takes memory of its own."""
        heap = self.memory.heap
        self.heap_start = heap.next  # what is below was there before
        regions = [*arguments, *self.memory.regions(self.compiled.variables), *heap.regions.values()]
        if self.place is not None:
            regions = _accessible(regions, self.place)
        if self.workspace:
            regions.append(workspace())
        is_apart = self.place is not None and not self.in_chain  # from a team, whose memory may have to be put back
        kept = space_to_keep(regions) if self.checks and (workers > 1 or self.is_together or is_apart) else None
        self.is_trial = kept is not None
        self.is_together = self.is_together and self.checks <= self.is_trial
        allocates = any(function.name == "malloc" for function in self.compiled.module.functions)
        self.regions = Regions(regions, SPARE * allocates, kept)
        return 1 if self.checks and not self.is_trial else workers

    def _recorder(self, record: Record | None) -> HostRecorder | None:
        """What takes the launch down, if it is to be recorded."""
        if record is None:
            return None
        from ptxlab.emulate.host.recording import HostRecorder

        recorder = HostRecorder(self, record)
        for worker in self.workers:
            worker.record.set(recorder=recorder.record.address)
        return recorder

    # Memory.

    def add_region(self, region: Region) -> bool:
        """Let the kernel touch more memory; regions come in the order of their addresses."""
        with self.lock:
            if not self.regions.add(region):
                return False
            for worker in self.workers:
                worker.record.part("memory").set(allocation_count=len(self.regions))
        return True

    def remove_region(self, base: int) -> None:
        """Take memory back; every instruction must search again for its memory."""
        with self.lock:
            self.regions.remove(base)
            for worker in self.workers:
                worker.record.part("memory").set(allocation_count=len(self.regions))
                worker.forget_hints()

    def _can_be_together(self) -> bool:
        """Whether lanes can execute the kernel together: it is translated for that, and rows of threads are full."""
        is_alone = not self.in_chain or (self.place is None and not self.checks)
        return bool(self.compiled.facts["lanes"] and self.block[0] % self.compiled.facts["group"] == 0 and is_alone)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found: no fault, no race, nothing wrong with `printf`."""
        return not self.services.remarks and not any(worker.found_something for worker in self.workers)

    def of(self, block: int) -> RunningLaunch:
        """The launch that a block belongs to, of those that run together."""
        if self.place is None:
            return self
        return self.team[bisect_right(self.team, block, key=lambda launch: launch.first_block) - 1]

    @property
    def first_block(self) -> int:
        """The number of its first block, among those of all that run together."""
        return 0 if self.place is None else self.place.first_block

    def number_in_grid(self, block: int) -> int:
        """The number of a block of this launch in its grid."""
        return block - self.first_block

    # Locations in the source.

    def span_of(self, number: int) -> Span | None:
        """Where an instruction is in the text."""
        return self.compiled.module.span(self.compiled.instructions[number][1])

    def line_of(self, number: int) -> int | None:
        """The line of an instruction in the PTX."""
        span = self.span_of(number)
        return None if span is None else span.source.position(span.start)[0]

    def name_line(self, number: int, beside: int) -> str:
        """`line 12`, of what the user wrote, and the line that calls it where it is in a function that is inlined.

        With the name of the file if the instruction `beside` is from another.
        """
        span, other = self.shown_at(number), self.shown_at(beside)
        if span is None:
            return "a line without a number"
        line, ptx = span.source.position(span.start)[0], self.span_of(number)
        caller = "" if ptx is None else self.origins.caller(ptx)
        if other is None or other.source is span.source:
            return f"line {line}{caller}"
        return f"line {line} of {PurePath(span.source.name).name}{caller}"

    def shown_at(self, number: int) -> Span | None:
        """Where a finding shows an instruction: in CUDA C++, Python, or else the PTX."""
        span = self.span_of(number)
        return None if span is None else self.origins.span(span) or span

    @cached_property
    def origins(self) -> Origins:
        """The lines that the kernel was compiled from."""
        return Origins(self.compiled.module)

    # Running.

    def run(self, until: float | None, progress: Progress | None, host: Host | None = None) -> str | None:
        """Run all blocks; `timeout` or `interrupted` if they were stopped, `failed` if one core is to run them.

        With a `host`, threads that wait for memory hang only if it will not change that.
        """
        outcome: str | None = None
        running = self.workers
        if host is not None:
            running[0].record.part("clusters").set(is_alone=0)  # it returns where no thread can continue
        try:
            while running and outcome is None:
                self.stuck.value = len(self.workers) - len(running)
                outcome = self._run_workers(running, until, progress)
                if outcome is None and self.is_trial and self.has_failed():
                    outcome = "failed"
                elif self.checks and self.found_together:
                    outcome = "failed"  # in time or not: what was found is not to be reported
                is_over = self.place is not None and self.stop.value  # then clusters are kept to be explained
                running = [one for one in self.workers if one.record.get("clusters.waiting") and not is_over]
                is_stuck = bool(running) and outcome is None
                may_continue = is_stuck and host is not None and self._may_continue(host)
                if running and not self.is_trial and not may_continue:
                    running = [self._gather(*running)]
                if outcome is None and running and until is not None and time.perf_counter() >= until:
                    outcome = "timeout"
        except KeyboardInterrupt:
            outcome = "interrupted"
        self.request_stop()
        for worker in self.workers:  # those that were about to continue give up their blocks
            self.call(entries.RUN_GRID, worker)
        if self.services.failure is not None:
            raise self.services.failure
        return outcome

    def _may_continue(self, host: Host) -> bool:
        """Whether the host may change what threads wait for."""
        changes = self.call(entries.OBSERVE_ANEW, *self.workers)
        return host(changes, [launch.finished.value == launch.total for launch in self.team])

    def _run_workers(self, workers: list[HostWorker], until: float | None, progress: Progress | None) -> str | None:
        """Have workers run until all have ended, or none gets any further; `timeout` if they were stopped."""
        ends = [worker.end for worker in workers]
        with interrupts.deferred() as ctrl_c:  # an event that is being waited for stays locked if it comes in between
            try:
                for worker in workers:
                    worker.end.clear()
                    threading.Thread(target=self._work, args=(worker,), daemon=True).start()
                while True:
                    left = 0.05 if until is None else max(min(0.05, until - time.perf_counter()), 0)
                    for end in ends:
                        end.wait(left)
                    if progress is not None:
                        progress(self.finished.value, self.total)
                    if all(end.is_set() for end in ends):
                        break
                    ctrl_c.deliver()
                    if until is not None and time.perf_counter() >= until and not self.stop.value:
                        return "timeout"
            finally:  # nothing that machine code works on may go before that has stopped, even after a second Ctrl-C
                if not all(end.is_set() for end in ends):
                    self.request_stop()
                for end in ends:
                    end.wait()
        return None

    def _gather(self, worker: HostWorker, *others: HostWorker) -> HostWorker:
        """Let one worker continue the blocks of all: those of each wait for others."""
        for other in others:
            self.call(entries.TAKE_OVER, worker, other)
        self.call(entries.CONTINUE_ALONE, worker)
        return worker

    def _work(self, worker: HostWorker) -> None:
        """Have one core run blocks; that this is a method keeps all memory alive as long as it takes."""
        try:
            environment.use_default()
            self.call(entries.RUN_SEARCH if self.seed else entries.RUN_GRID, worker)
        finally:
            worker.end.set()

    def call(self, entry: str, *workers: HostWorker) -> int:
        """Call a function of the runtime, one of `entries`, on workers."""
        function = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_void_p] * len(workers))
        return int(function(self.compiled.address(entry))(*(worker.record.address for worker in workers)))

    def ask(self, entry: str, worker: HostWorker, asked: StructArray) -> None:
        """Call a function of the runtime that answers in a structure."""
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        function(self.compiled.address(entry))(worker.record.address, asked.address)

    def follow(self, before: RunningLaunch) -> None:
        """Start while the grid before this one may still run: remember what that one did."""
        self.before = before
        (worker,), (other,) = self.workers, before.workers
        same = before.memory is self.memory
        older = before.before is not None and other.history.get("grids.early_triggers")
        worker.history.part("grids").set(
            keeps_older=int(bool(older)), shared_from=0 if same else ARGUMENTS, shared_up_to=1 << 63 if same else HEAP
        )
        self.call(entries.TAKE_OVER_ACCESSES, worker, other)

    @property
    def lets_others_start(self) -> bool:
        """Whether the grid has let the next one start before it was complete."""
        return any(worker.history.get("grids.triggers") for worker in self.workers)

    def has_failed(self) -> bool:
        """Whether a trial says nothing: there is a fault, or blocks of different workers share memory or findings.

        Nor does one in which lanes together found anything at all.
        """
        return (
            any(
                worker.fault.get("kind") or worker.late.get("kind") or worker.history.get("unwatched")
                for worker in self.workers
            )
            or self.found_together
            or merged_findings(self) is None
            or any(self.call(entries.SHARE_BYTES, one, other) for one, other in combinations(self.workers, 2))
        )

    @property
    def found_together(self) -> bool:
        """Whether lanes together found something, which threads are to report."""
        return self.is_together and any(worker.found_something for worker in self.workers)

    def put_back(self) -> None:
        """Make all memory what it was before a trial."""
        self.call(entries.PUT_BACK, self.workers[0])

    def end(self) -> None:
        """Give back the blocks that were kept for an explanation, and let go of what refers to each other."""
        for worker in self.workers:
            self.call(entries.END_BROKEN, worker)
        self.regions.unshare()
        if self.recorder is not None:
            self.recorder.close()
        self.team = ()
        del self.callback, self.services

    def profile(self) -> None:
        """Have every worker note the requests that warps make."""
        sites = len(self.compiled.facts["profile_sites"])
        self.profiles = [worker.profile(sites) for worker in self.workers]

    def settle(self) -> None:
        """Count the requests that are still open."""
        for worker in self.workers:
            self.call(entries.SETTLE_ALL, worker)

    def request_stop(self) -> None:
        """Have every worker stop the next time it polls."""
        self.stop.value = 1

    def note_fault(self, thread: int, kind: int, address: int) -> None:
        """Record what went wrong in what the host did for a thread, unless something did before."""
        failed = StructArray.at(state.Thread, thread)
        failed.set(status=thread_parts.FAILED)
        block = StructArray.at(state.Block, failed.get("block"))
        for worker in self.workers:
            if worker.record.address == failed.get("worker") and worker.fault.get("kind") == 0:
                worker.fault.set(
                    kind=kind,
                    instruction=failed.get("waiting.instruction"),
                    thread=failed.get("number"),
                    block=block.get("number"),
                    address=address,
                )


def _accessible(regions: Sequence[Region], place: LaunchPlace) -> list[Region]:
    """What a launch may touch on its GPU: what it has for itself, and the memory of the node that GPU may access."""
    return [*(region for region in regions if region.owner_device is None), *place.regions]


def _array(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_uint32]:
    return share((ctypes.c_uint32 * max(len(numbers), 1))(*numbers))
