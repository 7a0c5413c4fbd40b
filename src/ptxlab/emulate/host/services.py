"""What a kernel asks the host for: printing, allocating memory, failing an assertion."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces, faults, state
from ptxlab.emulate.abi.services import FLUSH, SERVICES
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.host.printf import Printf, Remark, UnreadableError
from ptxlab.native import offset_of
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_OUTPUT = 16 << 20  # characters that are kept of what a launch prints
_LONGEST = 65536  # characters of one string


@dataclass(frozen=True)
class PrintfCall:
    """A call of `printf`: its instruction, by which thread of which block, and its format."""

    instruction: int
    thread: int
    block: int
    pattern: str


class Services:
    """The host's side of a launch; `remarks` has what is wrong with calls of `printf`, by instruction and level."""

    def __init__(self, launch: RunningLaunch) -> None:
        self.launch = launch
        self.output: list[str] = []
        self.printed = 0
        self.remarks: dict[tuple[int, str], tuple[Remark, PrintfCall]] = {}
        self.assertion: tuple[str, str, int, str] | None = None
        self.heap = launch.memory.heap
        self.failure: BaseException | None = None

    def answer(self, thread: int, service: int, *values: int) -> int:
        """Do what is asked; called from machine code, so that an exception is kept for later."""
        try:
            if service == FLUSH and self.launch.recorder is not None:
                self.launch.recorder.take()
                return 0
            name = list(SERVICES)[service]
            return int(getattr(self, f"_{name.strip('_')}")(thread, *values[: SERVICES[name]]) or 0)
        except BaseException as problem:
            self.failure = problem
            self.launch.request_stop()
            return 0

    def _vprintf(self, thread: int, text: int, arguments: int) -> int:
        try:
            pattern = self._string(thread, text)
        except UnreadableError as problem:
            self._remark(thread, "", Remark("error", f"the format of `printf`: {problem}"))
            return -1
        call = Printf(pattern, lambda offset, size: self._argument(thread, arguments + offset, size),
                      lambda address: self._string(thread, address))  # fmt: skip
        for remark in call.remarks:
            self._remark(thread, pattern, remark)
        self.printed += len(call.text)
        if self.printed <= _OUTPUT:
            self.output.append(call.text)
        return call.count

    def _remark(self, thread: int, pattern: str, remark: Remark) -> None:
        """Keep what is wrong with a call, the first time that it is."""
        caller = StructArray.at(state.Thread, thread)
        block = StructArray.at(state.Block, caller.get("block"))
        call = PrintfCall(caller.get("waiting.instruction"), caller.get("number"), block.get("number"), pattern)
        self.remarks.setdefault((call.instruction, remark.level), (remark, call))

    def _malloc(self, thread: int, size: int) -> int:
        region = self.heap.allocate(size)
        if region is None:
            return 0
        if not self.launch.add_region(region):
            self.heap.free(region.base)
            return 0
        return region.base

    def _free(self, thread: int, address: int) -> None:
        if not address:
            return
        if address not in self.heap.regions:
            self.launch.note_fault(thread, faults.BAD_FREE, address)
            return
        self.heap.free(address)
        self.launch.remove_region(address)

    def _assertfail(self, thread: int, message: int, file: int, line: int, function: int, size: int) -> None:
        texts = []
        for address in (message, file, function):
            try:
                texts.append(self._string(thread, address))
            except UnreadableError:
                texts.append("?")
        self.assertion = self.assertion or (texts[0], texts[1], line, texts[2])
        self.launch.note_fault(thread, faults.ASSERTION, 0)

    def _argument(self, thread: int, address: int, size: int) -> bytes:
        """An argument of `printf`."""
        pointer = self._host(thread, address, size)
        if pointer is None:
            raise UnreadableError(f"would be at {address:#x}, where the kernel has no memory")
        if not self._is_written(thread, address, size):
            raise UnreadableError("is missing: the kernel has stored nothing there")
        return ctypes.string_at(pointer, size)

    def _is_written(self, thread: int, address: int, size: int) -> bool:
        """Whether bytes of local memory were written, as far as that is tracked; other memory counts as written."""
        caller = StructArray.at(state.Thread, thread)
        marks = StructArray.at(state.Block, caller.get("block")).get("memory.local_marks")
        offset, stride = address - address_spaces.LOCAL_WINDOW, caller.get("memory.local_size") // 8 + 1
        is_tracked = self.launch.checks and len(self.launch.compiled.functions) == 1
        if not is_tracked or not 0 <= offset < caller.get("memory.local_size"):
            return True
        if not marks:
            return False
        own = ctypes.string_at(marks + caller.get("number") * stride, stride)
        return all(own[at // 8] >> at % 8 & 1 for at in range(offset, offset + size))

    def _string(self, thread: int, address: int) -> str:
        """The text at an address, up to the byte 0 that ends it."""
        found = bytearray()
        while len(found) < _LONGEST:
            pointer = self._host(thread, address + len(found), 1)
            if pointer is None:
                problem = "does not end" if found else "is not in memory the kernel has"
                raise UnreadableError(f"the string at {address:#x} {problem}")
            byte = ctypes.string_at(pointer, 1)
            if byte == b"\0":
                break
            found += byte
        return found.decode("utf-8", "replace")

    def _host(self, thread: int, address: int, size: int) -> int | None:
        """The host's address of a generic one, None where the kernel has no memory."""
        for window, name in ((address_spaces.SHARED_WINDOW, "shared"), (address_spaces.LOCAL_WINDOW, "local")):
            if window <= address < window + (1 << 56):
                base, limit = (
                    ctypes.c_uint64.from_address(thread + offset_of(state.Thread, field)).value
                    for field in (f"memory.{name}", f"memory.{name}_size")
                )
                offset = address - window
                return base + offset if offset + size <= limit else None
        region = self.launch.regions.at(address)
        if region is None or address + size > region.base + region.size:
            return None
        return region.data + address - region.base
