"""Matrices of torch, CuPy, JAX and NumPy, as kernels of the gallery take them: address, extents, strides, type.

Frameworks differ in a few things only: how an array says where it is, how a new one is made, and on which stream the
framework works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import DTYPES, TORCH_NAMES
from ptxlab.frameworks.xla_calls import XlaArray, call_of_xla
from ptxlab.gpu.arrays import framework, is_torch

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

ROW = 16  # bytes: TMA copies want addresses and rows to be multiples of it
HALVES = ("f16", "bf16")
_NAMES = {name: type for type, name in TORCH_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where an array is: its address, its extents and strides in elements, its type, its GPU (None: the host)."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: str
    gpu: int | None
    array: Any

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(DTYPES[self.type]).itemsize)

    @property
    def transposed(self) -> Matrix:
        """Rows as columns."""
        turned = self.array.T if self.gpu is None else self.array
        return Matrix(self.address, self.shape[::-1], self.strides[::-1], self.type, self.gpu, turned)

    @property
    def is_aligned(self) -> bool:
        """Whether TMA can copy it: rows without gaps between elements, at multiples of 16 bytes."""
        columns = self.shape[1]
        is_dense = self.strides[1] == 1 or columns == 1
        starts = (self.address, self.size * self.strides[0])
        return is_dense and not any(start % ROW for start in starts) and self.strides[0] >= columns

    @property
    def end(self) -> int:
        """The address after the last element."""
        last = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return self.address + self.size * (1 + last)

    def view(self) -> Any:
        """What `ptxlab.tensor_map` and launches take."""
        return self.array if self.gpu is None else _View(self)


class _View:
    """Memory of a GPU with the extents and strides of a matrix."""

    def __init__(self, matrix: Matrix) -> None:
        self.shape, self.dtype, self.itemsize = matrix.shape, TORCH_NAMES[matrix.type], matrix.size
        self.strides = tuple(self.itemsize * step for step in matrix.strides)
        self.owner, self.matrix = matrix.array, matrix
        length = matrix.end - matrix.address
        data = (matrix.address, False)
        self.__cuda_array_interface__ = {"version": 3, "shape": (length,), "typestr": "|u1", "data": data}

    @property
    def T(self) -> Any:  # noqa: N802
        """The same memory, rows as columns."""
        return self.matrix.transposed.view()


def look(array: Any, name: str, types: Sequence[str] = HALVES) -> Matrix:
    """Where an array of any framework is; what is not an array of one of these types is refused."""
    if is_torch(array.__class__):
        gpu = array.get_device() if array.is_cuda else None
        if gpu is None and array.device.type != "cpu":
            raise ValueError(f"`{name}` is on {array.device}: only CUDA and the CPU are supported")
        return _found(array.data_ptr(), array.shape, array.stride(), array.dtype, gpu, array, name, types)
    if isinstance(array, XlaArray):
        gpu = array.get_device()
        return _found(array.data_ptr(), array.shape, array.stride(), array.dtype, gpu, array, name, types)
    if hasattr(array, "__cuda_array_interface__"):  # CuPy
        steps = [step // array.itemsize for step in array.strides]
        return _found(array.data.ptr, array.shape, steps, array.dtype, int(array.device.id), array, name, types)
    if isinstance(array, np.ndarray):
        steps = [step // array.itemsize for step in array.strides]
        return _found(array.ctypes.data, array.shape, steps, array.dtype, None, array, name, types)
    raise TypeError(f"`{name}` is a {type(array).__name__}, not an array of torch, CuPy, JAX or NumPy")


def _found(
    address: int,
    shape: tuple[int, ...],
    strides: list[int] | tuple[int, ...],
    dtype: object,
    gpu: int | None,
    array: Any,
    name: str,
    types: Sequence[str],
) -> Matrix:
    text = str(dtype).removeprefix("torch.")
    type = _NAMES.get(text)
    if type is None or type not in types:
        *names, last = (TORCH_NAMES[one] for one in types)
        allowed = f"{', '.join(names)} and {last}" if names else last
        raise TypeError(f"`{name}` has elements of type {text}: this kernel is for {allowed}")
    if gpu is None and is_torch(array.__class__):
        array = _of_host(array, type)
    return Matrix(int(address), tuple(map(int, shape)), tuple(map(int, strides)), type, gpu, array)


def _of_host(tensor: Any, type: str) -> Any:
    """The same memory as an array of NumPy, which has no bf16 and fp8 of its own."""
    torch = import_module("torch")
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize]
    return tensor.detach().view(whole).numpy().view(DTYPES[type])


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    steps = [1]
    for extent in tuple(shape)[:0:-1]:
        steps.append(steps[-1] * extent)
    return tuple(steps[::-1])[len(steps) - len(shape) :]


def empty(like: Any, shape: tuple[int, ...], type: str | None = None) -> Any:
    """A new array of the same framework and device, and of the same type unless another is given."""
    if is_torch(like.__class__):
        return like.new_empty(shape, dtype=None if type is None else getattr(import_module("torch"), TORCH_NAMES[type]))
    dtype = like.dtype if type is None else DTYPES[type]
    return like.new_empty(shape, dtype) if isinstance(like, XlaArray) else framework(like).empty(shape, dtype)


def empty_like(like: Array, columns: int | None = None) -> Any:
    """A new array of the same extents and type, whose dimensions are in memory in the same order.

    The last dimension has another extent if one is given.
    """
    if isinstance(like, XlaArray):
        return empty(like, (*like.shape[:-1], columns or like.shape[-1]))
    is_same = columns is None or columns == like.shape[-1]
    return framework(like).empty_like(like if is_same else like[..., :columns])


def zeros(like: Any, bytes: int) -> Any:
    """So many bytes that are 0, of the same framework and device, to keep."""
    if isinstance(like, XlaArray):
        return like.call.zeros(bytes)
    xp = framework(like)
    if is_torch(like.__class__):
        return xp.zeros(bytes, dtype=xp.uint8, device=like.device)
    return xp.zeros(bytes, "uint8")


def memory(like: Array, bytes: int) -> Any:
    """So many bytes of any value, of the same framework and device, to keep."""
    return like.call.zeros(bytes) if isinstance(like, XlaArray) else empty(like, (bytes,), "u8")


def filled(like: Any, shape: tuple[int, ...], value: float, type: str | None = None, out: Any = None) -> Any:
    """An array like `empty` makes, or `out`, that holds one number everywhere."""
    made = empty(like, shape, type) if out is None else out
    (made.fill_ if is_torch(made.__class__) else made.fill)(value)  # by a kernel, which graphs can record
    return made


def address_of(array: Any) -> int:
    """Where an array begins."""
    if is_torch(array.__class__) or isinstance(array, XlaArray):
        return int(array.data_ptr())
    return int(array.data.ptr if hasattr(array, "__cuda_array_interface__") else array.ctypes.data)


def argument(matrix: Matrix) -> Array | int:
    """What a launch is given for a pointer."""
    return matrix.array if matrix.gpu is None else matrix.address


@cache
def streams_of_torch() -> Callable[[int], int]:
    """What gives the stream that torch works on now on a GPU."""
    torch = import_module("torch")
    found: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return found or (lambda gpu: int(torch.cuda.current_stream(gpu).cuda_stream))


Make = Callable[[tuple[int, ...], tuple[int, ...], Any], Any]
"""Makes an array of extents, strides and a type, with any values in it."""


def makers(like: Any) -> tuple[Make, Callable[[int], int], Any]:
    """What makes arrays like a tensor, what gives the stream of its framework, and the type of bytes."""
    if isinstance(like, XlaArray):
        return _of_xla, lambda gpu: call_of_xla().stream, np.dtype(np.uint8)
    torch = import_module("torch")
    return _of_torch(torch, like.device), streams_of_torch(), torch.uint8


def _of_xla(extents: tuple[int, ...], strides: tuple[int, ...], dtype: object) -> XlaArray:
    return call_of_xla().empty(extents, dtype)


def _of_torch(torch: ModuleType, device: Any) -> Make:
    """By what code of `torch.compile` calls, where torch has it and works on this GPU: it takes half the time."""
    make, inner = torch.empty_strided, getattr(torch, "_C", None)
    guards = getattr(getattr(inner, "_dynamo", None), "guards", None)
    fast: Make | None = getattr(guards, "_empty_strided_cuda", None)
    find = getattr(inner, "_cuda_getDevice", None)
    if fast is None or find is None or device.type != "cuda":
        return lambda extents, strides, dtype: make(extents, strides, dtype=dtype, device=device)
    if torch.cuda.device_count() == 1:
        return fast
    gpu = device.index

    def on_device(extents: tuple[int, ...], strides: tuple[int, ...], dtype: object) -> Any:
        if find() == gpu:
            return fast(extents, strides, dtype)
        return make(extents, strides, dtype=dtype, device=device)

    return on_device


def capturing(array: Array) -> Callable[[], bool]:
    """What says whether torch records a graph now, if the array is torch's: asked in each call, so without Python."""
    if not is_torch(array.__class__):
        return bool
    torch = sys.modules["torch"]
    found: Callable[[], bool] | None = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
    return found or torch.cuda.is_current_stream_capturing


def stream_of(array: Array, gpu: int) -> int:
    """The stream that the array's framework works on now."""
    if is_torch(array.__class__):
        return streams_of_torch()(gpu)
    if isinstance(array, XlaArray):
        return call_of_xla().stream
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
