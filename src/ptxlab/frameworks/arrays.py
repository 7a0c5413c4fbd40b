"""Arrays of torch and NumPy at the addresses that kernels on the emulator see.

An address is of the whole memory that a tensor is a view of, as on a GPU: a kernel may go by strides from one row to
the next, and find addresses of other tensors in memory. Memory of a GPU is copied here for a launch, and back.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from ptxlab.device.host_memory import HostMemory, HostPointer
from ptxlab.device.regions import Region
from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current


class NumpyArray:
    """An array of NumPy, with as much of a tensor's interface as compilers ask for."""

    def __init__(self, array: NDArray[Any], arrays: Arrays) -> None:
        if array.dtype.hasobject or not array.dtype.isnative:
            raise ValueError(f"a GPU can't read an array of {array.dtype}")
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self._arrays = arrays

    def data_ptr(self) -> int:
        """The address that kernels see."""
        return self._arrays.address(self.array)

    def stride(self, dimension: int | None = None) -> Any:
        """Strides in elements."""
        strides = tuple(stride // self.array.itemsize for stride in self.array.strides)
        return strides if dimension is None else strides[dimension]

    def numel(self) -> int:
        """How many elements there are."""
        return self.array.size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    def zero_(self) -> NumpyArray:
        """Set all elements to 0."""
        self.array[...] = 0
        return self

    def clone(self) -> NumpyArray:
        """A copy."""
        return NumpyArray(self.array.copy(), self._arrays)

    def copy_(self, other: NumpyArray) -> NumpyArray:
        """Take the elements of another array."""
        self.array[...] = other.array
        return self


class _Copy(NamedTuple):
    """The host's copy of memory of a GPU."""

    gpu: int
    address: int
    bytes: NDArray[Any]

    def move(self, function: str, *places: int) -> None:
        """Copy all of it, after everything that the GPU does now."""
        with current(self.gpu):
            call("cuCtxSynchronize")
            call(function, *places, self.bytes.nbytes)


class Arrays:
    """The arrays that kernels have been given, or whose addresses the host asked for."""

    def __init__(self) -> None:
        self.memory = HostMemory()
        self._copies: dict[int, _Copy] = {}

    def pointer(self, value: object, name: str) -> HostPointer:
        """An array as an argument; None is a null pointer, a number the address itself."""
        if value is None or isinstance(value, int):
            return HostPointer(self.memory, value or 0)
        return HostPointer(self.memory, self.address(value, name), name)

    def address(self, value: Any, name: str = "a tensor") -> int:
        """The address of an array's first element."""
        value = getattr(value, "array", value)
        if isinstance(value, numpy.ndarray):
            return self._numpy(value)
        if is_torch(value.__class__) and hasattr(value, "storage_offset"):
            return self._torch(value, name)
        if hasattr(value, "base") and hasattr(value, "data_ptr"):  # a tensor as one of another type
            return self.address(value.base, name)
        if hasattr(value, "data_ptr"):  # an address with a type, which is all that Triton asks of an argument
            return int(value.data_ptr())
        raise TypeError(f"{name} is a {type(value).__name__}: pass a tensor of torch or a NumPy array")

    @contextmanager
    def on_host(self) -> Iterator[int]:
        """Have what is in memory of GPUs here, and what a kernel made of it there afterwards; gives how many bytes."""
        copies = list(self._copies.values())
        for one in copies:
            one.move("cuMemcpyDtoH", one.bytes.ctypes.data, one.address)
        try:
            yield sum(one.bytes.nbytes for one in copies)
        finally:
            for one in copies:
                one.move("cuMemcpyHtoD", one.address, one.bytes.ctypes.data)

    def _torch(self, tensor: Any, name: str) -> int:
        storage = tensor.untyped_storage()
        start, size, device = storage.data_ptr(), storage.nbytes(), storage.device
        if device.type not in ("cpu", "cuda"):
            raise TypeError(f"{name} is on {device}: the emulator takes tensors of the CPU and of CUDA")
        known = self.memory.regions.get(start)
        if known is None or known.size != size:
            is_here = device.type == "cpu" or not size
            data = bytes_at(start, size) if is_here else numpy.empty(size, numpy.uint8)
            known = self.memory.add(data, "a tensor", start)
            if not is_here:
                self._copies[start] = _Copy(device.index or 0, start, data)
            weakref.finalize(storage, _forget, weakref.ref(self), start, known).atexit = False
        return known.base + int(tensor.storage_offset() * tensor.element_size())

    def _numpy(self, array: NDArray[Any]) -> int:
        owner = array
        while isinstance(owner.base, numpy.ndarray):
            owner = owner.base
        if not array.dtype.isnative or array.dtype.hasobject:
            raise TypeError(f"a GPU can't read an array of {array.dtype}")
        low, high = numpy.lib.array_utils.byte_bounds(owner) if owner.size else (owner.ctypes.data, owner.ctypes.data)
        known = self.memory.regions.get(low)
        if known is None or known.size != high - low:
            data = bytes_at(low, high - low)
            data.flags.writeable = bool(owner.flags.writeable)
            known = self.memory.add(data, "an array", low)
            weakref.finalize(owner, _forget, weakref.ref(self), low, known).atexit = False
        return known.base + int(array.__array_interface__["data"][0]) - low

    def forget(self, key: int, region: Region) -> None:
        """Memory that was freed is no longer to be reached."""
        if self.memory.regions.get(key) is region:
            self.memory.forget(key)
            self._copies.pop(key, None)


def bytes_at(address: int, size: int) -> NDArray[Any]:
    """Memory of this process as an array, which does not own it."""
    there: Any = (ctypes.c_uint8 * size).from_address(address) if size else bytearray(1)
    return numpy.frombuffer(there, numpy.uint8, size)


def _forget(arrays: weakref.ref[Arrays], key: int, region: Region) -> None:
    there = arrays()
    if there is not None:
        there.forget(key, region)
