"""The other side of a running program: its requests, answered by the emulator.

A program connects when it first calls CUDA, and sends the file that its device memory is in. Requests are an operation
and its bytes; the operations are in the order of the enumeration in `runtime/runtime.h`.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.driver_maps import encode_tiled
from ptxlab.device.host_memory import HostMemory, RawArguments
from ptxlab.device.limits import available
from ptxlab.device.multicast import PlacedMulticast
from ptxlab.device.options import LaunchOptions
from ptxlab.device.record import Record
from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.device.textures import HANDLE_BYTES, HANDLES
from ptxlab.emulate.launch import Interrupted, launch
from ptxlab.ir.mangled import matches
from ptxlab.ir.origin import at_origin
from ptxlab.isa.gpus import SMS
from ptxlab.isa.occupancy import limits_of
from ptxlab.isa.targets import target_named
from ptxlab.launch.contexts import context_of
from ptxlab.programs.device_launches import take_launches
from ptxlab.programs.host_memory import name_host_memory
from ptxlab.programs.libraries import CALLS, BadCallError
from ptxlab.programs.messages import Frames, MessageReader, Writer
from ptxlab.programs.modules import LoadedModule, Modules
from ptxlab.programs.queue import (
    Order,
    Queued,
    QueuedCopy,
    QueuedLaunch,
    Team,
    compare,
    one_by_one,
    parts_of,
    perform,
    stages_of,
)
from ptxlab.programs.repeats import Repeats
from ptxlab.programs.textures import object_of
from ptxlab.report import Diagnostic, KernelError, PtxError, Span, render
from ptxlab.toolchain import compile_cuda

VIEW, VIEW_SIZE = 0x7400_0000_0000, 4 << 40
KINDS = ("device", "pinned", "managed", "registered", "variable", "array", "pooled", "created", "mapped")
_INVALID_VALUE, _INVALID_FUNCTION, _INVALID_SYMBOL, _NO_IMAGE, _INVALID_PTX = 1, 98, 13, 209, 218
_FAILURE, _NOT_SUPPORTED = 719, 801
# What a GPU reports of a kernel that has stopped; of other faults, an unspecified failure.
_FAULTS = {"out-of-bounds": 700, "use-after-free": 700, "missing-peer-access": 700,
           "read-only-write": 700, "misaligned-access": 716, "trap": 719,
           "assertion-failed": 710, "hang": 702, "timeout": 702}  # fmt: skip


@dataclass(frozen=True)
class HostFinding:
    """What the runtime has found of the host code."""

    code: str
    message: str
    help: str
    frames: Frames
    allocation: int | None = None


@dataclass
class AllocationRecord:
    """An allocation: how large, where it was made, and where it was freed."""

    base: int
    size: int
    kind: str
    made: Frames
    freed: Frames = ()


@dataclass
class LaunchCount:
    """Launches of one kernel, and how long they took."""

    count: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch that was recorded: of which kernel, how it ended, and where the host was."""

    kernel: str
    result: Result
    frames: Frames


@dataclass
class Log:
    """What is known at the end."""

    host: list[HostFinding] = field(default_factory=list)
    device: list[Diagnostic] = field(default_factory=list)
    launches: dict[str, LaunchCount] = field(default_factory=dict)
    launched_at: dict[int, Frames] = field(default_factory=dict)
    """Where the launch was in which a finding of the device was made, by its position."""
    allocations: list[AllocationRecord] = field(default_factory=list)
    recorded: list[RecordedLaunch] = field(default_factory=list)
    repeats: list[Repeats] = field(default_factory=list)
    """Of each process."""


Recorder = Callable[[str, Log], Record | None]
"""What is to be recorded of the next launch of a kernel, given what was recorded before."""


class Process:
    """One process of the program: its device memory, its modules, and answers to its requests."""

    def __init__(
        self, connection: socket.socket, modules: Modules, options: dict[str, Any], log: Log, record: Recorder | None,
        max_repeats: int | None, gpus: int, span_of: Callable[[Frames], Span | None], others: list[Process],
    ) -> None:  # fmt: skip
        """`others` are the processes of the program before this one."""
        self.connection, self.modules, self.options, self.log, self.record = connection, modules, options, log, record
        self.gpus, self.span_of = gpus, span_of
        self.peers: list[set[int]] = [set() for _ in range(gpus)]
        self.pool_peers: list[set[int]] = [set() for _ in range(gpus)]  # whose pools each GPU may access
        self.pooled: set[int] = set()  # addresses of memory of pools
        self.mapped: dict[int, Region] = {}  # by address, whether kernels may access it or not
        self.accessible: dict[int, set[int]] = {}  # of that: the GPUs that may
        self.queue: list[Queued] = []
        _, received, _, _ = socket.recv_fds(connection, 1, 1)
        self._view = mmap.mmap(received[0], VIEW_SIZE, mmap.MAP_SHARED)
        self._file = received[0]
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.number: int = struct.unpack("iII", credentials)[0]
        self.has_ended, self._is_shared = False, False
        self._others = others
        others.append(self)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._view))
        self.memory = HostMemory()
        self.numbers: dict[int, int] = {}  # of allocations, by their addresses
        self.arrays: dict[int, int] = {}  # sizes by addresses
        self.repeats = Repeats(max_repeats)
        log.repeats.append(self.repeats)
        self.objects: dict[int, Any] = {}
        self._next_object = 0
        self.generators: list[numpy.random.Generator] = []  # of cuRAND
        self._handlers: tuple[Callable[[MessageReader], Writer | None], ...] = (
            self._allocate, self._free, self._module, self._function, self._variable, self._bind, self._launch,
            self._finding, self._device, self._occupancy, self._resources, self._texture, self._tensor_map,
            self._compile, self._library, self._no_texture, self._alias, self._copy, self._run_queued, self._peer,
            self._pool, self._map, self._unmap, self._access, self._multicast,
            self._share, self._open,
        )  # fmt: skip

    def close(self) -> None:
        """End the conversation, and give back the address space of its memory, of which there is little."""
        self.connection.close()
        os.close(self._file)
        self.has_ended = True
        if not self._is_shared:
            self._view.close()

    def serve_one(self) -> bool:
        """Answer a request; false where the program has ended."""
        head = self._receive(16)
        if head is None:
            return False
        request, size = struct.unpack("<QQ", head)
        body = self._receive(size)
        if body is None:
            return False
        answer = self._handlers[request](MessageReader(body))
        if answer is not None:
            self.connection.sendall(answer.finished())
        return True

    def _receive(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            got = self.connection.recv(min(size - len(parts), 1 << 20))
            if not got:
                return None
            parts += got
        return bytes(parts)

    def bytes_at(self, address: int, size: int) -> numpy.ndarray[Any, Any]:
        """Device memory as an array of bytes."""
        start = self._start + address - VIEW
        for region in self.mapped.values():
            if region.base <= address < region.base + region.size:
                start = region.data + address - region.base
        memory = (ctypes.c_uint8 * size).from_address(start)
        return numpy.frombuffer(memoryview(memory), numpy.uint8) if size else numpy.zeros(0, numpy.uint8)

    # Memory.

    def _held(self, variables: Iterable[ctypes.Array[ctypes.c_char]]) -> list[numpy.ndarray[Any, Any]]:
        """All memory of the device that the program has allocated, and variables of a module."""
        sizes = {base: region.size for base, region in self.memory.regions.items() if base in self.numbers}
        held = [self.bytes_at(base, size) for base, size in (*sizes.items(), *self.arrays.items())]
        return [*held, *(numpy.frombuffer(memoryview(one), numpy.uint8) for one in variables if len(one))]

    def _allocate(self, given: MessageReader) -> None:
        base, size, kind, device = given.number(), given.number(), KINDS[given.number()], given.number()
        self.log.allocations.append(AllocationRecord(base, size, kind, given.frames()))
        number = self.numbers[base] = len(self.log.allocations)
        name = f"allocation {number}" if kind != "variable" else f"the variable of allocation {number}"
        if kind == "array":
            self.arrays[base] = size
        else:
            owner = device if self.gpus > 1 and kind in ("device", "variable", "pooled", "created") else None
            name += f" of GPU {device}" * (owner is not None)
            if kind == "pooled":
                self.pooled.add(base)
            self.memory.regions[base] = Region(base, size, self._start + base - VIEW, name, owner_device=owner)

    def _free(self, given: MessageReader) -> None:
        base = given.number()
        self.memory.regions.pop(base, None)
        self.arrays.pop(base, None)
        self.log.allocations[self.numbers[base] - 1].freed = given.frames()

    # Memory that is mapped in steps: a kernel reaches it once it may access it.

    def _map(self, given: MessageReader) -> None:
        base, size, home, device = (given.number() for _ in range(4))
        self.log.allocations.append(AllocationRecord(base, size, "mapped", given.frames()))
        number = self.numbers[base] = len(self.log.allocations)
        name = f"allocation {number}" + f" of GPU {device}" * (self.gpus > 1)
        owner = device if self.gpus > 1 else None
        region = Region(base, size, self._start + home - VIEW, name, owner_device=owner, is_mapped=True)
        self.mapped[base] = region
        if self.gpus > 1:  # otherwise all that is there is accessible
            self.memory.regions[base] = region

    def _unmap(self, given: MessageReader) -> None:
        base = given.number()
        self.mapped.pop(base)
        self.memory.regions.pop(base, None)
        self.accessible.pop(base, None)
        self.log.allocations[self.numbers[base] - 1].freed = given.frames()

    def _access(self, given: MessageReader) -> None:
        base, device, is_enabled = given.number(), given.number(), given.number()
        devices = self.accessible.setdefault(base, set())
        (devices.add if is_enabled else devices.discard)(device)
        self.memory.regions[base] = self.mapped[base]

    def _multicast(self, given: MessageReader) -> None:
        """What a multicast address refers to: memory of each device, at the address that it is mapped to, if it is."""
        base, size, count = given.number(), given.number(), given.number()
        homes = [given.number() for _ in range(count)]
        others = [one for one in self.memory.multicasts if one.base != base]
        replicas = tuple(self._mapped_at(home) for home in homes)
        made = [PlacedMulticast(base, size, replicas, "a multicast object")] if homes else []
        self.memory.multicasts = [*others, *made]

    def _mapped_at(self, home: int) -> int:
        at = self._start + home - VIEW
        for region in self.mapped.values():
            if region.data <= at < region.data + region.size:
                return region.base + at - region.data
        return home

    # Memory of other processes.

    def _share(self, given: MessageReader) -> Writer:
        return Writer()

    def _open(self, given: MessageReader) -> Writer:
        """Have memory of another process at an address of this one; the file that it is in."""
        process, home, base, size = (given.number() for _ in range(4))
        owner = next((one for one in self._others if one.number == process and not one.has_ended), None)
        if owner is None or home not in owner.memory.regions:
            return Writer(_INVALID_VALUE)
        self.log.allocations.append(AllocationRecord(base, size, "mapped", given.frames()))
        self.numbers[base] = len(self.log.allocations)
        there = owner.memory.regions[home]
        self.mapped[base] = self.memory.regions[base] = replace(there, base=base)
        self.accessible[base] = set(range(self.gpus))  # as `cudaIpcMemLazyEnablePeerAccess` has it
        owner._is_shared = True
        return Writer().text(f"/proc/{os.getpid()}/fd/{owner._file}")

    def _alias(self, given: MessageReader) -> None:
        """Memory of the host's own that was registered: kernels reach it by the host's address."""
        address, base, size = given.number(), given.number(), given.number()
        self.memory.regions[address] = Region(address, size, self._start + base - VIEW, "registered memory of the host")

    # Modules.

    def _module(self, given: MessageReader) -> Writer:
        try:
            return Writer().number(self.modules.load([given.bytes() for _ in range(given.number())]))
        except KernelError as wrong:
            return self._refused(wrong.diagnostics, _NO_IMAGE)
        except PtxError as wrong:
            return self._refused(wrong.diagnostics, _INVALID_PTX)

    def _refused(self, found: list[Diagnostic] | tuple[Diagnostic, ...], status: int, at: Frames = ()) -> Writer:
        """An answer that reports an error of CUDA, with findings that say why."""
        self._note(found, at)
        return Writer(status)

    def _note(self, found: list[Diagnostic] | tuple[Diagnostic, ...], at: Frames) -> None:
        for one in (name_host_memory(one, self.connection) for one in found):
            if one not in self.log.device:
                self.log.launched_at[len(self.log.device)] = at
                self.log.device.append(one)

    def _loaded(self, given: MessageReader) -> LoadedModule:
        return self.modules.loaded[given.number()]

    def _function(self, given: MessageReader) -> Writer:
        loaded = self._loaded(given)
        kernel = loaded.kernel(given.text())
        if kernel is None:
            return Writer(_INVALID_FUNCTION)
        area = layout.block_of(kernel.parameters)
        variables = layout.Variables(loaded.module, layout.reachable(loaded.module, kernel))
        cluster = kernel.required_cluster or (0, 0, 0)
        stated = kernel.directive("maxntid") or kernel.directive("reqntid")
        largest = 0 if stated is None else math.prod(map(int, stated.arguments))
        answer = Writer().number(variables.dynamic_offset).number(largest)
        for extent in cluster:
            answer.number(extent)
        answer.number(int(loaded.starts_dependents(kernel)))
        answer.number(area.size).number(len(kernel.parameters))
        for parameter in kernel.parameters:
            answer.number(layout.size_of_variable(parameter)).number(area.offsets[id(parameter)])
        return answer

    def _variable(self, given: MessageReader) -> Writer:
        variable = self._loaded(given).variable(given.text())
        return Writer(_INVALID_SYMBOL) if variable is None else Writer().number(layout.size_of_variable(variable))

    def _bind(self, given: MessageReader) -> Writer:
        loaded = self._loaded(given)
        variable = loaded.variable(given.text())
        assert variable is not None
        address, size = given.number(), layout.size_of_variable(variable)
        device, is_managed = given.number(), bool(given.number())
        for one in range(self.gpus) if is_managed else (device,):
            loaded.bind(variable, (ctypes.c_char * size).from_address(self._start + address - VIEW), one)
        return Writer()

    def _resources(self, given: MessageReader) -> Writer:
        answer = Writer()
        for number in self.modules.resources(given.number(), given.text()):
            answer.number(number)
        return answer

    def _occupancy(self, given: MessageReader) -> Writer:
        return Writer().number(self.modules.blocks_per_sm(given.number(), given.number(), given.number()))

    # Launches.

    def _launch(self, given: MessageReader) -> Writer:
        loaded = self._loaded(given)
        kernel = loaded.module[given.text()]
        grid, block, cluster = ((given.number(), given.number(), given.number()) for _ in range(3))
        shared, cooperative, overlap = given.number(), bool(given.number()), bool(given.number())
        is_queued, order = bool(given.number()), Order.read(given)
        data, frames = given.bytes(), given.frames()
        shape = LaunchOptions(grid, block, shared=shared, cluster=cluster if cluster[0] else None,
                              cooperative=cooperative, overlap=overlap, on_error="collect", gpu=self.modules.gpu.name,
                              record=self._recorded(kernel), **self.options)  # fmt: skip
        self._count(kernel).count += 1
        started = time.process_time_ns()
        one = QueuedLaunch(order, frames, loaded, kernel, shape, data)
        if is_queued:
            self.queue.append(one)
        status, output = (0, "") if is_queued else self._run_alone(one)
        answer = Writer(status).number(int(loaded.talks_to_host(kernel))).number(time.process_time_ns() - started)
        return answer.text(kernel.title).text(output)

    def _run_alone(self, one: QueuedLaunch) -> tuple[int, str]:
        """Run a launch that nothing runs beside, unless it was run before and changed nothing."""
        loaded, kernel, shape = one.loaded, one.kernel, one.options

        def run() -> tuple[int, str]:
            return self._run(loaded.module, kernel, shape, one.data, one.frames)

        if shape.record is not None or loaded.allocates:
            return run()
        key = id(loaded), kernel.name, shape.grid, shape.block, shape.cluster, shape.shared, shape.cooperative, one.data
        variables = context_of(loaded.module).memory.variables
        return self.repeats.run(key, lambda: self._held(variables.values()), run)

    # Operations that run when the host waits.

    def _copy(self, given: MessageReader) -> None:
        self.queue.append(QueuedCopy.read(given))

    def _peer(self, given: MessageReader) -> None:
        device, peer, is_enabled = given.number(), given.number(), given.number()
        (self.peers[device].add if is_enabled else self.peers[device].discard)(peer)

    def _pool(self, given: MessageReader) -> None:
        device, owner, is_enabled = given.number(), given.number(), given.number()
        (self.pool_peers[device].add if is_enabled else self.pool_peers[device].discard)(owner)

    def _run_queued(self, given: MessageReader) -> Writer:
        queue, self.queue = self.queue, []
        status, output = 0, ""
        for part in parts_of(queue) if queue else ():
            failed, printed = self._run_part(part)
            status, output = status or failed, output + printed
            if status:
                break
        return Writer(status).text(output)

    def _run_part(self, part: Sequence[Queued]) -> tuple[int, str]:
        """Run operations that are not all ordered, or a single one."""
        copies = [one for one in part if isinstance(one, QueuedCopy)]
        if len(copies) == len(part) or any(one.is_large for one in copies):
            self._note(list(compare(copies, self.span_of)), ())
        status, output = 0, ""
        for stage in stages_of(part):
            launches = [one for one in stage if isinstance(one, QueuedLaunch)]
            if not launches:
                for one in stage:
                    assert isinstance(one, QueuedCopy)
                    perform(one, self.bytes_at)
                continue
            is_alone = len(stage) == 1 and self.gpus == 1
            failed, printed = self._run_alone(launches[0]) if is_alone else self._run_together(stage, launches)
            status, output = status or failed, output + printed
            if status:
                break
        return status, output

    def _may_access(self, device: int, region: Region) -> bool:
        """Whether a GPU may access memory of one."""
        owner = region.owner_device
        if region.base in self.mapped:  # memory of a multicast object is reached by that without access to it
            replicas = [one for placed in self.memory.multicasts for one in placed.replicas]
            is_replica = any(region.base <= one < region.base + region.size for one in replicas)
            return is_replica or device in self.accessible.get(region.base, ())
        is_pooled = region.base in self.pooled and owner in self.pool_peers[device]
        return owner == device or owner in self.peers[device] or is_pooled

    def _run_together(self, part: Sequence[Queued], launches: Sequence[QueuedLaunch]) -> tuple[int, str]:
        arrays = [Region(base, size, self._start + base - VIEW, "an array") for base, size in self.arrays.items()]
        team = Team(self.memory, arrays, self.objects, self.gpus, self._may_access)
        started = time.perf_counter()
        try:
            for module in {id(one.loaded): one.loaded.module for one in launches}.values():
                context_of(module).refuse_wrong(module)
            result = team.run(part, launches[0].options, self.span_of)
        except Interrupted as stopped:
            self._note(stopped.diagnostics, launches[0].frames if len(launches) == 1 else ())
            raise
        except (KernelError, PtxError) as wrong:
            self._note(at_origin(launches[0].loaded.module, wrong.diagnostics), launches[0].frames)
            return _NOT_SUPPORTED if any(one.code == "not-emulated" for one in wrong.diagnostics) else _FAILURE, ""
        finally:
            for one in launches:
                self._count(one.kernel).seconds += (time.perf_counter() - started) / len(launches)
        self._note(result.diagnostics, launches[0].frames if len(launches) == 1 else ())
        return _status_of(result.diagnostics), result.output

    def _recorded(self, kernel: ir.Function) -> Record | None:
        """What is to be recorded of the next launch of a kernel."""
        return None if self.record is None else self.record(kernel.name, self.log)

    def _count(self, kernel: ir.Function) -> LaunchCount:
        return self.log.launches.setdefault(kernel.title, LaunchCount())

    def _run(
        self, module: ir.Module, kernel: ir.Function, options: LaunchOptions, data: bytes, frames: Frames
    ) -> tuple[int, str]:
        """Run a kernel, and those that it launches: the error of CUDA, and what they printed."""
        args = RawArguments(self.memory, one_by_one(kernel, data), self.objects)
        context = context_of(module)
        started = time.perf_counter()
        try:
            context.refuse_wrong(module)
            result = launch(context.emulated(module), kernel, args, options)
        except Interrupted as stopped:
            self._note(stopped.diagnostics, frames)
            raise
        except (KernelError, PtxError) as wrong:
            self._note(at_origin(module, wrong.diagnostics), frames)
            is_refused = any(one.code == "not-emulated" for one in wrong.diagnostics)
            return _NOT_SUPPORTED if is_refused else _FAILURE, ""
        finally:
            self._count(kernel).seconds += time.perf_counter() - started
        self._note(result.diagnostics, frames)
        if result.recording is not None:
            self.log.recorded.append(RecordedLaunch(kernel.title, result, frames))
        status, output = _status_of(result.diagnostics), result.output
        for one in take_launches(module):
            self._count(one.kernel).count += 1
            shape = replace(options, grid=one.grid, block=one.block, shared=one.shared, cluster=None,
                            cooperative=False, record=self._recorded(one.kernel))  # fmt: skip
            failed, printed = self._run(module, one.kernel, shape, one.data, frames) if not status else (0, "")
            status, output = status or failed, output + printed
        return status, output

    # The rest.

    def _finding(self, given: MessageReader) -> None:
        code, message, help, frames, about = given.text(), given.text(), given.text(), given.frames(), given.number()
        self.log.host.append(HostFinding(code, message, help, frames, self._number_at(about)))

    def _number_at(self, address: int) -> int | None:
        """The number of the allocation that contains an address, or ends right before it."""
        below = [base for base in self.numbers if base <= address]
        return self.numbers[max(below)] if address and below else None

    def _device(self, given: MessageReader) -> Writer:
        gpu = self.modules.gpu
        target, limits = target_named(gpu.target), limits_of(gpu.target)
        memory, clock, bus, l2 = _MODELS.get(gpu.name, (24, 1_500_000, 384, 40))
        facts = {
            "major": target.number // 10, "minor": target.number % 10, "sms": SMS.get(gpu.name, 128),
            "shared_block": target.shared_memory, "shared_sm": 65536 if limits is None else limits.shared,
            "blocks_sm": 16 if limits is None else limits.blocks,
            "threads_sm": 1024 if limits is None else 32 * limits.warps,
            "memory": memory << 10, "memory_available": min(memory << 30, available() // 2), "clock": clock,
            "gpus": self.gpus, "queues": int(self.record is None),
            "memory_clock": 2_600_000, "bus": bus, "l2": l2 << 20, "clusters": int(target.number >= 90),
        }  # fmt: skip
        answer = Writer().text(f"NVIDIA {gpu.name} (ptxlab)").number(len(facts))
        for name, value in facts.items():
            answer.text(name).number(value)
        return answer

    def _texture(self, given: MessageReader) -> Writer:
        try:
            made = object_of(given, self.bytes_at)
        except (TypeError, ValueError) as problem:
            self.log.host.append(HostFinding("bad-texture", str(problem), "", ()))
            return Writer(_INVALID_VALUE).number(0)
        number, self._next_object = self._next_object, self._next_object + 1
        self.objects[number] = made
        return Writer().number(HANDLES + HANDLE_BYTES * number)

    def _no_texture(self, given: MessageReader) -> None:
        self.objects.pop((given.number() - HANDLES) // HANDLE_BYTES, None)

    def _tensor_map(self, given: MessageReader) -> Writer:
        type, rank, address = given.number(), given.number(), given.number()
        counts = (rank, rank - 1, rank, rank, 4)
        sizes, strides, box, steps, modes = ([given.number() for _ in range(count)] for count in counts)
        try:
            return Writer().raw(encode_tiled(address, type, sizes, strides, box, steps, modes))
        except (ValueError, IndexError) as problem:
            self.log.host.append(
                HostFinding("bad-tensor-map", f"`cuTensorMapEncodeTiled`: {problem}", "", given.frames())
            )
            return Writer(_INVALID_VALUE)

    def _compile(self, given: MessageReader) -> Writer:
        """What NVRTC is asked for; the names of templates as the compiler has them."""
        source, name = given.text(), given.text()
        options = [given.text() for _ in range(given.number())]
        names = [given.text() for _ in range(given.number())]
        made = compile_cuda(source, self.modules.gpu.target, ["-lineinfo", *options], name, instantiate=names)
        log = render(made.diagnostics, "concise")
        entries = re.findall(r"\.entry\s+([\w$]+)", made.text or "")
        answer = Writer(int(made.text is None)).text(made.text or "").text(log)
        for one in names:
            answer.text(next(iter(matches(one, entries)), ""))
        return answer

    def _library(self, given: MessageReader) -> Writer:
        library, name, frames = given.text(), given.text(), given.frames()
        try:
            return CALLS[library](given, self._view_of, self.generators)
        except BadCallError as problem:
            self.log.host.append(HostFinding("bad-library-call", f"`{name}`: {problem}", "", frames))
            return Writer(_INVALID_VALUE)

    def _view_of(self, address: int, size: int) -> numpy.ndarray[Any, Any]:
        """Memory that a library is given, if it is in one allocation."""
        for region in self.memory.regions.values():
            if region.base <= address < region.base + max(region.size, 1):
                if address + size > region.base + region.size:
                    has = region.base + region.size - address
                    raise BadCallError(f"{size:,} bytes are accessed where {region.name} has {has:,}")
                memory = (ctypes.c_uint8 * size).from_address(region.data + address - region.base)
                return numpy.frombuffer(memoryview(memory), numpy.uint8)
        raise BadCallError(f"{address:#x} is not an address of device memory")


# Gigabytes of memory, clock in kHz, bits of the memory's bus, megabytes of L2: by NVIDIA's data sheets.
_MODELS = {
    "V100": (32, 1_530_000, 4096, 6), "T4": (16, 1_590_000, 256, 4), "A100": (80, 1_410_000, 5120, 40),
    "H100": (80, 1_980_000, 5120, 50), "H200": (141, 1_980_000, 6144, 50), "B200": (180, 1_965_000, 8192, 126),
    "RTX 4090": (24, 2_520_000, 384, 72), "RTX 5090": (32, 2_407_000, 512, 96), "L4": (24, 2_040_000, 192, 48),
}  # fmt: skip


def _status_of(found: list[Diagnostic]) -> int:
    """The error that a GPU would report of a kernel, if it stopped."""
    stopped = [one for one in found if one.level == "error" and one.code not in DETECTORS]
    return next((_FAULTS.get(one.code, _FAILURE) for one in stopped), 0)
