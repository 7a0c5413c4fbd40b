"""What machine code calls of Python, and how Python calls machine code."""

from __future__ import annotations

import ctypes
from typing import Any

from ptxlab.native import Pointer, external, s32, s64, u8, u64

Object = Pointer[u8]


@external
def PyBytes_AsString(given: Object) -> Pointer[u8]: ...  # noqa: N802


@external
def PyBytes_Size(given: Object) -> s64: ...  # noqa: N802


@external
def PyList_GetItem(given: Object, index: s64) -> Object: ...  # noqa: N802


@external
def PyLong_AsUnsignedLongLong(given: Object) -> u64: ...  # noqa: N802


@external
def PyLong_FromLong(value: s64) -> Object: ...  # noqa: N802


@external
def PyEval_SaveThread() -> Pointer[u8]: ...  # noqa: N802


@external
def PyEval_RestoreThread(state: Pointer[u8]) -> None: ...  # noqa: N802


@external
def PyObject_Type(given: Object) -> Object: ...  # noqa: N802


@external
def Py_DecRef(given: Object) -> None: ...  # noqa: N802


@external
def PyErr_Clear() -> None: ...  # noqa: N802


@external
def PyList_Size(given: Object) -> s64: ...  # noqa: N802


@external
def PyList_Append(given: Object, item: Object) -> s32: ...  # noqa: N802


@external
def PyLong_FromUnsignedLongLong(value: u64) -> Object: ...  # noqa: N802


@external
def PyBytes_FromStringAndSize(text: Pointer[u8], size: s64) -> Object: ...  # noqa: N802


class Method(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


def make_function(method: Method, given: bytes) -> Any:
    """A function for Python, which gives these bytes to the machine code and keeps them; `method` must stay."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(method), given, None)
