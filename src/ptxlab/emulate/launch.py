"""Running a kernel: memory for its arguments, workers for its blocks, and what came of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from ptxlab import ir
from ptxlab.emulate import history, layout, roots, state
from ptxlab.emulate.arguments import Region, pack
from ptxlab.emulate.compile import Compiled, compile_kernel
from ptxlab.emulate.counters import count
from ptxlab.emulate.faults import explain
from ptxlab.emulate.findings import MOST
from ptxlab.emulate.limits import check_launch, check_memory
from ptxlab.emulate.locations import add_sources
from ptxlab.emulate.needs import available, marks_offset, needs_of, room_to_keep
from ptxlab.emulate.record import Record, room_of
from ptxlab.emulate.runtime import profile as requests
from ptxlab.emulate.runtime.grid import end_broken, run_grid
from ptxlab.emulate.runtime.sharing import put_back, share_bytes
from ptxlab.emulate.services import Services
from ptxlab.native.functions import signature
from ptxlab.report import Diagnostic, KernelError, Span, render

# What is looked for while a kernel runs and can be left out; what stops a kernel is always told.
DETECTORS = frozenset(("data-race", "uninitialised-read"))
QUANTUM = 4096  # jumps backwards that a thread may take before others have a turn
ROUNDS = 64  # of all warps of a block that bring nothing new, until other blocks have a turn
# Where blocks can wait for each other, those that do should not wait long for the ones they wait for.
TALKING_QUANTUM, TALKING_ROUNDS, TALKING_TURN = 512, 4, 1024
PROFILE_QUANTUM = 64  # lanes of a warp that stay near each other leave few requests open
SPARE = 65536  # allocations that a kernel may make itself
MOST_HISTORY = 4 << 30  # bytes for what the detectors remember of global memory
SHARES, MOST_AT_ONCE = 32, 64  # of the blocks a worker takes a 32nd of its share at a time, and no more than 64

Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, *[ctypes.c_uint64] * 5)


@dataclass
class Result:
    """What a launch gave: findings, what the kernel printed, what was counted, and how long it took."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    output: str = ""
    counters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a kernel ran; `diagnostics` say where it was."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__(render(diagnostics).rstrip("\n"))


class Launch:
    """One launch while it runs."""

    heap_limit = 1 << 30

    def __init__(
        self,
        compiled: Compiled,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared: int,
        seed: int,
        numbers: Sequence[int] | None,
        workers: int,
        checks: bool = False,
    ) -> None:
        self.compiled = compiled
        self.grid, self.block = grid, block
        parameters = pack(compiled.module, compiled.kernel, args)
        self.regions = sorted(
            [*parameters.regions, *globals_of(compiled.module, compiled.variables)], key=lambda region: region.base
        )
        self.parameters = ctypes.create_string_buffer(bytes(parameters.data), max(len(parameters.data), 1))
        self.seed = seed
        self.checks = checks
        self.stop = ctypes.c_uint32(0)
        self.next = ctypes.c_uint64(0)
        self.finished = ctypes.c_uint64(0)
        self.stuck = ctypes.c_uint64(0)
        self.numbers = None if numbers is None else (ctypes.c_uint64 * max(len(numbers), 1))(*numbers)
        self.total = grid[0] * grid[1] * grid[2] if numbers is None else len(numbers)
        self.services = Services(self)
        self.callback = Callback(self.services.answer)
        allocates = any(function.name == "malloc" for function in compiled.module.functions)
        self.allocations = Record(state.Allocation, len(self.regions) + SPARE * allocates)
        self.lock = threading.Lock()
        self.shared_size = compiled.variables.dynamic_offset + shared
        self.needs = needs_of(compiled, block, self.shared_size, workers)
        workers = max(1, min(workers, available() // self.needs.block))
        self.kept = room_to_keep(self.regions) if checks and workers > 1 else None
        self.is_trial = self.kept is not None
        if checks and not self.is_trial:
            workers = 1
        for index in range(len(self.regions)):
            self._list_region(index)
        threads = block[0] * block[1] * block[2]
        check_memory(compiled.module, compiled.kernel, threads, self.needs.block, available())
        self.profiles: list[tuple[Record, Record, Record]] = []
        facts = compiled.facts
        self.changes, self.looks = (_array(facts[name]) for name in ("changes", "looks"))
        self.marked = ctypes.create_string_buffer(b"\1" * (facts["frame_sizes"][0] // 8))
        for offset in facts["timed_slots"]:
            self.marked[offset // 8] = b"\0"
        self.workers = [self._worker(shared, len(parameters.data), workers) for _ in range(workers)]

    # Memory.

    def _list_region(self, index: int) -> None:
        region = self.regions[index]
        self.allocations.set(index, base=region.base, size=region.size, data=region.data, writable=int(region.writable))
        if self.kept is not None and region.base in self.kept:
            kept = ctypes.addressof(self.kept[region.base])
            self.allocations.set(index, kept=kept, marks=kept + marks_offset(region.size))

    def add_region(self, region: Region) -> bool:
        """Let the kernel touch more memory; regions come in the order of their addresses."""
        with self.lock:
            if len(self.regions) >= self.allocations.room:
                return False
            self.regions.append(region)
            self._list_region(len(self.regions) - 1)
            for worker in self.workers:
                worker.record.set(allocation_count=len(self.regions))
        return True

    def remove_region(self, base: int) -> None:
        """Take memory back; every instruction must look again where its memory is."""
        with self.lock:
            position = bisect_left(self.regions, base, key=lambda region: region.base)
            del self.regions[position]
            at, stride = self.allocations.address + position * self.allocations.stride, self.allocations.stride
            ctypes.memmove(at, at + stride, (len(self.regions) - position) * stride)
            for worker in self.workers:
                worker.record.set(allocation_count=len(self.regions))
                worker.forget_hints()

    def span_of(self, number: int) -> Span | None:
        """Where an instruction stands in the text."""
        return self.compiled.module.span(self.compiled.places[number][1])

    def line_of(self, number: int) -> int | None:
        """The line of an instruction."""
        span = self.span_of(number)
        return None if span is None else span.source.position(span.start)[0]

    def region_at(self, address: int) -> Region | None:
        """The region that an address lies in or behind."""
        position = bisect_right(self.regions, address, key=lambda region: region.base)
        return self.regions[position - 1] if position else None

    # Running.

    def _worker(self, shared: int, parameter_size: int, workers: int) -> Worker:
        facts = self.compiled.facts
        needs = self.needs
        worker = Worker(facts["hints"], len(facts["counters"]), needs.residents)
        if self.checks:
            worker.history.set(limit=min(available() // 4, MOST_HISTORY) // workers, is_trial=int(self.is_trial))
        worker.record.set(
            stop=ctypes.addressof(self.stop),
            allocations=self.allocations.address,
            hints=worker.hints.address,
            sites=self.compiled.address("sites"),
            callees=self.compiled.address("callees"),
            parameters=ctypes.addressof(self.parameters),
            counters=ctypes.addressof(worker.counters),
            host=ctypes.cast(self.callback, ctypes.c_void_p).value or 0,
            allocation_count=len(self.regions),
            callee_count=len(layout.function_numbers(self.compiled.module)),
            parameter_size=parameter_size,
            block_x=self.block[0],
            block_y=self.block[1],
            block_z=self.block[2],
            grid_x=self.grid[0],
            grid_y=self.grid[1],
            grid_z=self.grid[2],
            shared_size=self.shared_size,
            dynamic_size=shared,
            frame_size=needs.frame,
            local_size=needs.local,
            mail_words=facts["mail_words"],
            quantum=TALKING_QUANTUM if facts["talks"] else QUANTUM,
            rounds=TALKING_ROUNDS if facts["talks"] else ROUNDS,
            turn=TALKING_TURN if facts["talks"] else (1 << 32) - 1,
            seed=self.seed,
            entry=self.compiled.address("entry"),
            entry_local=facts["local_sizes"][0],
            next=ctypes.addressof(self.next),
            finished=ctypes.addressof(self.finished),
            numbers=0 if self.numbers is None else ctypes.addressof(self.numbers),
            total=self.total,
            chunk=max(1, min(MOST_AT_ONCE, self.total // (workers * SHARES))),
            stuck=ctypes.addressof(self.stuck),
            stuck_limit=workers if self.is_trial else 0,
            residents=ctypes.addressof(worker.residents),
            resident_room=needs.residents,
            fault=worker.fault.address,
            history=worker.history.address,
            checks=int(self.checks),
            watched=self._watched(),
            changes=ctypes.addressof(self.changes),
            looks=ctypes.addressof(self.looks),
            change_count=len(facts["changes"]),
            far_count=facts["far"],
            look_count=len(facts["looks"]),
            mark_size=facts["frame_sizes"][0],
            largest_frame=max(facts["frame_sizes"]),
            largest_local=max(facts["local_sizes"]),
            marked=ctypes.addressof(self.marked),
        )
        return worker

    def _watched(self) -> int:
        """The parameters that point to memory which the kernel may write, as bits; see `roots`."""
        written: int = self.compiled.facts["written"]
        if written & roots.UNKNOWN:
            return roots.ALL
        pointers: dict[int, list[int]] = {}
        data = bytes(self.parameters)
        for number, parameter in enumerate(self.compiled.kernel.parameters[: roots.PARAMETERS]):
            start = self.compiled.variables.parameters.offsets[id(parameter)]
            for at in range(start, start + layout.size_of_variable(parameter) - 7, 8):
                address = int.from_bytes(data[at : at + 8], "little")
                region = self.region_at(address)
                if region is not None and address <= region.base + region.size:
                    pointers.setdefault(region.base, []).append(number)
        watched = written & roots.VARIABLE
        for numbers in pointers.values():
            bits = sum(1 << number for number in set(numbers))
            if bits & written:
                watched |= bits
        return watched

    def run(self, until: float | None, progress: Callable[[int, int], None] | None) -> str | None:
        """Run all blocks; `timeout` or `interrupted` if they were stopped, `failed` if one core is to run them."""
        outcome: str | None = None
        running = self.workers
        try:
            while running and outcome is None:
                self.stuck.value = len(self.workers) - len(running)
                outcome = self._run_workers(running, until, progress)
                if outcome is None and self.is_trial and self.has_failed():
                    outcome = "failed"
                running = [worker for worker in self.workers if worker.record.get("waiting")]
                if outcome is None and running and until is not None and time.perf_counter() >= until:
                    outcome = "timeout"
        except KeyboardInterrupt:
            outcome = "interrupted"
        self.request_stop()
        for worker in self.workers:  # those that were about to go on give up their blocks
            self._call(run_grid, worker)
        if self.services.failure is not None:
            raise self.services.failure
        return outcome

    def _run_workers(
        self, workers: list[Worker], until: float | None, progress: Callable[[int, int], None] | None
    ) -> str | None:
        """Have workers run until all have ended, or none gets any further; `timeout` if they were stopped."""
        ends = [worker.end for worker in workers]
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
                if until is not None and time.perf_counter() >= until and not self.stop.value:
                    return "timeout"
        finally:  # nothing that machine code works on may go before that has stopped, however impatient somebody is
            if not all(end.is_set() for end in ends):
                self.request_stop()
            while not all(end.is_set() for end in ends):
                with contextlib.suppress(KeyboardInterrupt):
                    for end in ends:
                        end.wait(1)
        return None

    def _work(self, worker: Worker) -> None:
        """Have one core run blocks; that this is a method keeps all memory alive as long as it takes."""
        try:
            self._call(run_grid, worker)
        finally:
            worker.end.set()

    def _call(self, entry: Callable[..., Any], *workers: Worker) -> int:
        """Call a function of the runtime on workers."""
        function = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_void_p] * len(workers))
        return int(
            function(self.compiled.address(signature(entry).symbol))(*(worker.record.address for worker in workers))
        )

    def has_failed(self) -> bool:
        """Whether a trial says nothing, since something was found or blocks of different workers share memory."""
        return any(
            worker.fault.get("kind") or worker.history.get("finding_count") or worker.history.get("unwatched")
            for worker in self.workers
        ) or any(self._call(share_bytes, one, other) for one, other in combinations(self.workers, 2))

    def put_back(self) -> None:
        """Make all memory what it was before a trial."""
        self._call(put_back, self.workers[0])

    def end(self) -> None:
        """Give back the blocks that were kept for an explanation, and let go of what refers to each other."""
        for worker in self.workers:
            self._call(end_broken, worker)
        del self.callback, self.services

    def profile(self) -> None:
        """Have every worker note the requests that warps make."""
        for worker in self.workers:
            record = Record(requests.Profile)
            pending = Record(requests.Request, requests.CAPACITY)
            tallies = Record(requests.Tally, len(self.compiled.facts["profile_sites"]))
            record.set(requests=pending.address, tallies=tallies.address)
            worker.record.set(profile=record.address, quantum=PROFILE_QUANTUM)
            self.profiles.append((record, pending, tallies))

    def settle(self) -> None:
        """Count the requests that are still open."""
        for worker in self.workers:
            self._call(requests.settle_all, worker)

    def request_stop(self) -> None:
        """Have every worker stop at its next look around."""
        self.stop.value = 1

    def note_fault(self, thread: int, kind: int, address: int) -> None:
        """Record what went wrong in what the host did for a thread, unless something did before."""
        place = Record.at(state.Thread, thread)
        place.set(status=state.FAILED)
        block = Record.at(state.Block, place.get("block"))
        for worker in self.workers:
            if worker.record.address == place.get("worker") and worker.fault.get("kind") == 0:
                worker.fault.set(
                    kind=kind,
                    instruction=place.get("instruction"),
                    thread=place.get("number"),
                    block=block.get("number"),
                    address=address,
                )


def _array(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * max(len(numbers), 1))(*numbers)


class Worker:
    """What one core works with, kept by Python."""

    def __init__(self, hints: int, counters: int, residents: int) -> None:
        self.record = Record(state.Worker)
        self.fault = Record(state.Fault)
        self.history = Record(history.History)
        self.findings = Record(history.Finding, MOST)
        self.history.set(findings=self.findings.address, finding_room=MOST)
        self.hints = Record(state.Hint, hints)
        self.hint_count = hints
        self.counters = (ctypes.c_uint64 * max(counters, 1)).from_buffer(room_of(8 * counters))
        self.residents = (ctypes.c_void_p * residents)()
        self.end = threading.Event()  # unlike a thread, it tells the truth after an interrupted wait
        self.end.set()
        self.forget_hints()

    def forget_hints(self) -> None:
        """Make every instruction look for its memory again."""
        for index in range(self.hint_count):
            self.hints.set(index, base=(1 << 64) - 1, last=0, delta=0)


def globals_of(module: ir.Module, variables: layout.Variables) -> list[Region]:
    """The memory of the module's variables, which keep their values from launch to launch."""
    known = module.memory
    addresses = {name: state.FUNCTION_WINDOW + 16 * number for name, number in layout.function_numbers(module).items()}
    regions = []
    for address, variable in variables.allocated:
        size = layout.size_of_variable(variable)
        memory = known.get(variable.name)
        if memory is None:
            memory = known[variable.name] = ctypes.create_string_buffer(
                bytes(variables.initial_bytes(variable, addresses)), max(size, 1)
            )
        writable = not variable.state_space.startswith("const")
        regions.append(Region(address, size, ctypes.addressof(memory), f"`{variable.name}`", writable, memory))
    return regions


def launch(
    module: ir.Module,
    kernel: ir.Function,
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Any],
    shared: int = 0,
    detectors: frozenset[str] = DETECTORS,
    seed: int = 0,
    blocks: Sequence[tuple[int, int, int]] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    profile: bool = False,
) -> Result:
    """Run a kernel on this machine's cores; `detectors` names what to look for beside what stops a kernel."""
    checks = bool(detectors)
    check_launch(module, kernel, grid, block, shared, blocks)
    compiled = compile_kernel(module, kernel, checks, profile)
    numbers = None
    if blocks is not None:
        numbers = [x + grid[0] * (y + grid[1] * z) for x, y, z in blocks]
    total = grid[0] * grid[1] * grid[2] if numbers is None else len(numbers)
    workers = max(1, min(workers or os.cpu_count() or 1, total))
    if profile or compiled.facts["talks"] or compiled.facts["clock"]:  # what blocks do depends on those before them
        workers = 1
    started = time.perf_counter()
    until = None if timeout is None else started + timeout
    running = Launch(compiled, grid, block, args, shared, seed, numbers, workers, checks)
    if profile:
        running.profile()
    try:
        outcome = running.run(until, progress)
        if outcome == "failed":
            running.put_back()
            again = Launch(compiled, grid, block, args, shared, seed, numbers, 1, checks)
            running.end()
            running = again
            outcome = running.run(until, progress)
        result = Result(seconds=time.perf_counter() - started)
        result.output = "".join(running.services.output)
        told = [d for d in explain(running, outcome, timeout) if d.code not in DETECTORS - detectors]
        result.diagnostics = add_sources(module, compiled.functions, told)
        if profile:
            running.settle()
        result.counters = count(running)
    finally:
        running.end()
    if outcome == "interrupted":
        raise Interrupted(result.diagnostics)
    if result.diagnostics and on_error == "raise" and any(found.level == "error" for found in result.diagnostics):
        raise KernelError(result.diagnostics)
    return result
