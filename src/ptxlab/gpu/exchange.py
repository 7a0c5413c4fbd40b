"""The forms of tensors and their addresses, asked for by machine code.

Extents, strides, type and device of a tensor are as many objects if Python asks for them. DLPack has a table of
functions for compiled code, `__dlpack_c_exchange_api__` of a tensor's type, and one of them fills a structure with all
of it. Here a native function puts what several tensors are into one value of bytes, which can be a dictionary's key.
"""

from __future__ import annotations

import ctypes
import struct as packing
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from ptxlab.gpu.python_api import (
    Method,
    Object,
    Py_DecRef,
    PyBytes_AsString,
    PyBytes_FromStringAndSize,
    PyErr_Clear,
    PyList_Append,
    PyList_GetItem,
    PyList_Size,
    PyLong_FromLong,
    PyLong_FromUnsignedLongLong,
    PyObject_Type,
    make_function,
)
from ptxlab.native import Pointer, array, call, cast, native, s32, s64, struct, u8, u16, u32, u64
from ptxlab.native.engine import build
from ptxlab.native.functions import signature
from ptxlab.native.modes import CHECKED

MOST_DIMENSIONS, MOST_WORDS = 8, 512  # 8-byte words of what is found: 20 tensors and more
ROW = 16  # bytes: kernels differ by the alignment of their arrays up to that
_TAKES_ARRAY = 0x80  # METH_FASTCALL
_MAJOR = 1  # the version of DLPack whose table this is
_FIND = 5  # its function is the sixth word of the table: after the version, a pointer and three functions

Describe = Callable[[list[Any], list[int]], bytes | int]
"""The forms of tensors, and their addresses at the end of a list; 0 if one is not a plain tensor, or None."""


@struct
class Types:
    """What values are described: tensors, parameters and None; and the function that describes one."""

    find: Pointer[u8]
    tensor: Pointer[u8]
    parameter: Pointer[u8]
    none: Pointer[u8]


@struct
class DLTensor:
    """`DLTensor`."""

    data: u64
    device: u64
    dimensions: s32
    code: u8
    bits: u8
    lanes: u16
    shape: Pointer[u64]
    strides: Pointer[u64]
    offset: u64


@native
def describe(given: Object, arguments: Pointer[Object], count: s64) -> Object:
    types: Pointer[Types] = cast(Pointer[Types], PyBytes_AsString(given))
    tensors = arguments[0]
    words = array(u64, MOST_WORDS)
    found = array(DLTensor, 1)
    used: s64 = 0
    for index in range(PyList_Size(tensors)):
        item: Object = PyList_GetItem(tensors, index)
        address: u64 = 0
        if item == types.none:
            words[used] = 0
            used = used + 1
        else:
            kind: Object = PyObject_Type(item)
            Py_DecRef(kind)  # the value has it
            if kind != types.tensor and kind != types.parameter:
                return PyLong_FromLong(0)
            status: u32 = call(u32, types.find, item, found)
            if status != 0:
                PyErr_Clear()
                return PyLong_FromLong(0)
            dimensions: s64 = s64(found.dimensions)
            if dimensions > MOST_DIMENSIONS or used + 2 * MOST_DIMENSIONS + 3 > MOST_WORDS:
                return PyLong_FromLong(0)
            address = found.data + found.offset
            form: u64 = u64(found.dimensions) << 40 | u64(found.lanes) << 24 | u64(found.bits) << 16
            words[used] = form | u64(found.code) << 8 | address % ROW << 1 | 1
            words[used + 1] = found.device
            for dimension in range(dimensions):
                words[used + 2 + dimension] = found.shape[dimension]
                words[used + 2 + dimensions + dimension] = found.strides[dimension]
            used = used + 2 + 2 * dimensions
        number: Object = PyLong_FromUnsignedLongLong(address)
        PyList_Append(arguments[1], number)
        Py_DecRef(number)
    return PyBytes_FromStringAndSize(cast(Pointer[u8], words), 8 * used)


@cache
def _method() -> tuple[Method, object]:
    """How Python calls the machine code, and the machine code, which stays."""
    library = build([describe])
    return Method(b"describe", library.address(signature(describe).symbol), _TAKES_ARRAY, None), library


def describing(torch: ModuleType) -> Describe | None:
    """What describes tensors of torch, if its version has DLPack's table of functions."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None or CHECKED:
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    words = (ctypes.c_uint64 * (_FIND + 1)).from_address(get(capsule, b"dlpack_exchange_api"))
    if words[0] & 0xFFFF_FFFF != _MAJOR:
        return None
    types = packing.pack("<4Q", words[_FIND], id(torch.Tensor), id(torch.nn.Parameter), id(None))
    found: Describe = make_function(_method()[0], types)
    return found
