"""Grids that run at the same time, on several GPUs or several streams of one: one scheduler, one history of accesses.

Each grid has a worker of its own, with its kernel, its extents, its parameters and the memory that its GPU may access;
the worker of the first grid schedules the blocks of all of them. See `runtime.schedule.teams` and
`runtime.order.devices`.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ptxlab import ir
from ptxlab.device.arguments import AddressSpace
from ptxlab.device.coverage import Coverage
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.multicast import PlacedMulticast
from ptxlab.device.options import LaunchOptions
from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.network import NETWORK
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.coverage import schedule_of
from ptxlab.emulate.host.host_order import STREAMS, HostOrder
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.host.running import Host, LaunchPlace, RunningLaunch
from ptxlab.emulate.host.watched import reads_of
from ptxlab.emulate.host.written import tracked_parameters
from ptxlab.emulate.launch import Interrupted, compiled_for, configure, note_executed, uncompiled
from ptxlab.emulate.runtime.order.devices import MOST_GRIDS, MOST_STEPS, STEP_SHIFT
from ptxlab.emulate.translate.arithmetic import arithmetic_of
from ptxlab.emulate.translate.compile import runtime_code
from ptxlab.isa.gpus import SMS, GpuModel
from ptxlab.isa.occupancy import occupancy
from ptxlab.native.apart import OutOfTimeError
from ptxlab.native.checking import share
from ptxlab.report import Diagnostic
from ptxlab.report import Span as SourceSpan
from ptxlab.timelines import Span, Timeline

_ALL_SMS = 1 << 40  # of a GPU, in parts that blocks take
_UNKNOWN_SMS, _MOST_BLOCKS = 128, 32


@dataclass(frozen=True)
class TeamGrid:
    """One grid of a team."""

    emulated: EmulatedModule
    kernel: ir.Function
    args: Sequence[Any]
    options: LaunchOptions
    device: int
    title: str
    """What messages call it: `rank 1`."""
    regions: Sequence[Region]
    """The memory of the node that its GPU may access."""
    before: Sequence[int] = ()
    """The grids that are complete before it starts, by their numbers, of which it follows each directly."""
    hidden: Sequence[Region] = field(default=())
    """Memory of the node that its GPU may not access, and what was freed."""
    host_line: SourceSpan | None = None
    """Where the host launched it."""
    order: HostOrder = STREAMS
    """How the host would order it with another launch."""
    is_kernel: bool = True
    """Whether the user wrote it: copies and fills are shown by the line of the host."""
    stream: int = 0
    """The number of its stream on its GPU."""
    multicasts: Sequence[PlacedMulticast] = ()
    """Multicast addresses beside those of its arguments."""
    watched: Sequence[Region] = ()
    """Memory of which the host wants to know what was read."""

    @property
    def sends(self) -> bool:
        """Whether it may send over a network."""
        return any(one.name in NETWORK for one in self.emulated.module.functions)


def run_team(grids: Sequence[TeamGrid], space: AddressSpace, host: Host | None = None) -> Result:
    """Run grids at the same time, each once those before it are complete; all have one seed and one time limit.

    Meanwhile, a `host` may change memory.
    """
    first = grids[0].options
    runtime_code(first.record is not None)
    started = time.perf_counter()
    until = None if first.timeout is None else started + first.timeout
    try:
        with joined(grids, space, until) as running:
            outcome = running[0].run(until, first.progress, host)
            for launch, grid in zip(running, grids, strict=True):
                note_executed(launch, grid.emulated.digest)
            result = Result(seconds=time.perf_counter() - started)
            for launch in running:
                launch.textures.write_back()
            result.output = output_of(running)
            result.finished = tuple(launch.finished.value == launch.total for launch in running)
            result.diagnostics = diagnostics_of(running, grids, outcome, first)
            result.reads = tuple(reads_of(running)) if running[0].checks else ()
            _finish_recordings(running, outcome, result.diagnostics)
            result.coverage = Coverage((schedule_of(running[0]),))
            timeline = _timeline(running, grids)
            result.read_timeline = lambda: timeline
    except UncompiledError as wrong:
        return Result([wrong.diagnostic])
    if outcome == "interrupted":
        raise Interrupted(result)
    return result


class UncompiledError(Exception):
    """The time was over before all kernels of a team were compiled."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


@contextmanager
def joined(
    grids: Sequence[TeamGrid], space: AddressSpace, until: float | None, preemption: int | None = None
) -> Iterator[list[RunningLaunch]]:
    """Grids about to run at the same time; `preemption` is where threads may stop, by default as the seed has it."""
    if len(grids) > MOST_GRIDS:
        raise ValueError(f"{len(grids)} grids: at most {MOST_GRIDS} run together")
    running: list[RunningLaunch] = []
    kept: list[Any] = []
    try:
        first_block = 0
        kinds: dict[tuple[int, SourceSpan | None], int] = {}
        for number, grid in enumerate(grids):
            kind = kinds.setdefault((id(grid.kernel), grid.host_line), len(kinds))
            place = place_of(grid, number, len(grids), first_block, kind)
            try:
                running.append(_prepare(grid, place, space, until, preemption))
            except OutOfTimeError:
                found = uncompiled(grid.emulated.module, grid.kernel, grid.options.timeout)
                raise UncompiledError(found) from None
            first_block += _steps(running[-1]) << STEP_SHIFT
        kept = _join(running, grids)
        yield running
    finally:
        for launch in running:
            launch.end()
        kept.clear()


def place_of(grid: TeamGrid, number: int, count: int, first_block: int, kind: int) -> LaunchPlace:
    """Where a grid is among so many."""
    before = frozenset(grid.before if grid.options.overlap else ())
    return LaunchPlace(number, count, first_block, kind, grid.device, grid.title, grid.regions, grid.hidden,
                       grid.host_line, grid.order, before, is_kernel=grid.is_kernel, stream=grid.stream,
                       multicasts=grid.multicasts)  # fmt: skip


def ordered_with(grids: Sequence[TeamGrid]) -> list[int]:
    """For each grid those that are complete before it starts, or start after it is complete, as bits.

    One that may start while those before it still run is taken to be ordered with none of them; so is one that sends
    over a network, which its end does not complete.
    """
    found = [0] * len(grids)
    for number, grid in enumerate(grids):
        for before in () if grid.options.overlap else grid.before:
            found[number] |= found[before] | 1 << before
    after = [0] * len(grids)
    for number in range(len(grids) - 1, -1, -1):
        for before in () if grids[number].options.overlap else grids[number].before:
            after[before] |= after[number] | 1 << number
    senders = sum(1 << number for number, grid in enumerate(grids) if grid.sends)
    return [0 if grid.sends else (one | other) & ~senders for grid, one, other in zip(grids, found, after, strict=True)]


def output_of(running: Sequence[RunningLaunch]) -> str:
    """What kernels have printed."""
    return "".join(text for launch in running for text in launch.services.output)


def _steps(launch: RunningLaunch) -> int:
    """How many steps of numbers of blocks a grid needs."""
    return -(-math.prod(launch.grid) >> STEP_SHIFT)


def _prepare(
    grid: TeamGrid, place: LaunchPlace, space: AddressSpace, until: float | None, preemption: int | None
) -> RunningLaunch:
    """One of the grids, about to run."""
    module, options = grid.emulated.module, grid.options
    arithmetic = arithmetic_of(module, grid.kernel, grid.emulated.digest, options)
    configuration = replace(configure(module, grid.kernel, options, arithmetic), watched=grid.watched)
    if place.first_block + math.prod(configuration.grid) > MOST_STEPS << STEP_SHIFT:
        raise ValueError(f"a grid of {math.prod(configuration.grid)} blocks: too many run together")
    compiled = compiled_for(grid.emulated, grid.kernel, options, arithmetic, until, preemption)
    grid.emulated.memory.host.ran_on = None
    threads, shared = math.prod(configuration.block), compiled.variables.dynamic_offset + configuration.shared
    if grid.is_kernel:
        place = replace(place, resident=_resident(arithmetic.gpu, threads, shared))
    return RunningLaunch(compiled, grid.emulated.memory, grid.args, configuration, 1, space, place)


def _resident(gpu: GpuModel, threads: int, shared: int) -> int:
    """How many blocks a GPU holds at a time, if registers do not limit it further."""
    held = occupancy(gpu.target, threads, 1, shared)
    return max(1, SMS.get(gpu.name, _UNKNOWN_SMS) * (_MOST_BLOCKS if held is None else held.blocks))


def _join(running: Sequence[RunningLaunch], grids: Sequence[TeamGrid]) -> list[Any]:
    """Have the worker of the first grid schedule all of them; what is returned must live as long as they run."""
    (leader,) = running[0].workers
    count = len(running)
    addresses = [launch.workers[0].record.address for launch in running]
    workers = share((ctypes.c_void_p * count)(*addresses))
    tables = {
        "grids": [number for number, launch in enumerate(running) for _ in range(_steps(launch))],
        "devices": [grid.device for grid in grids],
        "launches": [launch.place.kind for launch in running if launch.place is not None],
    }
    shared = {name: share((ctypes.c_uint32 * len(table))(*table)) for name, table in tables.items()}
    team = StructArray(state.Team)
    room = share((ctypes.c_uint64 * (max(tables["devices"]) + 1))(*[_ALL_SMS] * (max(tables["devices"]) + 1)))
    team.set(workers=ctypes.addressof(workers), count=count, room=ctypes.addressof(room))
    team.set(**{name: ctypes.addressof(table) for name, table in shared.items()})
    kept: list[Any] = [team, workers, room, *shared.values()]
    tracked = tracked_parameters(running, ordered_with(grids))
    for launch, grid, bits in zip(running, grids, tracked, strict=True):
        (worker,) = launch.workers
        assert launch.place is not None
        worker.record.part("memory").set(tracked=bits)
        launch.team = running
        before = share((ctypes.c_uint32 * max(len(grid.before), 1))(*grid.before))
        kept.append(before)
        worker.record.part("together").set(
            team=team.address,
            before=ctypes.addressof(before),
            before_count=len(grid.before),
            overlaps=int(grid.options.overlap),
            cost=launch.cluster_size * (_ALL_SMS // launch.place.resident),
        )
        worker.record.part("clusters").set(first=0, past=launch.clusters)
        launch.next.value = launch.clusters
        worker.follow(leader, ctypes.addressof(running[0].stop))
    residents = share((ctypes.c_void_p * sum(launch.clusters for launch in running))())
    parts = [launch.workers[0].record.part("clusters") for launch in running]
    parts[0].set(
        residents=ctypes.addressof(residents),
        capacity=max(part.get("capacity") for part in parts) * (count if not grids[0].options.seed else 1),
        limit=min(part.get("limit") for part in parts),
    )
    return [*kept, residents]


def _finish_recordings(running: Sequence[RunningLaunch], outcome: str | None, found: list[Diagnostic]) -> None:
    """Close the recordings of all grids; the instruction that was wrong is of one of them."""
    fault = running[0].workers[0].fault
    wrong = running[0].of(fault.get("block")) if fault.get("kind") else None
    for launch in running:
        if launch.recorder is not None:
            launch.recorder.finish(outcome, fault.get("instruction") if launch is wrong else None, found)


def _timeline(running: Sequence[RunningLaunch], grids: Sequence[TeamGrid]) -> Timeline:
    """When each grid ran; an arrow leads to the first one on another stream that was waiting for it."""
    times = [
        [launch.workers[0].record.get(f"together.{name}") for name in ("first_turn", "last_turn")] for launch in running
    ]
    followed: dict[int, int] = {}
    for number, grid in enumerate(grids):
        for before in grid.before:
            if (grids[before].device, grids[before].stream) != (grid.device, grid.stream):
                followed.setdefault(before, number)
    spans = []
    for number, (grid, (start, end)) in enumerate(zip(grids, times, strict=True)):
        label = f"`{grid.kernel.title}`" if grid.is_kernel else grid.title
        after = followed.get(number)
        seen = None if after is None else (grids[after].device, grids[after].stream, times[after][0])
        spans.append(Span(grid.device, grid.stream, "", label, start, max(start, end), observed=seen))
    return Timeline(tuple(spans), "turns of warps", shared_clock=True, places=("rank", "stream"))


def diagnostics_of(
    running: Sequence[RunningLaunch], grids: Sequence[TeamGrid], outcome: str | None, options: LaunchOptions
) -> list[Diagnostic]:
    """What was found, by the detectors that were asked for."""
    if outcome is None and all(launch.is_clean for launch in running):
        return []
    from ptxlab.emulate.explain.faults import explain
    from ptxlab.emulate.explain.locations import add_sources

    left_out = DETECTORS - options.detectors
    found = [one for one in explain(running[0], outcome, options.timeout) if one.code not in left_out]
    for module in {id(grid.emulated.module): grid.emulated.module for grid in grids}.values():
        found = add_sources(module, found)
    return found
