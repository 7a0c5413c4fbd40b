"""Launches of which only addresses change, started from machine code: what is left of a call besides the driver's part.

Writing addresses to parameters and calling the driver by Python's bindings takes longer than the driver itself. Here
both are a native function that Python calls like one of its own: `PyCFunction` is given its address, and bytes that say
what to launch. It copies the parameters to its stack, so that threads do not disturb each other, and lets other threads
run while the driver works.
"""

from __future__ import annotations

import ctypes
import struct as packing
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ptxlab.gpu.python_api import (
    Method,
    Object,
    PyBytes_AsString,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyList_GetItem,
    PyLong_AsUnsignedLongLong,
    PyLong_FromLong,
    make_function,
)
from ptxlab.native import Pointer, array, call, cast, copy_bytes, native, s64, struct, u8, u32, u64
from ptxlab.native.engine import build
from ptxlab.native.functions import signature
from ptxlab.native.modes import CHECKED

MOST_BYTES, MOST_PARAMETERS = 4096, 128  # of a launch that is started this way
WRONG_CONTEXT = -1
_TAKES_ONE = 8  # METH_O

Start = Callable[[list[int]], int]
"""Starts a kernel with these addresses; 0, the driver's error, or WRONG_CONTEXT."""


@struct
class Record:
    """What to launch. After it: where parameters are, where addresses go and their numbers, and all parameters."""

    launch: Pointer[u8]
    find_context: Pointer[u8]
    context: u64
    config: u64
    function: u64
    parameters: u64
    changing: u64
    bytes: u64


@native
def start(given: Object, addresses: Object) -> Object:
    record: Pointer[Record] = cast(Pointer[Record], PyBytes_AsString(given))
    context = array(u64, 1)
    status: u32 = call(u32, record.find_context, context)
    if status != 0 or context[0] != record.context:
        return PyLong_FromLong(WRONG_CONTEXT)
    offsets: Pointer[u64] = cast(Pointer[u64], record + 1)
    places: Pointer[u64] = offsets + record.parameters
    numbers: Pointer[u64] = places + record.changing
    data = array(u8, MOST_BYTES)
    copy_bytes(data, cast(Pointer[u8], numbers + record.changing), record.bytes)
    pointers = array(Pointer[u8], MOST_PARAMETERS)
    for index in range(record.parameters):
        pointers[index] = data + offsets[index]
    for index in range(record.changing):
        address: Pointer[u64] = cast(Pointer[u64], data + places[index])
        address[0] = PyLong_AsUnsignedLongLong(PyList_GetItem(addresses, s64(numbers[index])))
    state: Pointer[u8] = PyEval_SaveThread()
    status = call(u32, record.launch, record.config, record.function, pointers, u64(0))
    PyEval_RestoreThread(state)
    return PyLong_FromLong(s64(status))


@cache
def _method() -> tuple[Method, Any]:
    """How Python calls the machine code, and the machine code, which stays."""
    library = build([start])
    return Method(b"start", library.address(signature(start).symbol), _TAKES_ONE, None), library


@cache
def _driver() -> tuple[int, int]:
    """The addresses of the driver's functions."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        both = found.cuLaunchKernelEx, found.cuCtxGetCurrent
        return tuple(int(ctypes.cast(one, ctypes.c_void_p).value or 0) for one in both)  # type: ignore[return-value]
    return 0, 0


def can_start(bytes: int, parameters: int) -> bool:
    """Whether such a launch can be started from machine code; in checked mode, its memory is not known there."""
    return not CHECKED and bytes <= MOST_BYTES and parameters <= MOST_PARAMETERS and all(_driver())


def starting(
    launch: tuple[int, int, int],
    offsets: Sequence[int],
    data: bytes,
    changing: Sequence[tuple[int, int]],
    driver: tuple[int, int] | None = None,
) -> Start:
    """A function that starts a launch, which is its context, its configuration's address and its function.

    `offsets` are where the parameters are in `data`; of `changing`, each is where an address goes, and its number.
    """
    counts = len(offsets), len(changing), len(data)
    places, numbers = zip(*changing, strict=True) if changing else ((), ())
    words = *(driver or _driver()), *launch, *counts, *offsets, *places, *numbers
    record = packing.pack(f"<{len(words)}Q", *words) + data
    found: Start = make_function(_method()[0], record)
    return found
