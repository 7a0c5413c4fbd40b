"""Arrays of torch and NumPy in the host's memory, at the addresses that kernels on the emulator see.

An address is of the whole memory that a tensor is a view of, as on a GPU: a kernel may go by strides from one row to
the next, and find addresses of other tensors in memory.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy

from ptxlab.device.host_memory import HostMemory, Pointer
from ptxlab.device.regions import Region
from ptxlab.gpu.arrays import is_torch


class NumpyArray:
    """An array of NumPy, with as much of a tensor's interface as compilers ask for."""

    def __init__(self, array: numpy.ndarray[Any, Any], arrays: Arrays) -> None:
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


class Arrays:
    """The arrays that kernels have been given, or whose addresses the host asked for."""

    def __init__(self) -> None:
        self.memory = HostMemory()

    def pointer(self, value: Any, name: str) -> Pointer:
        """An array as an argument; None is a null pointer, a number the address itself."""
        if value is None or isinstance(value, int):
            return Pointer(self.memory, value or 0)
        return Pointer(self.memory, self.address(value, name), name)

    def address(self, value: Any, name: str = "a tensor") -> int:
        """The address of an array's first element."""
        value = getattr(value, "array", value)
        if isinstance(value, numpy.ndarray):
            region, first = self._numpy(value), value.__array_interface__["data"][0]
        elif is_torch(value.__class__) and hasattr(value, "untyped_storage"):
            if value.device.type != "cpu":
                raise TypeError(
                    f"{name} is on {value.device}: the emulator takes tensors of the CPU, as `.cpu()` gives"
                )
            region, first = self._torch(value)
        elif hasattr(value, "base") and hasattr(value, "data_ptr"):  # a tensor as one of another type
            return self.address(value.base, name)
        else:
            raise TypeError(f"{name} is a {type(value).__name__}: pass a torch tensor of the CPU or a NumPy array")
        return region.base + int(first) - region.data

    def _torch(self, tensor: Any) -> tuple[Region, int]:
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        first = start + tensor.storage_offset() * tensor.element_size()
        known = self.memory.regions.get(start)
        if known is not None and known.size == size:
            return known, first
        region = self.memory.add(bytes_at(start, size), "a tensor", start)
        region.data = start
        weakref.finalize(storage, _forget, weakref.ref(self.memory), start, region).atexit = False
        return region, first

    def _numpy(self, array: numpy.ndarray[Any, Any]) -> Region:
        owner = array
        while isinstance(owner.base, numpy.ndarray):
            owner = owner.base
        if not array.dtype.isnative or array.dtype.hasobject:
            raise TypeError(f"a GPU can't read an array of {array.dtype}")
        low, high = numpy.lib.array_utils.byte_bounds(owner) if owner.size else (owner.ctypes.data, owner.ctypes.data)
        known = self.memory.regions.get(low)
        if known is not None and known.size == high - low:
            return known
        data = bytes_at(low, high - low)
        data.flags.writeable = bool(owner.flags.writeable)
        region = self.memory.add(data, "an array", low)
        region.data = low
        weakref.finalize(owner, _forget, weakref.ref(self.memory), low, region).atexit = False
        return region


def bytes_at(address: int, size: int) -> numpy.ndarray[Any, Any]:
    """Memory of this process as an array, which does not own it."""
    there: Any = (ctypes.c_uint8 * size).from_address(address) if size else bytearray(1)
    return numpy.frombuffer(there, numpy.uint8, size)


def _forget(memory: weakref.ref[HostMemory], key: int, region: Region) -> None:
    """Memory that was freed is no longer to be reached."""
    there = memory()
    if there is not None and there.regions.get(key) is region:
        there.forget(key)
