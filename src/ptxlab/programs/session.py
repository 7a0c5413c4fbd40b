"""The other side of a running program: its requests, answered by the emulator.

A program connects when it first calls CUDA, and sends the file that its device memory is in. Requests are an operation
and its bytes; the operations are in the order of the enumeration in `runtime/runtime.h`.
"""

from __future__ import annotations

import ctypes
import math
import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy

from ptxlab.device import layout
from ptxlab.device.driver_maps import encode_tiled
from ptxlab.device.options import LaunchOptions
from ptxlab.device.textures import HANDLE_BYTES, HANDLES
from ptxlab.ir.mangled import matches
from ptxlab.programs.device_memory import DeviceMemory
from ptxlab.programs.examples import keep_example
from ptxlab.programs.gpu_facts import facts_of
from ptxlab.programs.libraries import CALLS, BadCallError
from ptxlab.programs.log import HostFinding, Log, Recorder
from ptxlab.programs.messages import Frames, MessageReader, Writer
from ptxlab.programs.modules import LoadedModule, Modules, number_of
from ptxlab.programs.pes import Pes
from ptxlab.programs.queue import Call, Order, Queued, QueuedCopy, QueuedLaunch
from ptxlab.programs.runs import Runner
from ptxlab.programs.textures import object_of
from ptxlab.programs.turns import Asked, Turns
from ptxlab.report import KernelError, PtxError, Span, render
from ptxlab.toolchain import compile_cuda

_INVALID_VALUE, _INVALID_FUNCTION, _INVALID_SYMBOL, _NO_IMAGE, _INVALID_PTX = 1, 98, 13, 209, 218


class Process:
    """One process of the program: its device memory, its modules, and answers to its requests."""

    def __init__(
        self, connection: socket.socket, file: int, modules: Modules, options: dict[str, Any], log: Log,
        record: Recorder | None, max_repeats: int | None, gpus: int, span_of: Callable[[Frames], Span | None],
        others: list[Process], folder: Path | None, pes: Pes | None, pe: int,
    ) -> None:  # fmt: skip
        """Device memory is in `file`; `others` are the processes of the program before this one.

        In `folder`, all that runs is recorded. With `pes`, this is the PE of number `pe`.
        """
        self.connection, self.modules, self.options, self.log = connection, modules, options, log
        self.pes, self.pe, self.gpus = pes, pe, gpus
        self.memory = memory = DeviceMemory(file, gpus, log.allocations) if pes is None else pes.memory
        self.runner = Runner(connection, memory, log, record, max_repeats, span_of, folder)
        if pes is not None:
            self.runner = pes.runner = pes.runner or self.runner
            pes.add_process(pe, self)
        self.queue: list[Queued] = []
        self._process = None if pes is None else pe
        self._call: Call | None = None  # that the next launch is part of
        self._own_modules: set[int] = set()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.number: int = struct.unpack("iII", credentials)[0]
        self.turns = Turns(self.runner, self.number)
        self.has_ended = False
        self._others = others
        others.append(self)
        self.generators: list[numpy.random.Generator] = []  # of cuRAND
        self._handlers: tuple[Callable[[MessageReader], Writer | None], ...] = (
            self._allocate, memory.free, self._module, self._function, self._variable, self._bind, self._launch,
            self._finding, self._device, self._occupancy, self._resources, self._texture, self._tensor_map,
            self._compile, self._library, self._no_texture, memory.alias, self._copy, self._run_queued, memory.set_peer,
            memory.set_pool, memory.map, memory.unmap, memory.set_access, memory.set_multicast,
            self._share, self._open, self._initialized, self._named, self._team,
        )  # fmt: skip

    def close(self) -> None:
        """End the conversation, and give back its memory."""
        self.turns.close()
        self.connection.close()
        if self.pes is None:
            self.memory.close()
        self.has_ended = True

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

    # PEs of NVSHMEM.

    def _initialized(self, given: MessageReader) -> None:
        assert self.pes is not None
        self.pes.initialize(self.pe, given)

    def _named(self, given: MessageReader) -> None:
        name = given.text()
        team, first, stride, size = (given.number() for _ in range(4))
        self._call = Call(name, team, range(first, first + stride * size, max(stride, 1)))

    def _team(self, given: MessageReader) -> Writer:
        assert self.pes is not None
        return self.pes.team(self.pe, given)

    def _allocate(self, given: MessageReader) -> None:
        made = self.memory.allocate(given)
        if self.pes is not None and made.base in self.memory.symmetric:
            wrong = self.pes.allocated(self.pe, made.base, made.size)
            if wrong is not None:
                self.log.host.append(replace(wrong, frames=made.made))

    # Memory of other processes.

    def _share(self, given: MessageReader) -> Writer:
        return Writer()

    def _open(self, given: MessageReader) -> Writer:
        """Have memory of another process at an address of this one; the file that it is in."""
        process, home, base, size = (given.number() for _ in range(4))
        owner = next((one for one in self._others if one.number == process and not one.has_ended), None)
        if owner is None or home not in owner.memory.regions:
            return Writer(_INVALID_VALUE)
        return Writer().text(self.memory.open(owner.memory, home, base, size, given.frames()))

    # Modules.

    def _module(self, given: MessageReader) -> Writer:
        try:
            number = self.modules.load(
                [given.bytes() for _ in range(given.number())], None if self.pes is None else self._own_modules
            )
        except (KernelError, PtxError) as wrong:
            self.runner.note(wrong.diagnostics, ())
            return Writer(_NO_IMAGE if isinstance(wrong, KernelError) else _INVALID_PTX)
        if self.pes is not None:
            self._own_modules.add(number)
            self.pes.set_state(self.pe, self.modules.loaded[number])
        return Writer().number(number)

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
        answer.number(int(loaded.starts_dependents(kernel))).number(int(loaded.talks_to_host(kernel)))
        answer.number(number_of(loaded.module.target))
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
        for one in range(self.memory.gpus) if is_managed else (device,):
            loaded.bind(variable, (ctypes.c_char * size).from_address(self.memory.place(address)), one)
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
        is_queued, order = bool(given.number()), Order.read(given, self._process)
        data, frames = given.bytes(), given.frames()
        shape = LaunchOptions(grid, block, shared=shared, cluster=cluster if cluster[0] else None,
                              cooperative=cooperative, overlap=overlap, on_error="collect", gpu=self.modules.gpu.name,
                              record=self.runner.recorded(kernel), **self.options)  # fmt: skip
        if self._call is None or self._call.is_of_user:
            self.runner.count(kernel).count += 1
        started = time.process_time_ns()
        one = QueuedLaunch(order, frames, loaded, kernel, shape, data, self._call,
                           is_watched=self._call is None and self.runner.watches(loaded, kernel))  # fmt: skip
        if self.runner.log.examples is not None and one.is_of_user:
            keep_example(self.runner.log.examples, one, self.memory, at_once=not is_queued)
        self._call = None
        if is_queued:
            self._add(one)
        status, output = (0, "") if is_queued else self.runner.run_alone(one)
        answer = Writer(status).number(int(loaded.talks_to_host(kernel))).number(time.process_time_ns() - started)
        return self.runner.add_reads(answer.text(kernel.title).text(output))

    # Operations that run when the host waits.

    def _add(self, one: Queued) -> None:
        if self.pes is None:
            self.queue.append(one)
        else:
            self.pes.add(one)

    def _copy(self, given: MessageReader) -> None:
        self._add(QueuedCopy.read(given, self._process))

    def _run_queued(self, given: MessageReader) -> Writer | None:
        if self.pes is not None:
            self.pes.wait(self.pe)
            return None
        waits, is_all = bool(given.number()), bool(given.number())
        clock = [given.number() for _ in range(given.number())]
        (status, output), left = self.turns.run(self.queue, Asked(waits, None if is_all else clock))
        return self.runner.add_reads(Writer(status).number(left).text(output))

    # The rest.

    def _finding(self, given: MessageReader) -> None:
        code, message, help, frames, about = given.text(), given.text(), given.text(), given.frames(), given.number()
        self.log.host.append(HostFinding(code, message, help, frames, self.memory.number_at(about)))

    def _device(self, given: MessageReader) -> Writer:
        gpu = self.modules.gpu
        facts = {**facts_of(gpu), "gpus": self.gpus, "queues": int(self.runner.record is None)}
        answer = Writer().text(f"NVIDIA {gpu.name} (ptxlab)").number(len(facts))
        for name, value in facts.items():
            answer.text(name).number(value)
        return answer

    def _texture(self, given: MessageReader) -> Writer:
        try:
            made = object_of(given, self.memory.bytes_at)
        except (TypeError, ValueError) as problem:
            self.log.host.append(HostFinding("bad-texture", str(problem), "", ()))
            return Writer(_INVALID_VALUE).number(0)
        number, self.runner.next_object = self.runner.next_object, self.runner.next_object + 1
        self.runner.objects[number] = made
        return Writer().number(HANDLES + HANDLE_BYTES * number)

    def _no_texture(self, given: MessageReader) -> None:
        self.runner.objects.pop((given.number() - HANDLES) // HANDLE_BYTES, None)

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
            return CALLS[library](given, self.memory.bytes_of_one, self.generators)
        except BadCallError as problem:
            self.log.host.append(HostFinding("bad-library-call", f"`{name}`: {problem}", "", frames))
            return Writer(_INVALID_VALUE)
