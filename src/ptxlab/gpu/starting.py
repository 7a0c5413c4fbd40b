"""Launches of which only addresses change, started from machine code: what is left of a call besides the driver's part.

Writing addresses to parameters and calling the driver by Python's bindings takes longer than the driver itself. Here
both are a native function that Python calls like one of its own: `PyCFunction` is given its address, and bytes that say
what to launch, one kernel or several. It copies the parameters to its stack, so that threads do not disturb each other,
and lets other threads run while the driver works.
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
    PyBytes_Size,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyList_GetItem,
    PyList_Size,
    PyLong_AsUnsignedLongLong,
    PyLong_FromLong,
    make_function,
)
from ptxlab.native import Pointer, array, call, cast, copy_bytes, native, s64, struct, u8, u32, u64
from ptxlab.native.engine import build
from ptxlab.native.functions import signature
from ptxlab.native.modes import CHECKED

MOST_BYTES, MOST_PARAMETERS, MOST_ADDRESSES = 4096, 128, 64  # of a launch that is started this way
WRONG_CONTEXT = -1
_TAKES_ONE = 8  # METH_O
_WORD = 8  # bytes
_DRIVER = 4 * _WORD  # those of `Driver`

Start = Callable[[list[int]], int]
"""Starts kernels with these addresses; 0, the driver's error, or WRONG_CONTEXT."""


@struct
class Driver:
    """The driver's functions, and the context in which all of them are launched."""

    launch: Pointer[u8]
    find_context: Pointer[u8]
    set_context: Pointer[u8]
    context: u64


@struct
class StartRecord:
    """What to launch. After it: where parameters are, where addresses go and their numbers, and all parameters."""

    config: u64
    function: u64
    parameters: u64
    changing: u64
    bytes: u64


@native
def start(given: Object, addresses: Object) -> Object:
    driver: Pointer[Driver] = cast(Pointer[Driver], PyBytes_AsString(given))
    end: Pointer[u8] = cast(Pointer[u8], driver) + u64(PyBytes_Size(given))
    context = array(u64, 1)
    status: u32 = call(u32, driver.find_context, context)
    if status == 0 and context[0] == 0:  # as the CUDA runtime does it for a thread that has none
        status = call(u32, driver.set_context, driver.context)
        context[0] = driver.context
    if status != 0 or context[0] != driver.context:
        return PyLong_FromLong(WRONG_CONTEXT)
    words = array(u64, MOST_ADDRESSES)
    for number in range(PyList_Size(addresses)):
        words[number] = PyLong_AsUnsignedLongLong(PyList_GetItem(addresses, number))
    data = array(u8, MOST_BYTES)
    pointers = array(Pointer[u8], MOST_PARAMETERS)
    record: Pointer[StartRecord] = cast(Pointer[StartRecord], driver + 1)
    state: Pointer[u8] = PyEval_SaveThread()
    while status == 0 and cast(Pointer[u8], record) < end:
        offsets: Pointer[u64] = cast(Pointer[u64], record + 1)
        places: Pointer[u64] = offsets + record.parameters
        numbers: Pointer[u64] = places + record.changing
        source: Pointer[u8] = cast(Pointer[u8], numbers + record.changing)
        copy_bytes(data, source, record.bytes)
        for index in range(record.parameters):
            pointers[index] = data + offsets[index]
        for index in range(record.changing):
            address: Pointer[u64] = cast(Pointer[u64], data + places[index])
            address[0] = words[numbers[index]]
        status = call(u32, driver.launch, record.config, record.function, pointers, u64(0))
        record = cast(Pointer[StartRecord], source + record.bytes)
    PyEval_RestoreThread(state)
    return PyLong_FromLong(s64(status))


@cache
def _method() -> tuple[Method, object]:
    """How Python calls the machine code, and the machine code, which stays."""
    library = build([start])
    return Method(b"start", library.address(signature(start).symbol), _TAKES_ONE, None), library


@cache
def _driver() -> tuple[int, int, int]:
    """The addresses of the driver's functions."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        all = found.cuLaunchKernelEx, found.cuCtxGetCurrent, found.cuCtxSetCurrent
        return tuple(int(ctypes.cast(one, ctypes.c_void_p).value or 0) for one in all)  # type: ignore[return-value]
    return 0, 0, 0


def can_start(bytes: int, parameters: int, addresses: int = 0) -> bool:
    """Whether such a launch can be started from machine code; in checked mode, its memory is not known there."""
    fits = bytes <= MOST_BYTES - _WORD and parameters <= MOST_PARAMETERS and addresses <= MOST_ADDRESSES
    return not CHECKED and fits and all(_driver())


def starting(
    launch: tuple[int, int, int],
    offsets: Sequence[int],
    data: bytes,
    changing: Sequence[tuple[int, int]],
    driver: tuple[int, int, int] | None = None,
) -> Start:
    """A function that starts a launch, which is its context, its configuration's address and its function.

    `offsets` are where the parameters are in `data`; of `changing`, each is where an address goes, and its number.
    """
    data = data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")
    counts = len(offsets), len(changing), len(data)
    places, numbers = zip(*changing, strict=True) if changing else ((), ())
    words = *(driver or _driver()), *launch, *counts, *offsets, *places, *numbers
    found: Start = make_function(_method()[0], packing.pack(f"<{len(words)}Q", *words) + data)
    return found


def joined(starts: Sequence[Start]) -> Start:
    """A function that starts all of these, one after the other: by one call of machine code where it starts each."""
    if len(starts) == 1:
        return starts[0]
    records: list[Any] = [getattr(one, "__self__", None) for one in starts]
    if not all(isinstance(one, bytes) for one in records):
        return lambda addresses: next((status for one in starts if (status := one(addresses))), 0)
    found: Start = make_function(_method()[0], records[0][:_DRIVER] + b"".join(one[_DRIVER:] for one in records))
    return found
