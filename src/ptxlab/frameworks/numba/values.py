"""Arguments of a Numba kernel as parameters, by the types that Numba compiled it for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy

from ptxlab.device.host_memory import HostPointer, RawParameter
from ptxlab.frameworks.arrays import Arrays, bytes_at

_WORD = ctypes.c_int64


class Values:
    """Arguments of one launch; `after` are calls for when it has ended, as extensions of Numba leave them."""

    def __init__(self, arrays: Arrays, extensions: Any = ()) -> None:
        self.arrays, self.extensions = arrays, list(extensions or ())
        self.after: list[Any] = []
        self._kept: list[Any] = []
        self._types = import_module("numba.cuda").types

    def parameters(self, type: object, value: Any, name: str) -> Iterator[HostPointer | RawParameter]:
        """The parameters that an argument becomes."""
        for extension in reversed(self.extensions):
            type, value = extension.prepare_args(type, value, stream=0, retr=self.after)
        types = self._types
        if isinstance(type, types.Array):
            yield from self._array(value, name)
        elif isinstance(type, types.Record):
            yield self._record(value, name)
        elif isinstance(type, types.BaseTuple):
            for number, (inner, one) in enumerate(zip(type, value, strict=True)):
                yield from self.parameters(inner, one, f"{name}[{number}]")
        elif isinstance(type, types.EnumMember):
            yield from self.parameters(type.dtype, value.value, name)
        else:
            for scalar in self._scalars(type, value):
                yield self._raw(scalar)

    def _scalars(self, type: object, value: Any) -> Iterator[object]:
        types = self._types
        if isinstance(type, types.CPointer):
            yield _WORD(value)
        elif isinstance(type, types.Integer):
            yield getattr(ctypes, f"c_{type}")(value)
        elif type == types.boolean:
            yield ctypes.c_uint8(bool(value))
        elif isinstance(type, types.Float):
            yield numpy.dtype(str(type)).type(value)
        elif isinstance(type, types.Complex):
            half = numpy.dtype(str(type.underlying_float)).type
            yield half(value.real)
            yield half(value.imag)
        elif isinstance(type, (types.NPDatetime, types.NPTimedelta)):
            yield value.view(numpy.int64)
        else:
            raise NotImplementedError(f"an argument of the type {type} of Numba is not known here")

    def _raw(self, scalar: Any) -> RawParameter:
        return RawParameter(self.arrays.memory, bytes(scalar))

    def _array(self, value: object, name: str) -> Iterator[HostPointer | RawParameter]:
        """An array is two null pointers, its size, the size of an element, its address, its shape and its strides."""
        array = self._host(value)
        yield from (self._raw(_WORD(number)) for number in (0, 0, array.size, array.itemsize))
        yield self.arrays.pointer(array, name)
        yield from (self._raw(_WORD(number)) for number in (*array.shape, *array.strides))

    def _record(self, value: object, name: str) -> HostPointer:
        record = self._host(value)
        address = record.__array_interface__["data"][0]
        data = bytes_at(address, record.dtype.itemsize)
        self._kept += [record, data]
        region = self.arrays.memory.add(data, name)
        return HostPointer(self.arrays.memory, region.base, name)

    def _host(self, value: Any) -> Any:
        """The array of NumPy; a kernel changes a copy of what `cuda.In` names."""
        hints = import_module("numba.cuda.args")
        is_read = isinstance(value, hints.In)
        while isinstance(value, hints.ArgHint):
            value = value.value
        value = getattr(value, "_ary", value)
        if is_read or (isinstance(value, numpy.ndarray) and not value.flags.writeable):
            value = value.copy()
            self._kept.append(value)
        return value
