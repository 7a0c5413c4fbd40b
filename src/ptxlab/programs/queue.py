"""What a program has issued on several streams or GPUs and has not waited for: it runs when the host waits.

Operations that all others are ordered with, before or after, run by themselves. What is between two of those is
unordered: it runs at the same time, as grids of a node do, and what races is found. Copies and fills among themselves
are compared by their bytes, and copied by the host; large ones are not compared with kernels.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import AddressSpace
from ptxlab.device.host_memory import RawArguments
from ptxlab.device.options import LaunchOptions
from ptxlab.device.record import Record
from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.emulate.apart import run_apart
from ptxlab.emulate.host.host_order import CUDA, GRAPH, PES, HostOrder
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.team import TeamGrid, run_team
from ptxlab.launch import module_of
from ptxlab.launch.contexts import context_of
from ptxlab.node.operations import THREADS, copy_kernel, fill_kernel
from ptxlab.programs.messages import Frames, MessageReader
from ptxlab.report import Diagnostic, Label, Span, error

if TYPE_CHECKING:
    from ptxlab.programs.device_memory import DeviceMemory
    from ptxlab.programs.modules import LoadedModule
    from ptxlab.programs.turns import Turn

STAGED = 0x7300_0000_0000  # below all memory of the device: what copies take from memory that is the host's alone
_GAP = 65536
_LARGE = 4 << 20  # bytes of a copy that would take too long as a kernel


@dataclass(frozen=True)
class Order:
    """Where an operation is: its GPU, its stream, and how many operations of each stream it comes after."""

    process: int
    """The PE that issued it, of a program with several; only operations of one process are ordered."""
    device: int
    stream: int
    clock: Sequence[int]
    is_node: bool
    """Whether it is a node that the host added to a graph."""
    is_pe: bool = False
    """Whether its process is a PE of NVSHMEM."""

    @classmethod
    def read(cls, given: MessageReader, process: int | None = None) -> Order:
        """Read it, of one of several processes that are PEs."""
        device, stream, count = given.number(), given.number(), given.number()
        clock = [given.number() for _ in range(count)]
        return cls(process or 0, device, stream, clock, bool(given.number()), process is not None)

    @property
    def by_host(self) -> HostOrder:
        """How the host would order it with another operation."""
        return GRAPH if self.is_node else PES if self.is_pe else CUDA

    @property
    def count(self) -> int:
        """Its own number on its stream."""
        return self.clock[self.stream]

    @property
    def line(self) -> Line:
        """What its operation is on, in order."""
        return self.process, self.stream

    def comes_after(self, other: Order) -> bool:
        """Whether streams and events order it after another operation."""
        return self.reach(other.line) >= other.count

    def reach(self, line: Line) -> int:
        """Up to which operation of a stream it comes after."""
        process, stream = line
        return self.clock[stream] if process == self.process and stream < len(self.clock) else 0


Line = tuple[int, int]
"""A stream, by its process and its number there."""


@dataclass(frozen=True)
class Call:
    """A host function of NVSHMEM that launches a kernel."""

    name: str
    team: int
    members: range
    """The PEs of its team; of none where it is not a collective."""

    @property
    def kind(self) -> str:
        """What it does, on a stream or not."""
        return self.name.removeprefix("nvshmem").removeprefix("x").removesuffix("_on_stream").removesuffix("_all")

    @property
    def of_team(self) -> Call:
        """Any collective of the same team."""
        return Call("", self.team, self.members)

    @property
    def is_of_user(self) -> bool:
        """Whether it launches a kernel of the program."""
        return self.kind == "_collective_launch"

    @property
    def is_synchronization(self) -> bool:
        """Whether it accesses only what PEs synchronize by."""
        return self.kind in ("_barrier", "_sync", "_team_sync", "_quiet", "_fence", "a team of NVSHMEM")

    def is_barrier(self, pes: int) -> bool:
        """Whether it is one of all PEs, which completes what they have sent."""
        return self.kind == "_barrier" and len(self.members) == pes


@dataclass(frozen=True)
class QueuedLaunch:
    """A kernel that was launched."""

    order: Order
    frames: Frames
    loaded: LoadedModule
    kernel: ir.Function
    options: LaunchOptions
    data: bytes
    call: Call | None = None
    """Where it is part of a host function of NVSHMEM."""
    number: int = 0
    """Of a collective: how many its PE has called for the team, with this one."""
    is_watched: bool = False
    """Whether it matters which memory of the host it reads."""

    @property
    def is_of_user(self) -> bool:
        """Whether the kernel is the program's own."""
        return self.call is None or self.call.is_of_user

    def may_overlap(self, other: Queued) -> bool:
        """Whether it may start while the operation right before it still runs: a programmatic dependent launch."""
        is_kernel = isinstance(other, QueuedLaunch) and other.order.line == self.order.line
        return self.options.overlap and is_kernel


@dataclass(frozen=True)
class QueuedCopy:
    """A copy or, with an element, a fill, of rows."""

    order: Order
    frames: Frames
    name: str
    to: int
    """0: the host copies these bytes to memory of its own, right after this; they are only read here."""
    source: int
    extent: tuple[int, int, int]
    """Bytes of a row, rows, slices of them."""
    to_steps: tuple[int, int]
    source_steps: tuple[int, int]
    """From one row and from one slice to the next."""
    element: int
    value: int
    staged: NDArray[Any]

    @classmethod
    def read(cls, given: MessageReader, process: int | None = None) -> QueuedCopy:
        order, frames, name = Order.read(given, process), given.frames(), given.text()
        to, source = given.number(), given.number()
        width, height, depth, *steps, element, value = (given.number() for _ in range(9))
        staged = numpy.frombuffer(given.bytes(), numpy.uint8)
        return cls(order, frames, name, to, source, (width, height, depth), (steps[0], steps[1]), (steps[2], steps[3]),
                   element, value, staged)  # fmt: skip

    @property
    def title(self) -> str:
        return f"`{self.name}`"

    @property
    def is_large(self) -> bool:
        return math.prod(self.extent) > _LARGE

    def written(self) -> Iterator[tuple[int, int]]:
        """The bytes that it writes, by rows."""
        return self._rows(self.to, self.to_steps) if self.to else iter(())

    def read_from(self) -> Iterator[tuple[int, int]]:
        """The bytes of the device that it reads, by rows."""
        return iter(()) if self.element or len(self.staged) else self._rows(self.source, self.source_steps)

    def _rows(self, start: int, steps: tuple[int, int]) -> Iterator[tuple[int, int]]:
        width, height, depth = self.extent
        if height * depth == 1 or (steps[0] == width and depth == 1):
            yield start, start + width * height
            return
        for slice in range(depth):
            for row in range(height):
                at = start + slice * steps[1] + row * steps[0]
                yield at, at + width


Queued = QueuedLaunch | QueuedCopy


def parts_of(queue: Sequence[Queued]) -> Iterator[Sequence[Queued]]:
    """Parts of a queue that run one after the other, each of one operation, or of several that are not all ordered."""
    streams = {one.order.line for one in queue}
    reached: list[dict[Line, int]] = [{}] * (len(queue) + 1)  # by what comes at each position or later, at least
    least = {stream: max(one.order.count for one in queue if one.order.line == stream) for stream in streams}
    for at in range(len(queue) - 1, -1, -1):
        least = {stream: min(known, queue[at].order.reach(stream)) for stream, known in least.items()}
        reached[at] = least
    start = 0
    done = dict.fromkeys(streams, 0)
    for at, one in enumerate(queue):
        overlaps = at > start and isinstance(one, QueuedLaunch) and one.may_overlap(queue[at - 1])
        if at > start and not overlaps and all(done[stream] <= reached[at][stream] for stream in streams):
            yield queue[start:at]
            start = at
        done[one.order.line] = one.order.count
    yield queue[start:]


def stages_of(part: Sequence[Queued]) -> Iterator[Sequence[Queued]]:
    """A part of a queue in steps: copies that the host makes, and in turn all kernels and copies that may run then."""
    before = directly_before(part)
    done: set[int] = set()
    while len(done) < len(part):
        for is_by_host in (True, False):
            ready: list[int] = []
            for at, one in enumerate(part):
                is_kind = (isinstance(one, QueuedCopy) and one.is_large) == is_by_host
                if at not in done and is_kind and done.union(ready).issuperset(before[at]):
                    ready.append(at)
            done.update(ready)
            if ready:
                yield [part[at] for at in ready]


def directly_before(queue: Sequence[Queued]) -> list[list[int]]:
    """For each operation those that it follows directly, by their positions: of each stream the last one, at most."""
    last: dict[Line, list[int]] = {}  # positions by stream
    found: list[list[int]] = []
    for at, one in enumerate(queue):
        before = []
        for stream, positions in last.items():
            reach = one.order.reach(stream)
            known = [p for p in positions if stream == one.order.line or queue[p].order.count <= reach]
            before += known[-1:]
        found.append(before)
        last.setdefault(one.order.line, []).append(at)
    return found


def compare(part: Sequence[QueuedCopy], span_of: Callable[[Frames], Span | None]) -> Iterator[Diagnostic]:
    """Races of copies and fills that are not ordered."""
    for number, later in enumerate(part):
        for earlier in part[:number]:
            if later.order.comes_after(earlier.order):
                continue
            pairs = (
                ("write the same memory", earlier.written(), later.written()),
                ("do not wait for each other: one writes what the other reads", earlier.written(), later.read_from()),
                ("do not wait for each other: one writes what the other reads", earlier.read_from(), later.written()),
            )
            said = next((text for text, one, other in pairs if _overlap(list(one), list(other))), None)
            if said is not None:
                yield _race(earlier, later, said, span_of)
                break


def _overlap(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    starts = sorted(one)
    at = 0
    for start, end in sorted(other):
        while at < len(starts) and starts[at][1] <= start:
            at += 1
        if at < len(starts) and starts[at][0] < end:
            return True
    return False


def _race(earlier: QueuedCopy, later: QueuedCopy, said: str, span_of: Callable[[Frames], Span | None]) -> Diagnostic:
    span, other = span_of(later.frames), span_of(earlier.frames)
    at, there = (f"{one.title} is {one.order.by_host.verb} here" for one in (later, earlier))
    others = [] if other is None or other == span else [Label(other, there)]
    return error(
        "data-race", f"unsynchronized: {earlier.title} and {later.title} {said}", span, at,
        others=others, notes=[later.order.by_host.missing],
        helps=[later.order.by_host.between(other, span)],
    )  # fmt: skip


def perform(copy: QueuedCopy, bytes_at: Callable[[int, int], NDArray[Any]]) -> None:
    """Copy or fill bytes of the device now."""
    if not copy.to:
        return
    width, height, depth = copy.extent
    for slice, row in product(range(depth), range(height)):
        to = bytes_at(copy.to + slice * copy.to_steps[1] + row * copy.to_steps[0], width)
        source = slice * copy.source_steps[1] + row * copy.source_steps[0]
        if copy.element:
            to.view(f"u{copy.element}")[:] = copy.value
        elif len(copy.staged):
            to[:] = copy.staged[source : source + width]
        else:
            ctypes.memmove(to.ctypes.data, bytes_at(copy.source + source, width).ctypes.data, width)


class Team:
    """A part of a queue as grids that run at the same time."""

    def __init__(self, memory: DeviceMemory, objects: dict[int, Any]) -> None:
        self.memory, self.arrays, self.objects = memory, memory.array_regions(), objects
        self.may_access = memory.may_access

    def _title_of(self, copy: QueuedCopy) -> str:
        return copy.title + f" on PE {copy.order.process}" * (self.memory.one_gpu == "PE")

    def run(
        self,
        part: Sequence[Queued],
        options: LaunchOptions,
        span_of: Callable[[Frames], Span | None],
        folder: Path | None,
        turn: Turn | None = None,
    ) -> Result:
        """Run them, recorded to files of a folder; the result has what was found, and what was printed.

        With a `turn`, they may wait for the host.
        """
        grids, base = [], STAGED
        if folder is not None:
            folder.mkdir()
        for number, (one, before) in enumerate(zip(part, directly_before(part), strict=True)):
            if isinstance(one, QueuedLaunch):
                overlaps = len(before) == 1 and one.may_overlap(part[before[0]])
                grid = self._launch(one, before, span_of(one.frames), overlaps)
            else:
                grid = self._copy(one, before, base, options, span_of(one.frames))
                base += math.prod(one.extent) + _GAP - math.prod(one.extent) % _GAP
            if folder is not None:
                record = Record(folder / f"{number:03}.ptxtrace")
                grid = replace(grid, options=replace(grid.options, record=record))
            grids.append(grid)
        space = AddressSpace(list(self.memory.regions.values()))
        if turn is not None:
            turn.begin(part)
            grids[0] = replace(grids[0], options=replace(grids[0].options, progress=turn.check))
            return run_team(grids, space, turn.may_host_write)
        return run_apart(grids) or run_team(grids, space)

    def _launch(self, one: QueuedLaunch, before: Sequence[int], line: Span | None, overlaps: bool) -> TeamGrid:
        device = one.order.device
        args = RawArguments(self.memory, one_by_one(one.kernel, one.data), self.objects)
        owned = [region for region in self.memory.regions.values() if region.owner_device is not None]
        named = one.kernel.title if one.is_of_user or one.call is None else one.call.name
        where = f" on {self.memory.one_gpu} {device}" * (self.memory.gpus > 1)
        title = "the node " * one.order.is_node + f"`{named}`" + where
        return TeamGrid(
            one.loaded.emulated(device), one.kernel, args, replace(one.options, overlap=overlaps), device, title,
            [region for region in owned if self.may_access(device, region)], before,
            [region for region in owned if not self.may_access(device, region)], line, one.order.by_host,
            is_kernel=one.is_of_user, stream=one.order.stream,
            watched=self.memory.watched() if one.is_watched else (),
        )  # fmt: skip

    def _copy(
        self, one: QueuedCopy, before: Sequence[int], at: int, options: LaunchOptions, line: Span | None
    ) -> TeamGrid:
        kernel, args = _as_kernel(one, at)
        regions = [*self.memory.regions.values(), *self.arrays]
        if len(one.staged):
            regions.append(Region(at, len(one.staged), one.staged.ctypes.data, "memory of the host", False, one.staged))
        if not one.to:
            landing = numpy.zeros(one.extent[0], numpy.uint8)
            regions.append(Region(at, len(landing), landing.ctypes.data, "memory of the host", True, landing))
        module = module_of(kernel)
        emulated = EmulatedModule(module, context_of(module).digest, context_of(module).memory)
        _, height, depth = one.extent
        shape = LaunchOptions((height, depth, 1), THREADS, seed=options.seed, timeout=options.timeout,
                              detectors=options.detectors, on_error="collect", gpu=options.gpu)  # fmt: skip
        return TeamGrid(emulated, kernel, args, shape, one.order.device, self._title_of(one), regions, before, (), line,
                        one.order.by_host, is_kernel=False,
                        stream=one.order.stream)  # fmt: skip


def _as_kernel(copy: QueuedCopy, staged: int) -> tuple[ir.Function, tuple[int, ...]]:
    """A copy or fill as a kernel with its arguments."""
    width, _, _ = copy.extent
    source = staged if len(copy.staged) else copy.source
    if copy.element:
        value = int.from_bytes((copy.value.to_bytes(copy.element, "little") * 4)[:4], "little")
        kernel, size = fill_kernel(copy.to, width, *copy.to_steps)
        return kernel, (copy.to, value, width // size, *copy.to_steps)
    start = copy.to or staged
    kernel, size = copy_kernel(start, source, width, *copy.to_steps, *copy.source_steps)
    to, other = copy.to_steps, copy.source_steps
    return kernel, (start, source, width // size, to[0], other[0], to[1], other[1])


def one_by_one(kernel: ir.Function, data: bytes) -> list[bytes]:
    """The bytes of each parameter."""
    area = layout.block_of(kernel.parameters)
    parts: Iterable[tuple[int, int]] = [
        (area.offsets[id(one)], layout.size_of_variable(one)) for one in kernel.parameters
    ]
    return [data[at : at + size] for at, size in parts]
