"""A node: several GPUs in one address space, and what runs on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy

from ptxlab import ir, variables
from ptxlab.device import layout
from ptxlab.device.arguments import HEAP, HEAP_STEP, AddressSpace
from ptxlab.device.coverage import Coverage, Schedule
from ptxlab.device.options import Extent, LaunchOptions
from ptxlab.device.record import Record
from ptxlab.device.result import Recording, Result
from ptxlab.emulate.host.host_order import STREAMS
from ptxlab.emulate.host.module_memory import EmulatedModule, ModuleMemory, Snapshot
from ptxlab.emulate.host.running import Host
from ptxlab.emulate.runtime.order.devices import MOST_GRIDS
from ptxlab.emulate.team import TeamGrid, run_team
from ptxlab.isa.gpus import gpu_named
from ptxlab.launch import EXPLORED, module_of
from ptxlab.launch.contexts import context_of
from ptxlab.node.arrays import Array, Memory, in_host_memory
from ptxlab.node.graphs import Graph, capture
from ptxlab.node.operations import StreamOperation, after
from ptxlab.node.streams import Event, Stream
from ptxlab.report import KernelError, is_failure
from ptxlab.services import service

if TYPE_CHECKING:
    from ptxlab.emulate.search.explore import Exploration, ExploredTeam

MOST_GPUS = 16
MOST_RECORDED = 256  # operations that are recorded together


class Device:
    """One GPU of a node."""

    def __init__(self, node: Node, rank: int) -> None:
        self.node, self.rank = node, rank
        self.peers = {rank}  # whose memory it may access
        self.streams: list[Stream] = []
        self.default = Stream(self)

    def array(self, values: object, *, name: str | None = None) -> Array:
        """A copy of values in memory of this GPU; `name` is what messages call it."""
        data = numpy.array(values, order="C", copy=True)
        return Array(self.node, self.node.memory.allocate(self.rank, data, name), data)

    def zeros(self, shape: int | Sequence[int], dtype: Any = numpy.float32, *, name: str | None = None) -> Array:
        """An array of zeros in memory of this GPU."""
        data = numpy.zeros(shape, dtype)  # no copy: what is never accessed takes no memory of the host
        return Array(self.node, self.node.memory.allocate(self.rank, data, name), data)

    def set(self, module: ir.Module, name: str, value: object, dtype: object = None) -> None:
        """Give a variable of a module another value on this GPU, as `Module.set` does for all."""
        self.node.synchronize()
        placed = layout.Variables(module, [])
        variable = variables.find(module, placed, name)
        memory = self.node.emulated_on(module, self.rank).memory
        memory.of(placed, variable).raw = variables.bytes_of(module, variable, value, dtype)

    def stream(self) -> Stream:
        """A new stream, which is ordered with no other one, nor with the default stream."""
        return Stream(self)

    def launch(self, kernel: Any, grid: Extent, block: Extent, args: Sequence[Any] = (), **options: Any) -> None:
        """Launch a kernel on the default stream; see `Stream.launch`."""
        self.default.launch(kernel, grid, block, args, **options)

    def copy(self, to: Array, source: Array) -> None:
        """Copy an array to another on the default stream; see `Stream.copy`."""
        self.default.copy(to, source)

    def fill(self, to: Array, byte: int = 0) -> None:
        """Set every byte of an array on the default stream; see `Stream.fill`."""
        self.default.fill(to, byte)

    def call(self, function: Callable[[], object]) -> None:
        """Have the host call a function on the default stream; see `Stream.call`."""
        self.default.call(function)

    def record(self) -> Event:
        """An event of the default stream."""
        return self.default.record()

    def wait(self, event: Event) -> None:
        """Have the default stream wait for an event."""
        self.default.wait(event)

    def run(self, graph: Graph) -> None:
        """Run a graph on the default stream."""
        self.default.run(graph)

    def enable_peer_access(self, peer: Device) -> None:
        """Let kernels on this GPU access memory of another one, as `cudaDeviceEnablePeerAccess` does."""
        self.peers.add(peer.rank)

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {len(self.node)}>"


class Node:
    """Several GPUs: `node[3]` is one of them, its rank is 3.

    Launches, copies and fills are asynchronous: they run when the node is synchronized, all at the same time unless
    streams and events order them. What was found is raised then.
    """

    def __init__(self, gpus: int, gpu: str | None, peers: bool) -> None:
        if not 1 <= gpus <= MOST_GPUS:
            raise ValueError(f"gpus={gpus}: a node has 1 to {MOST_GPUS} GPUs")
        if gpu is not None:
            gpu_named(gpu)
        self.gpu = gpu
        self.memory = Memory(gpus)
        self._devices = [Device(self, rank) for rank in range(gpus)]
        if peers:
            for device in self._devices:
                device.peers.update(range(gpus))
        self.capturing: Graph | None = None
        self.order = STREAMS  # how messages say that the host orders launches
        self._queue: list[StreamOperation] = []
        self._is_calling = False  # a function of the host
        self._modules: dict[tuple[int, int], tuple[ir.Module, str, ModuleMemory]] = {}

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, rank: int) -> Device:
        if not 0 <= rank < len(self._devices):
            raise IndexError(f"rank {rank}: the node has {len(self._devices)} GPUs, 0 to {len(self._devices) - 1}")
        return self._devices[rank]

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def add(self, operation: StreamOperation) -> None:
        """Take an operation to run, or to capture; so many that no more can run together are run first."""
        self._refuse_call()
        if self.capturing is not None:
            self.capturing.operations.append(operation)
            return
        if len(self._queue) == MOST_GRIDS:
            self.synchronize()
            operation.before = after(operation.before)
        self._queue.append(operation)

    def capture(self) -> AbstractContextManager[Graph]:
        """Capture a graph: `with node.capture() as graph` has all streams add to it what is launched on them."""
        return capture(self)

    def emulated(self, target: str | int | None = None, **options: object) -> AbstractContextManager[Any]:
        """Have torch and Triton see the GPUs of this node: `with node.emulated() as ranks: ranks.run(main)`.

        `main` is called on each rank, as torchrun starts a process for each: with `torch.distributed`, symmetric memory
        and Triton's kernels, which run when the ranks wait for them. `options` are those of `synchronize`.
        """
        made: AbstractContextManager[Any] = service("ranks").emulated(self, target, **options)
        return made

    def free(self, array: Array) -> None:
        """Take back the memory of an array."""
        self.refuse_freed(array)
        self.memory.free(array.region)

    def refuse_freed(self, array: Array) -> None:
        """Refuse an array whose memory was freed, or of another node."""
        if array.node is not self:
            raise ValueError("the array is of another node")
        if array.region.base not in self.memory.regions:
            raise ValueError(f"{array.region.name} is freed")

    def synchronize(
        self,
        *,
        seed: int = 0,
        seeds: int | Iterable[int] | None = None,
        schedule: str | Sequence[int] | None = None,
        detectors: bool | Iterable[str] = True,
        timeout: float | None = None,
        record: Record | None = None,
        on_error: str = "raise",
    ) -> Result:
        """Run all that was launched, and wait for it.

        Blocks of all GPUs take turns, in an order that `seed` chooses: the same seed, the same run. With `seeds`, that
        many schedules are tried until one finds something; memory is then as after the first of them. `schedule` is one
        that `node.explore` names. With `record`,
        each launch, copy and fill is recorded to a file of the folder that it names; `result.traces` has them. The
        other keywords are those of `kernel.launch`.
        """
        if record is not None and (seeds is not None or schedule is not None):
            raise ValueError("`record` with `seeds` or `schedule`: a recording is of one schedule, by its `seed`")
        self._refuse_capture()
        self._refuse_call()
        queue, self._queue = self._queue, []
        if not queue:
            return Result()
        recording = None if record is None else _recording(record, len(queue))
        if recording is not None and record is not None:
            record = record.at(recording.path)
        options = {
            "detectors": detectors, "timeout": timeout, "on_error": "collect", "gpu": self.gpu, "record": record,
        }  # fmt: skip
        try:
            tried = [seed] if seeds is None else list(range(seeds) if isinstance(seeds, int) else seeds)
            if schedule is None:
                result = self._try(queue, tried, options)
            else:
                result = self._follow(queue, schedule, detectors=detectors, timeout=timeout)
        finally:
            for operation in queue:
                operation.is_complete = True
                operation.before = set()
        result.recording = recording
        if is_failure(result.diagnostics, on_error):
            raise KernelError(result.diagnostics)
        return result

    def explore(
        self,
        *,
        limit: int = 10_000,
        timeout: float = EXPLORED,
        every: bool = False,
        detectors: bool | Iterable[str] = True,
        progress: Callable[[int], None] | None = None,
    ) -> Exploration:
        """Run what was launched under all schedules that differ, at most `limit`, for `timeout` seconds.

        Memory stays as it is, and what was launched is still to be run. The arrays of an outcome are those of the node,
        in the order in which they were made. The keywords are those of `ptxlab.explore`.
        """
        from ptxlab.emulate.search.explore import explore

        before = self.held()

        def fresh() -> list[Any]:
            self.restore(before)
            return [region.owner for region in self.memory.regions.values()]

        try:
            return explore(self._explored(self._queue, detectors, None), fresh, limit, timeout, every, progress)
        finally:
            self.restore(before)

    def _explored(
        self, queue: Sequence[StreamOperation], detectors: bool | Iterable[str], timeout: float | None
    ) -> ExploredTeam:
        from ptxlab.emulate.search.explore import ExploredTeam

        self._refuse_capture()
        if not queue:
            raise ValueError("nothing was launched")
        if any(operation.call for operation in queue):
            raise ValueError("functions of the host are called once: schedules with them are not explored")
        options = LaunchOptions(1, 1, detectors=detectors, timeout=timeout, gpu=self.gpu)
        return ExploredTeam(self._grids(queue, options), self._space)

    def _follow(self, queue: Sequence[StreamOperation], schedule: str | Sequence[int], **options: Any) -> Result:
        """Run operations once by a schedule that an exploration names."""
        from ptxlab.emulate.search.explore import follow, read_schedule

        steps = read_schedule(schedule) if isinstance(schedule, str) else schedule
        return follow(self._explored(queue, **options), [], steps)

    def _refuse_capture(self) -> None:
        if self.capturing is not None:
            raise RuntimeError("a graph is being captured, which nothing can be waited for in")

    def _refuse_call(self) -> None:
        if self._is_calling:
            raise RuntimeError("a function of the host on a stream must not use the node: kernels still run")

    def _try(self, queue: Sequence[StreamOperation], seeds: Sequence[int], options: dict[str, Any]) -> Result:
        """Run operations under several schedules, from the same memory, until one of them finds something."""
        if not seeds:
            raise ValueError("`seeds` is empty: name at least one")
        result = None
        before = self.held() if len(seeds) > 1 else None
        ended: Held | None = None
        schedules: list[Schedule] = []
        for seed in seeds:
            if result is not None and before is not None:
                ended = ended or self.held()
                self.restore(before)
            found = self._run(queue, LaunchOptions(1, 1, **options | {"seed": seed}))
            schedules += found.coverage.schedules
            if result is None or found.diagnostics:
                result = found
            if found.diagnostics:
                break
        assert result is not None
        if ended is not None:
            self.restore(ended)
        result.coverage = Coverage(tuple(schedules))
        return result

    def _run(self, queue: Sequence[StreamOperation], options: LaunchOptions) -> Result:
        calls = any(operation.call for operation in queue)
        return run_team(self._grids(queue, options), self._space(), self._host(queue) if calls else None)

    def _host(self, queue: Sequence[StreamOperation]) -> Host:
        """What calls the functions of the host among operations, each when those that it follows are complete."""
        numbers = {id(operation): number for number, operation in enumerate(queue)}
        left = [operation for operation in queue if operation.call is not None]
        for operation in left:
            assert operation.call is not None
            operation.call.word[0] = 0

        def call_next(_: int, are_complete: Sequence[bool]) -> bool:
            for operation in left:
                assert operation.call is not None
                if all(are_complete[numbers[id(one)]] for one in operation.before if id(one) in numbers):
                    left.remove(operation)
                    self._is_calling = True
                    try:
                        operation.call.function()
                    finally:
                        self._is_calling = False
                    operation.call.word[0] = 1
                    return True
            return False

        return call_next

    def _space(self) -> AddressSpace:
        return AddressSpace(list(self.memory.regions.values()))

    def _grids(self, queue: Sequence[StreamOperation], options: LaunchOptions) -> list[TeamGrid]:
        numbers = {id(operation): number for number, operation in enumerate(queue)}
        kernels = Counter(operation.rank for operation in queue if operation.is_kernel)
        return [self._grid(operation, numbers, kernels, options) for operation in queue]

    def _grid(
        self, operation: StreamOperation, numbers: dict[int, int], kernels: Counter[int], options: LaunchOptions
    ) -> TeamGrid:
        """An operation as the emulator runs it."""
        device = self[operation.rank]
        own = LaunchOptions(operation.grid, operation.block, **operation.own)
        every = self.memory.regions.values()
        peers = device.peers if operation.is_kernel else range(len(self))
        accessible = [region for region in every if region.owner_device in peers]
        hidden = [region for region in every if region.owner_device not in peers]
        return TeamGrid(
            emulated=self.emulated_on(module_of(operation.kernel), operation.rank),
            kernel=operation.kernel,
            args=in_host_memory(tuple(operation.args)),
            options=_recorded(replace_own(options, own), numbers[id(operation)]),
            device=operation.rank,
            title=_title(operation, kernels[operation.rank]),
            regions=accessible,
            before=sorted(numbers[id(one)] for one in operation.before if id(one) in numbers),
            hidden=[*hidden, *self.memory.freed],
            host_line=operation.host_line,
            order=self.order,
            stream=operation.number,
            is_kernel=operation.is_kernel,
            multicasts=self.memory.multicasts,
        )

    def emulated_on(self, module: ir.Module, rank: int) -> EmulatedModule:
        """A module as a GPU has it: its variables are those of that GPU."""
        context = context_of(module)
        context.refuse_wrong(module)
        known = self._modules.get((id(module), rank))
        if known is None or known[1] != context.digest:
            memory = ModuleMemory(context.host)
            memory.heap.next = HEAP + rank * HEAP_STEP
            known = self._modules[id(module), rank] = module, context.digest, memory
        return EmulatedModule(module, known[1], known[2])

    # Memory, to be restored for another seed.

    def held(self) -> Held:
        """What all memory of the node holds."""
        arrays = {base: region.owner.copy() for base, region in self.memory.regions.items()}
        return arrays, {key: memory.snapshot() for key, (_, _, memory) in self._modules.items()}

    def restore(self, held: Held) -> None:
        """Have memory hold what it held; arrays that are new since then stay as they are."""
        arrays, modules = held
        for base, data in arrays.items():
            self.memory.regions[base].owner[...] = data
        for key, (_, _, memory) in self._modules.items():
            if key in modules:
                memory.restore(modules[key])
            else:
                fresh = ModuleMemory(memory.host)
                memory.variables, memory.heap = fresh.variables, fresh.heap
                memory.heap.next = HEAP + key[1] * HEAP_STEP


Held = tuple[dict[int, Any], dict[tuple[int, int], Snapshot]]


def replace_own(options: LaunchOptions, own: LaunchOptions) -> LaunchOptions:
    """The options of a run, with those that each launch has for itself."""
    return replace(
        options,
        grid=own.grid,
        block=own.block,
        shared=own.shared,
        cluster=own.cluster,
        cooperative=own.cooperative,
        overlap=own.overlap,
    )


def _recording(record: Record, count: int) -> Recording:
    """The folder that so many operations are recorded to."""
    if count > MOST_RECORDED:
        raise ValueError(f"{count} operations: at most {MOST_RECORDED} are recorded together; synchronize before")
    if record.path is None:
        return Recording(Path(mkdtemp(suffix=".ptxtraces")), is_temporary=True)
    record.path.mkdir(parents=True, exist_ok=True)
    for old in record.path.glob("*.ptxtrace"):
        old.unlink()
    return Recording(record.path, is_temporary=False)


def _recorded(options: LaunchOptions, number: int) -> LaunchOptions:
    """The options of a launch that is recorded to a file of its own, in the folder of all."""
    if options.record is None or options.record.path is None:
        return options
    return replace(options, record=options.record.at(options.record.path / f"{number:03}.ptxtrace"))


def _title(operation: StreamOperation, kernels: int) -> str:
    """`rank 1`; with the name of the kernel where several run there."""
    if not operation.is_kernel or kernels < 2:
        return operation.title
    return f"`{operation.kernel.title}` on rank {operation.rank}"


def node(gpus: int = 8, gpu: str | None = None, *, peers: bool = True) -> Node:
    """Several GPUs of one machine, each with memory of its own, in one address space.

    `gpu` is the model that all of them are, as in `kernel.launch`. With `peers`, as at an NVSwitch, each may access the
    memory of all others; without, `node[0].enable_peer_access(node[1])` says which.

    >>> import ptxlab
    >>> node = ptxlab.node(2)
    >>> x = node[1].zeros(64)
    >>> x
    <array of float32 (64,) on rank 1>
    """
    return Node(gpus, gpu, peers)
