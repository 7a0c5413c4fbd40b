"""The structures of XLA's foreign function interface, as its `c_api.h` declares them.

`jax.ffi.include_dir()` has that file. Its first version number, `MAJOR`, has been 0 so far; with a higher second number
structures have more fields at their ends.
"""

from __future__ import annotations

import ctypes
from typing import Any

MAJOR = 0
EXECUTE = 3  # `XLA_FFI_ExecutionStage`
INTERNAL, INVALID_ARGUMENT = 13, 3  # `XLA_FFI_Error_Code`
# `XLA_FFI_DataType`, with the names of NumPy's and ml_dtypes' types.
TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16", 18: "complex128", 19: "float8_e5m2",
    20: "float8_e4m3fn", 33: "float8_e8m0fnu", 32: "float4_e2m1fn",
}  # fmt: skip
HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_ADDRESSES = ctypes.POINTER(ctypes.c_void_p)
_HEAD: list[tuple[str, Any]] = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p)]


class Structure(ctypes.Structure):
    """A structure of the interface: each starts with its size and a list of extensions."""

    def __init__(self, *values: object) -> None:
        super().__init__(ctypes.sizeof(self), None, *values)


class Version(Structure):
    """`XLA_FFI_Api_Version`."""

    _fields_ = [*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class Api(Structure):
    """`XLA_FFI_Api`, up to the last function that is used."""

    _fields_ = [
        *_HEAD,
        ("version", Version),
        *((name, ctypes.c_void_p) for name in ("internal", "create_error", "describe_error", "destroy_error")),
        *((name, ctypes.c_void_p) for name in ("register_handler", "get_stream", "register_type", "get_context")),
        *((name, ctypes.c_void_p) for name in ("set_state", "get_state", "allocate", "free")),
    ]


class Values(Structure):
    """`XLA_FFI_Args` and `XLA_FFI_Rets`."""

    _fields_ = [*_HEAD, ("count", ctypes.c_int64), ("types", ctypes.c_void_p), ("values", _ADDRESSES)]


class Attributes(Structure):
    """`XLA_FFI_Attrs`."""

    _fields_ = [
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("values", _ADDRESSES),
    ]


class Frame(Structure):
    """`XLA_FFI_CallFrame`: a call of a handler."""

    _fields_ = [
        *_HEAD,
        ("api", ctypes.POINTER(Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", Values),
        ("results", Values),
        ("attributes", Attributes),
    ]


class Buffer(Structure):
    """`XLA_FFI_Buffer`."""

    _fields_ = [
        *_HEAD,
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
    ]


class Scalar(ctypes.Structure):
    """`XLA_FFI_Scalar`, of an integer."""

    _fields_ = [("type", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class Metadata(ctypes.Structure):
    """`XLA_FFI_Metadata`, up to the last field that is used."""

    _fields_ = [("size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32)]


class MetadataExtension(ctypes.Structure):
    """`XLA_FFI_Metadata_Extension`: XLA asks for the version of a handler."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(Metadata)),
    ]


class Error(Structure):
    """`XLA_FFI_Error_Create_Args`."""

    _fields_ = [*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class ErrorText(Structure):
    """`XLA_FFI_Error_GetMessage_Args`, which is `XLA_FFI_Error_GetDetails_Args` later, with a code at its end."""

    _fields_ = [
        *_HEAD,
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


class Stream(Structure):
    """`XLA_FFI_Stream_Get_Args`."""

    _fields_ = [*_HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class Allocation(Structure):
    """`XLA_FFI_DeviceMemory_Allocate_Args`."""

    _fields_ = [
        *_HEAD,
        ("context", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
    ]


class Free(Structure):
    """`XLA_FFI_DeviceMemory_Free_Args`."""

    _fields_ = [*_HEAD, ("context", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("data", ctypes.c_void_p)]
