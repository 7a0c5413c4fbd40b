"""Arrays of other libraries: where their memory is, on this machine or on a GPU, without copying it.

torch's tensors are asked directly, others through the CUDA array interface (CuPy, JAX, Numba) or DLPack (all of them).
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from ptxlab.device.structures import is_container, leaves, map_leaves
from ptxlab.device.tensor_maps import TensorMap

_HOST = (1, 3)  # DLPack: memory of the host, and such memory that stays where it is for a GPU
_CUDA = (2, 13)  # memory of a GPU, and memory that moves
LEGACY_STREAM = 1  # DLPack and the array interface call the default stream so
_NO_ARRAYS = (bool, int, float, complex, str, bytes, bytearray, memoryview)


class ArrayMemory(NamedTuple):
    """The bytes of an array; `gpu` is the number of the GPU it is on, None for the host's memory, -1 if not known."""

    address: int
    size: int
    gpu: int | None
    writable: bool = True
    stream: int | None = None
    owner: Any = None


def memory_of(value: Any) -> ArrayMemory | None:
    """The memory of an array that is not NumPy's; None for anything else."""
    if is_torch(value.__class__):
        return _torch(value)
    if isinstance(value, _NO_ARRAYS):
        return None
    if hasattr(value, "__array_interface__") or hasattr(type(value), "__array_interface__"):
        return None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _interface(interface, value)
    if hasattr(value, "__dlpack_device__"):
        return _dlpack(value)
    return None


def is_on_gpu(value: Any) -> bool:
    """Whether an argument is an array in a GPU's memory; nothing is copied for that."""
    if is_container(value):
        return any(is_on_gpu(leaf) for leaf in leaves(value))
    if isinstance(value, TensorMap):
        value = value.array
    if is_torch(value.__class__):
        return bool(value.is_cuda)
    if hasattr(value, "__array_interface__") or not hasattr(value, "__dlpack_device__"):
        return getattr(value, "__cuda_array_interface__", None) is not None
    return int(value.__dlpack_device__()[0]) in _CUDA


@cache
def is_torch(kind: Hashable) -> bool:
    """Whether values of this type are tensors of torch, which is not imported for that."""
    return hasattr(kind, "data_ptr") and hasattr(kind, "element_size")


def framework(array: Any) -> ModuleType:
    """The module that makes arrays like this one."""
    if is_torch(array.__class__):
        return import_module("torch")
    if hasattr(array, "unsafe_buffer_pointer"):
        return import_module("jax.numpy")
    return import_module("cupy") if hasattr(array, "__cuda_array_interface__") else import_module("numpy")


def is_ready(tensor: Any, gpu: int) -> bool:
    """Whether a tensor is on that GPU, without gaps: then its address is all that a launch needs."""
    return bool(tensor.is_cuda and tensor.is_contiguous() and tensor.get_device() == gpu)


def host_view(value: object) -> Any:
    """A NumPy array of the bytes of an array in the host's memory that is not NumPy's; other values as they are."""
    if isinstance(value, TensorMap):
        return replace(value, array=host_view(value.array))
    memory = memory_of(value)
    if memory is None or memory.gpu is not None:
        return value
    import numpy

    return numpy.asarray(_Bytes(memory))


def host_views(args: Sequence[object]) -> list[object]:
    """The arguments with such arrays, also those in structures."""
    return [map_leaves(host_view, value) for value in args]


class _Bytes:
    """Bytes for NumPy, which keeps this object, and with it what they belong to, as long as it needs them."""

    def __init__(self, memory: ArrayMemory) -> None:
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": (memory.size,),
            "typestr": "|u1",
            "data": (memory.address, not memory.writable),
        }


def _torch(value: Any) -> ArrayMemory:
    if not value.is_contiguous():
        require_dense(tuple(value.shape), tuple(value.stride()))
    gpu = value.get_device() if value.is_cuda else None
    if gpu is None and value.device.type != "cpu":
        raise TypeError(f"the tensor is on {value.device}; only the CPU and CUDA are supported")
    return ArrayMemory(value.data_ptr(), value.numel() * value.element_size(), gpu, True, None, value)


def _interface(interface: dict[str, Any], owner: object) -> ArrayMemory:
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    itemsize = int("".join(filter(str.isdigit, interface["typestr"])))
    if strides is not None:
        require_dense(shape, tuple(stride // itemsize for stride in strides))
    address, read_only = interface["data"]
    return ArrayMemory(int(address or 0), _count(shape) * itemsize, -1, not read_only, interface.get("stream"), owner)


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    """`DLTensor` of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


def _dlpack(value: Any) -> ArrayMemory:
    kind, number = value.__dlpack_device__()
    if int(kind) not in (*_HOST, *_CUDA):
        raise TypeError("the array is neither in this machine's memory nor on a CUDA GPU")
    on_gpu = int(kind) in _CUDA
    capsule = value.__dlpack__(stream=LEGACY_STREAM) if on_gpu else value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.dimensions])
    if tensor.strides:
        require_dense(shape, tuple(tensor.strides[: tensor.dimensions]))
    size = (_count(shape) * tensor.bits * tensor.lanes + 7) // 8
    # The capsule owns the memory until a consumer has taken it over.
    return ArrayMemory(
        (tensor.data or 0) + tensor.offset, size, int(number) if on_gpu else None, owner=(capsule, value)
    )


def _count(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def require_dense(shape: Sequence[int], strides: Sequence[int]) -> None:
    """Refuse an array whose elements do not fill its memory; strides are in elements.

    >>> require_dense((2, 3), (1, 2))
    """
    expected = 1
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent == 0:
            return
        if extent > 1:
            if stride != expected:
                raise ValueError(
                    "the array has gaps: pass a contiguous one, as its `contiguous()` or `copy()` makes it"
                )
            expected *= extent
