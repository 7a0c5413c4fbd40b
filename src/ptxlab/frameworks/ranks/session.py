"""A session on a node: kernels are launched on the GPU of a rank, and run when the ranks wait for them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy

from ptxlab.device.host_memory import HostMemory, HostPointer
from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.emulate.host.host_order import RANKS
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.ranks import streams as torch_streams
from ptxlab.frameworks.ranks.allocations import Allocations
from ptxlab.frameworks.ranks.distributed import Distributed
from ptxlab.frameworks.ranks.history import History, box_of
from ptxlab.frameworks.ranks.streams import functions
from ptxlab.frameworks.ranks.turns import Turns
from ptxlab.frameworks.torch_as_cpu import Machine
from ptxlab.frameworks.triton.copies import without_copies
from ptxlab.frameworks.triton.launcher import Launcher
from ptxlab.frameworks.triton.session import CHOSEN, DEFAULT_TARGET, Session, opened, target_of
from ptxlab.node import Node, Stream
from ptxlab.node.streams import Box
from ptxlab.report import Diagnostic, KernelError, is_failure


class _NodeMemory(HostMemory):
    """Memory of tensors as memory of the node: it belongs to the GPU that is chosen when it is first used."""

    def __init__(self, node: Node, turns: Turns, history: History) -> None:
        super().__init__()
        self._node, self._turns, self._history = node, turns, history
        self.free: Callable[[int, Region], None]

    def add(self, data: Any, name: str, key: int | None = None) -> Region:
        address = int(data.__array_interface__["data"][0])
        key = address if key is None else key
        known = self.regions.get(key)
        if known is None or known.size != data.nbytes:
            known = self.regions[key] = self._node.memory.allocate(self._turns.device, data, None)
            self._history.begin(known)
        return known

    def forget(self, key: int) -> None:
        region = self.regions.pop(key, None)
        if region is not None and region.base in self._node.memory.regions:
            self._node.memory.free(region)
            self.free(key, region)

    def at(self, address: int) -> Region | None:
        """The memory that contains an address."""
        return next((one for one in self.regions.values() if one.base <= address < one.base + max(one.size, 1)), None)


class _Gpus(Machine):
    """The GPUs of a node, as torch sees them."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self.count = ranks, len(ranks.node)

    def current(self) -> int:
        return self._ranks.turns.device

    def choose(self, device: int) -> None:
        if not 0 <= device < self.count:
            raise RuntimeError(f"CUDA device {device}: the node has {self.count} GPUs, 0 to {self.count - 1}")
        self._ranks.turns.device = device

    def number(self, device: object) -> int:
        """The number of a device, in whichever way a program says it."""
        index = device if device is None or isinstance(device, int) else self.device(device).index
        return self.current() if index is None else int(index)

    def device(self, device: object) -> Any:
        """As torch has it."""
        return import_module("torch").device(f"cuda:{device}" if isinstance(device, int) else device)

    def wait(self) -> None:
        self._ranks.wait()

    def owner(self, tensor: object) -> int:
        region = self._region(tensor)
        return self.current() if region is None or region.owner_device is None else region.owner_device

    def _region(self, tensor: Any) -> Region | None:
        """The memory of a tensor that is on a GPU."""
        return self._ranks.memory.regions.get(tensor.untyped_storage().data_ptr())

    # Operators are computed on the host; what they access of GPUs is known to the history of their streams.

    def functions(self) -> dict[str, object]:
        wait_for_all = {"synchronize": lambda device=None: self._ranks.wait_for_device(self.number(device))}
        return functions(self._ranks) | wait_for_all

    def call(self, function: Callable[..., Any], args: Any, named: Any, is_for_gpu: bool) -> Any:
        given = list(_tensors((args, named)))
        here = [one for one in given if self._region(one) is not None]
        if not here and not is_for_gpu:
            return function(*args, **named)
        versions = [_version(one) for one in here]
        result = function(*args, **named)
        name = str(getattr(function, "__name__", "an operator"))
        if name == "__setitem__":
            part = args[0][args[1]]
            if part.untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr():  # not one of single elements
                self.note(name, [one for one in here if one is not args[0]], [part])
            return result
        storages = {one.untyped_storage().data_ptr() for one in here}
        made = [one for one in _tensors(result) if one.untyped_storage().data_ptr() not in storages]
        if self._ranks.collective:
            made = []
        if is_for_gpu and not here and any(one is result for one in given):  # `to` where it is already, but for us
            result = result.clone()
            made = [result]
        written = [one for one, version in zip(here, versions, strict=True) if _version(one) != version]
        is_read = name in _READ_ON_HOST
        if not made and not written and not is_read:
            return result  # a view, or a property
        if not is_read:
            device = self.owner(here[0]) if here else self.current()
            self._register(name, made, device)
            written += [one for one in made if not name.startswith(_EMPTY)]
            self._ranks.allocations.take(name)
        if name.startswith(_OF_SOME):
            here, written = [], made
        self.note(name, [one for one in here if not any(one is other for other in written)], written)
        if is_read:
            self._ranks.current_stream().synchronize()
        return result

    def note(self, name: str, read: Sequence[Any], written: Sequence[Any]) -> None:
        """Have the history know that the current stream reads and writes tensors, by an operator of that name."""
        ranks = self._ranks
        called = name.removeprefix("__").removesuffix("__")
        title = f"`{ranks.collective or called}` on rank {ranks.turns.device}"
        stream = ranks.current_stream()
        for one in (*read, *written):
            size = one.element_size()
            box = box_of(ranks.session.arrays.address(one), tuple(one.shape),
                         tuple(stride * size for stride in one.stride()), size)  # fmt: skip
            if box is None:
                continue
            values = _bytes_of(box, self._region(one)) if any(one is other for other in written) else None
            ranks.record(stream.own, _access(box, title, values))
            ranks.allocations.use(one, stream)

    def to_gpu(self, tensor: Any) -> Any:
        if self._region(tensor) is not None:
            return tensor
        made = tensor.clone()
        self._register("cuda", [made], self.current())
        self.note("cuda", [], [made])
        return made

    def to_host(self, tensor: Any) -> Any:
        if self._region(tensor) is not None:
            self.wait()
            self.note("cpu", [tensor], [])
            self._ranks.current_stream().synchronize()
        return tensor.clone()

    def record_stream(self, tensor: Any, stream: Any) -> None:
        self._ranks.allocations.keep_for(tensor, stream)

    def _register(self, name: str, made: Sequence[object], device: int) -> None:
        before = self.current()
        self._ranks.turns.device = device
        try:
            for one in made:
                self._ranks.session.arrays.address(one)
                region = self._region(one)
                if region is not None and not name.startswith(_EMPTY):
                    self._ranks.history.begin_unwritten(region)
                self._ranks.allocations.use(one, self._ranks.current_stream())
        finally:
            self._ranks.turns.device = before


_READ_ON_HOST = {
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__repr__", "__format__", "__array__",
    "equal", "allclose", "is_nonzero", "__contains__",
}  # fmt: skip
# These access elements that other tensors name: of which tensors that is not known.
_OF_SOME = ("index", "scatter", "masked", "put", "gather", "embedding", "take", "select_scatter", "__getitem__")
_EMPTY = ("empty", "new_empty")  # these write nothing


def _tensors(value: Any) -> Iterator[Any]:
    """All tensors in arguments or in a result."""
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif hasattr(value, "untyped_storage") and value.layout == import_module("torch").strided:
        yield value


def _version(tensor: Any) -> int:
    """It counts the operators that have written to a tensor."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _bytes_of(box: Box, region: Region | None) -> Any:
    """What memory holds now, one row after the other."""
    assert region is not None
    (width, rows, slices), (row, slice) = box.extent, box.steps
    there = region.owner[box.start - region.base :]
    return numpy.lib.stride_tricks.as_strided(there, (slices, rows, width), (slice, row, 1)).copy()


def _access(box: Box, title: str, values: Any) -> Callable[[Stream], None]:
    return lambda stream: stream.access(box, title, values)


class _NodeSession(Session):
    """Triton's session, whose launches are of a node."""

    ranks: Ranks

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[object]) -> None:
        if not self.is_dry:
            self.ranks.launch(launcher, grid, args)
            self._found = False


class Ranks:
    """The ranks of a node while they are emulated."""

    def __init__(self, node: Node, target: str, options: dict[str, Any]) -> None:
        self.node, self.options = node, options
        self.diagnostics: list[Diagnostic] = []
        self.turns = Turns(len(node), self._run_launched)
        self.history = History(node)
        self.memory = _NodeMemory(node, self.turns, self.history)
        self.gpus = _Gpus(self)
        self.stream_type = torch_streams.stream_type_of(self)
        self.default_streams = [self.stream_type.of(device.default) for device in node]
        self._own_streams: dict[tuple[str, int], torch_streams.Stream] = {}  # by what torch uses them for, and GPU
        self._current: dict[tuple[int, int], torch_streams.Stream] = {}  # by rank and GPU
        self._collectives: dict[int, str] = {}  # that ranks are in
        self.session = _NodeSession(target)
        self.session.ranks = self
        self.session.arrays = arrays = Arrays()
        arrays.memory = self.memory
        self._kept: dict[int, list[object]] = {}  # by rank, what launches that have not run refer to
        self._kernels: dict[int, Launcher] = {}
        self._runs = 0
        self.distributed = Distributed(self)
        self.allocations = Allocations(self)
        self.memory.free = self.allocations.free

    def run(self, function: Callable[..., object], *args: object) -> list[Any]:
        """Call a function on each rank, in a thread of its own; what each returned.

        `torch.distributed`, `torch.cuda.current_device()` and the variables of torchrun (`RANK`, `WORLD_SIZE`) say
        which rank it is. What is found is raised here.
        """

        def one(rank: int) -> object:
            with ExitStack() as stack:
                if self.session.mode is not None:
                    stack.enter_context(self.session.mode())
                result = function(*args)
                self.wait()
                return result

        results = self.turns.run(one)
        self.distributed.refuse_unreceived()
        self.judge()
        return results

    # Streams.

    def current_stream(self, device: int | None = None) -> torch_streams.Stream:
        """The stream that this rank launches on."""
        device = self.turns.device if device is None else device
        return self._current.get((self.turns.rank, device)) or self.default_streams[device]

    def use_stream(self, stream: torch_streams.Stream) -> None:
        """Have this rank launch on a stream, on its GPU."""
        self._current[self.turns.rank, stream.device_index] = stream
        self.turns.device = stream.device_index

    def record(self, stream: Stream, action: Callable[[Stream], None]) -> None:
        """Add to the history of a stream; one that is long is judged."""
        self.history.add(self.turns.rank, stream, action)
        if self.history.is_full:
            self.judge()

    def launch_on_stream(self, action: Callable[[Stream], None], *kept: object) -> None:
        """Launch on the current stream of this rank, now and in its history."""
        self.keep(*kept)
        own = self.current_stream().own
        action(own)
        self.record(own, action)

    @contextmanager
    def communicating(self, name: str) -> Iterator[torch_streams.Event]:
        """On the stream of collectives, after what is on the current one; gives an event that is its end."""
        current, event = self.current_stream(), self.stream_type.event_type()
        stream = self._stream_for("collectives", current.device_index)
        stream.wait_stream(current)
        try:
            with stream, self.within(name):
                yield event
        finally:
            event.record(stream)

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """In a collective of that name, which what it accesses is shown as; tensors of its own are not seen."""
        rank = self.turns.rank
        self._collectives[rank] = name
        try:
            yield
        finally:
            self._collectives.pop(rank)

    def backend_stream(self) -> torch_streams.Stream:
        """The stream on which torch's functions of symmetric memory copy."""
        self.history.is_needed = True
        return self._stream_for("symmetric memory", self.turns.device)

    def _stream_for(self, use: str, device: int) -> torch_streams.Stream:
        """A stream of a GPU that torch itself makes."""
        if (use, device) not in self._own_streams:
            self._own_streams[use, device] = self.stream_type.of(self.node[device].stream())
        return self._own_streams[use, device]

    @property
    def collective(self) -> str:
        """The collective that this rank is in."""
        return self._collectives.get(self.turns.rank, "")

    def wait_for_device(self, device: int) -> None:
        """Have the host of this rank wait for all streams of a GPU."""
        self.wait()
        for stream in self.node[device].streams:
            self.history.wait_on_host(self.turns.rank, self.history.event(stream))

    def judge(self) -> None:
        """Have the detectors compare what torch's operators and kernels of several streams access."""
        self._report(self.history.judge(self._synchronize), {})

    def multicast(self, addresses: Sequence[int], size: int) -> int:
        """The address under which `multimem` accesses memory of all ranks."""
        return self.node.memory.multicast(tuple(addresses), size)

    def wait(self) -> None:
        """Wait for what this rank has launched; other ranks run meanwhile."""
        if not self.turns.is_rank:
            self._run_launched()
            return
        if self.turns.rank not in self._kept:
            return
        runs = self._runs
        self.turns.wait(lambda: self._runs > runs, "its kernels")

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[object]) -> None:
        """Launch a kernel of Triton's on the GPU of this rank."""
        made = launcher.prepared(grid, args, self.session.arrays)
        for tensor in _tensors(tuple(args)):
            self.allocations.use(tensor, self.current_stream())
        kernel = launcher.module[launcher.name]
        self._kernels[id(kernel)] = launcher
        for value in made.values:
            region = self.memory.at(value.address) if isinstance(value, HostPointer) else None
            if region is not None:
                self.node.memory.name(region, value.name.partition("`")[2].replace("`)", ""))
        passed = [struct.pack("<Q", one.address) if isinstance(one, HostPointer) else one for one in made.values]
        self.launch_on_stream(
            lambda stream: stream.launch(kernel, made.grid, made.block, passed, **made.own), args, made
        )

    def keep(self, *objects: object) -> None:
        """Keep what a launch refers to until it has run."""
        self._kept.setdefault(self.turns.rank, []).extend(objects)

    def _run_launched(self) -> bool:
        if not self._kept:
            return False
        self._runs += 1
        kernels, self._kernels, kept, self._kept = self._kernels, {}, self._kept, {}
        result = self._synchronize()
        kept.clear()
        self._report(result, kernels)
        print(result.output, end="")
        return True

    def _synchronize(self) -> Result:
        return self.node.synchronize(**{"detectors": CHOSEN} | self.options | {"on_error": "collect"})

    def _report(self, result: Result, kernels: dict[int, Launcher]) -> None:
        """Keep what was found, and raise it."""
        for launcher in kernels.values():
            if "detectors" not in self.options:
                kernel = launcher.module[launcher.name]
                result.diagnostics = without_copies(result.diagnostics, kernel, launcher.is_gluon)
        self.diagnostics += result.diagnostics
        if is_failure(result.diagnostics, self.options.get("on_error", "raise")):
            raise KernelError(result.diagnostics)


@contextmanager
def emulated(node: Node, target: str | int | None = None, **options: object) -> Iterator[Ranks]:
    """Have torch and Triton see the GPUs of a node; see `Node.emulated`."""
    ranks = Ranks(node, target_of(DEFAULT_TARGET if target is None else target), options)
    with ExitStack() as stack:
        stack.enter_context(patch.object(node, "order", RANKS))
        stack.enter_context(opened(ranks.session, True, ranks.gpus))
        stack.enter_context(ranks.distributed.installed())
        yield ranks
        ranks.wait()
        ranks.judge()
