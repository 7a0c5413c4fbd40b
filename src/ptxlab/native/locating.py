"""Machine code of this process and its lines, under `PTXLAB_NATIVE_DEBUG=1`: for profiles and crashes.

`locate` names the line of an address. Linux's `perf` reads functions and lines from `/tmp/perf-<pid>.map`, gdb from the
object files themselves, which LLVM registers with it. A crash in native code is reported with its line; see `crashes`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
from bisect import bisect_right, insort
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import crashes
from .lines import Location, ObjectFile, stretches
from .types import size_of

if TYPE_CHECKING:
    from .engine import Library

# Where the program counter is in a `ucontext_t` of Linux.
_COUNTERS = {"x86_64": 168, "aarch64": 440}
_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP", "SIGFPE")
_INFO = 4  # SA_SIGINFO

_known: list[tuple[int, int, Location]] = []


def locate(address: int) -> Location | None:
    """The line that the machine code at an address comes from, if it was loaded with lines and still is."""
    position = bisect_right(_known, address, key=lambda stretch: stretch[0])
    if not position:
        return None
    _, end, location = _known[position - 1]
    return location if address < end else None


def register(library: Library, objects: Sequence[bytes]) -> None:
    """Note the lines of machine code that was loaded."""
    added = []
    for code in objects:
        bases = {
            symbol.section: library.address(symbol.name) - symbol.offset
            for symbol in ObjectFile(code).symbols
            if symbol.is_global
        }
        added += list(stretches(code, bases))
    if not added:
        return
    first, last = added[0][0], max(end for _, end, _ in added)
    _known[:] = [known for known in _known if known[1] <= first or known[0] >= last]  # unloaded since
    for stretch in added:
        insort(_known, stretch, key=lambda stretch: stretch[0])
    if sys.platform == "linux":
        with Path(f"/tmp/perf-{os.getpid()}.map").open("a") as file:
            file.writelines(f"{start:x} {end - start:x} {location}\n" for start, end, location in added)
        if platform.machine() in _COUNTERS:
            _crash_table().fill()


class _CrashTable:
    """What the handler of signals reads."""

    def __init__(self) -> None:
        from .engine import compile_kept, load
        from .functions import signature
        from .translate import emit

        self._header = (ctypes.c_uint64 * (size_of(crashes.Stretches) // 8))()
        self._actions = ctypes.create_string_buffer(crashes.ACTION * 65)
        self._kept: list[Any] = []
        symbols = [("ptxlab.native.stretches", ctypes.addressof(self._header))]
        code = compile_kept(emit([crashes.on_signal]))
        self._library = load([code], symbols, is_checked=False, is_located=False)
        self._header[2] = _COUNTERS[platform.machine()]
        self._header[3] = ctypes.addressof(self._actions)
        handler = self._library.address(signature(crashes.on_signal).symbol)
        library = ctypes.CDLL(None)
        for name in _SIGNALS:
            number = int(getattr(signal, name))
            action = ctypes.create_string_buffer(crashes.ACTION)
            ctypes.c_uint64.from_buffer(action).value = handler
            ctypes.c_uint32.from_buffer(action, 136).value = _INFO
            old = ctypes.addressof(self._actions) + number * crashes.ACTION
            library.sigaction(number, ctypes.byref(action), ctypes.c_void_p(old))

    def fill(self) -> None:
        """Bring the table up to date; the old one stays, in case the handler is reading it."""
        texts = {location: ctypes.create_string_buffer(str(location).encode()) for _, _, location in _known}
        rows = (ctypes.c_uint64 * (3 * len(_known)))()
        for index, (start, end, location) in enumerate(_known):
            rows[3 * index : 3 * index + 3] = [start, end, ctypes.addressof(texts[location])]
        self._kept += [texts, rows]
        self._header[1] = 0
        self._header[0] = ctypes.addressof(rows)
        self._header[1] = len(_known)


@cache
def _crash_table() -> _CrashTable:
    return _CrashTable()
