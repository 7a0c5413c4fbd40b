"""What a kernel asks the host for: printing, allocating memory, failing an assertion."""

from __future__ import annotations

import ctypes
import re
import struct
from typing import TYPE_CHECKING, Any

from ptxlab.emulate import state
from ptxlab.emulate.heap import heap_of
from ptxlab.native import offset_of

if TYPE_CHECKING:
    from ptxlab.emulate.running import Launch

# The functions that are there without a body, with the number of their arguments.
SERVICES = {"vprintf": 2, "malloc": 1, "free": 1, "__assertfail": 5}
_OUTPUT = 16 << 20  # characters that are kept of what a launch prints
_WIDTH = 1024  # of one conversion
_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|L|z|t|j)?([diouxXeEfFgGaAcsp%])")


class Services:
    """The host's side of a launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.output: list[str] = []
        self.printed = 0
        self.assertion: tuple[str, str, int, str] | None = None
        self.heap = heap_of(launch.compiled.module)
        self.failure: BaseException | None = None

    def answer(self, thread: int, service: int, *values: int) -> int:
        """Do what is asked; called from machine code, so that an exception is kept for later."""
        try:
            name = list(SERVICES)[service]
            return int(getattr(self, f"_{name.strip('_')}")(thread, *values[: SERVICES[name]]) or 0)
        except BaseException as problem:
            self.failure = problem
            self.launch.request_stop()
            return 0

    def _vprintf(self, thread: int, text: int, arguments: int) -> int:
        pattern = self._string(thread, text)
        printed = format_printf(pattern, lambda offset, size: self._bytes(thread, arguments + offset, size),
                                lambda address: self._string(thread, address))  # fmt: skip
        self.printed += len(printed)
        if self.printed <= _OUTPUT:
            self.output.append(printed)
        return len(_CONVERSION.findall(pattern))

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
            self.launch.note_fault(thread, state.BAD_FREE, address)
            return
        self.heap.free(address)
        self.launch.remove_region(address)

    def _assertfail(self, thread: int, message: int, file: int, line: int, function: int, size: int) -> None:
        texts = [self._string(thread, address) for address in (message, file, function)]
        self.assertion = self.assertion or (texts[0], texts[1], line, texts[2])
        self.launch.note_fault(thread, state.ASSERTION, 0)

    def _bytes(self, thread: int, address: int, size: int) -> bytes:
        place = self._host(thread, address, size)
        return ctypes.string_at(place, size) if place else bytes(size)

    def _string(self, thread: int, address: int) -> str:
        found = bytearray()
        while len(found) < 65536:
            place = self._host(thread, address + len(found), 1)
            byte = ctypes.string_at(place, 1) if place else b"\0"
            if byte == b"\0":
                break
            found += byte
        return found.decode("utf-8", "replace")

    def _host(self, thread: int, address: int, size: int) -> int | None:
        """The host's address of a generic one, None where the kernel has no memory."""
        for window, name in ((state.SHARED_WINDOW, "shared"), (state.LOCAL_WINDOW, "local")):
            if window <= address < window + (1 << 56):
                base, limit = (
                    ctypes.c_uint64.from_address(thread + offset_of(state.Thread, field)).value
                    for field in (name, f"{name}_size")
                )
                offset = address - window
                return base + offset if offset + size <= limit else None
        region = self.launch.regions.at(address)
        if region is None or address + size > region.base + region.size:
            return None
        return region.data + address - region.base


def _bounded(number: str | None) -> str | None:
    """A width or a precision, of which a kernel may ask for any."""
    return number if number is None else str(max(min(int(number), _WIDTH), -_WIDTH))


def format_printf(pattern: str, read, string) -> str:  # type: ignore[no-untyped-def]
    """`printf` of C on arguments as a kernel packs them: each at a multiple of its size, floats as doubles."""
    offset = 0

    def take(size: int) -> bytes:
        nonlocal offset
        offset = -(-offset // size) * size
        found: bytes = read(offset, size)
        offset += size
        return found

    def convert(match: re.Match[str]) -> str:
        return str(converted(match))

    def converted(match: re.Match[str]) -> Any:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(struct.unpack("<i", take(4))[0])
        if precision == "*":
            asked = struct.unpack("<i", take(4))[0]
            precision = str(asked) if asked >= 0 else None
        width, precision = _bounded(width), _bounded(precision)
        form = f"%{flags}{width or ''}" + (f".{precision}" if precision is not None else "")
        if kind in "eEfFgG":
            return (form + kind) % struct.unpack("<d", take(8))[0]
        if kind in "aA":
            text = re.sub(r"\.?0*p", "p", float(struct.unpack("<d", take(8))[0]).hex())
            return f"%{flags}{width or ''}s" % (text.upper() if kind == "A" else text)
        if kind == "s":
            return (form + "s") % string(struct.unpack("<Q", take(8))[0])
        if kind == "p":
            return (f"%{flags}{width or ''}s") % hex(struct.unpack("<Q", take(8))[0])
        wide = length in ("ll", "l", "z", "t", "j")
        if kind == "c":
            return (form + "c") % (take(4)[0],)
        signed = kind in "di"
        value = int.from_bytes(take(8 if wide else 4), "little", signed=signed)
        if length in ("h", "hh"):
            value = int.from_bytes(
                value.to_bytes(8, "little", signed=signed)[: 2 if length == "h" else 1], "little", signed=signed
            )
        return (form + ("d" if kind in "diu" else kind)) % value

    return _CONVERSION.sub(convert, pattern)
