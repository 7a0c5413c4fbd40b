"""Arguments of a launch on a GPU: arrays that lie there as they are, arrays of the host copied there and back."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import Region, is_array, pack
from ptxlab.device.tensor_maps import BYTES, TensorMap, address_in
from ptxlab.gpu.arrays import Memory, host_view, is_ready, is_torch, memory_of
from ptxlab.gpu.driver import bindings, broken, call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.tensor_maps import encode
from ptxlab.report import Diagnostic, KernelError, error


class Copies:
    """Arrays of the host on the GPU, as long as a launch takes."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = regions
        self.places: dict[int, int] = {}

    def copy_in(self) -> None:
        """Allocate memory and fill it."""
        for region in self.regions:
            place = int(call("cuMemAlloc", max(region.size, 1)))
            self.places[region.base] = place
            if region.size:
                call("cuMemcpyHtoD", place, region.data, region.size)

    def address_of(self, virtual: int) -> int:
        """The address on the GPU of an offset into an array."""
        for region in self.regions:
            if region.base <= virtual <= region.base + region.size:
                return self.places[region.base] + virtual - region.base
        raise AssertionError(f"{virtual:#x} belongs to no array")

    def place_map(self, map: TensorMap, virtual: int) -> int:
        """Encode a tensor map as the driver does, in the memory that a pointer points to; where on the GPU that is."""
        (region,) = (region for region in self.regions if region.base == virtual)
        place = self.places[region.base]
        call("cuMemcpyHtoD", place, encode(map, self.address_of(region.tensor)), BYTES)
        return place

    def copy_out(self, kept: dict[int, bytearray] | None) -> None:
        """Bring back what the kernel made of the arrays, or into `kept`, by region, without touching the arrays."""
        for region in self.regions:
            if not region.size:
                continue
            if kept is not None:
                kept[region.data] = bytearray(region.size)
                target = ctypes.addressof((ctypes.c_uint8 * region.size).from_buffer(kept[region.data]))
                call("cuMemcpyDtoH", target, self.places[region.base], region.size)
            elif region.writable:
                call("cuMemcpyDtoH", region.data, self.places[region.base], region.size)

    def free(self) -> None:
        """Give the memory back, unless the kernel still works on it or the context is gone."""
        while self.places and broken() is None:
            bindings().cuMemFree(self.places.popitem()[1])


class Signature:
    """The parameters of a kernel as C's library for Python writes them: all numbers and addresses in one call."""

    def __init__(self, kernel: ir.Function) -> None:
        area = layout.block_of(kernel.parameters)
        self.size = area.size
        self.slots = [(area.offsets[id(parameter)], area.sizes[id(parameter)]) for parameter in kernel.parameters]
        """Offset and size of each parameter."""
        codes, end = ["<"], 0
        for parameter, (offset, size) in zip(kernel.parameters, self.slots, strict=True):
            simple = not parameter.dimensions and parameter.vector == 1
            codes += [f"{offset - end}x", _CODES.get(parameter.type.name, "") if simple else ""]
            end = offset + size
        self._all: struct.Struct | None = struct.Struct("".join(codes)) if "" not in codes else None

    def pack(self, values: Sequence[int | float]) -> bytes | None:
        """The parameters as bytes, or None where that takes a closer look."""
        if self._all is None:
            return None
        try:
            return self._all.pack(*values)
        except (struct.error, OverflowError):
            return None


_CODES = {
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s8": "b", "s16": "h", "s32": "i", "s64": "q",
    "b8": "B", "b16": "H", "b32": "I", "b64": "Q", "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip


@dataclass(slots=True)
class Parameters:
    """The parameters as bytes, the arrays that are copied, and those that are on the GPU already.

    `streams` are those that arrays say they are made on.
    """

    signature: Signature
    values: Sequence[Any]
    data: bytes
    copies: Copies
    owners: Sequence[Any]
    streams: Sequence[int]

    def placed(self) -> bytes:
        """The parameters once all arrays are on the GPU: with the addresses they have there."""
        if not self.copies.regions:
            return self.data
        found = bytearray(self.data)
        for (at, size), value in zip(self.signature.slots, self.values, strict=True):
            if is_array(value):
                virtual = int.from_bytes(found[at : at + 8], "little")
                found[at : at + 8] = self.copies.address_of(virtual).to_bytes(8, "little")
            elif isinstance(value, TensorMap) and size == BYTES:
                virtual = address_in(found[at : at + BYTES])
                found[at : at + BYTES] = encode(value, self.copies.address_of(virtual))
            elif isinstance(value, TensorMap):
                virtual = int.from_bytes(found[at : at + 8], "little")
                found[at : at + 8] = self.copies.place_map(value, virtual).to_bytes(8, "little")
        return bytes(found)


_NO_COPIES = Copies(())


def convert(module: ir.Module, kernel: ir.Function, signature: Signature, args: Sequence[Any], gpu: Gpu) -> Parameters:
    """Turn arguments into parameters; what does not fit is reported for all of them at once."""
    owners: list[Any] = []
    streams: list[int] = []
    values: list[Any] = []
    problems: list[Diagnostic] = []
    simple = True
    for number, value in enumerate(args):
        if type(value) is int or type(value) is float:
            values.append(value)
            continue
        if is_torch(value.__class__) and is_ready(value, gpu.number):
            values.append(value.data_ptr())
            owners.append(value)
            continue
        try:
            memory = memory_of(value.array if isinstance(value, TensorMap) else value)
            if memory is None or memory.gpu is None:
                values.append(host_view(value))
                simple = False
                continue
            if memory.gpu != gpu.number:
                _require_gpu(memory, gpu)
            if isinstance(value, TensorMap):
                values.append(_encoded(kernel, number, encode(value, memory.address + value.offset)))
                simple = False
            else:
                values.append(memory.address)
            owners.append(memory.owner)
            if memory.stream is not None:
                streams.append(memory.stream)
        except (TypeError, ValueError) as problem:
            values.append(0)
            span = module.span(kernel.parameters[number]) if number < len(kernel.parameters) else None
            problems.append(error("bad-argument", f"argument {number} of `{kernel.name}`: {problem}", span,
                                  "the parameter is declared here"))  # fmt: skip
    if problems:
        raise KernelError(problems)
    data = signature.pack(values) if simple else None
    if data is not None:
        return Parameters(signature, values, data, _NO_COPIES, owners, streams)
    parameters = pack(module, kernel, values)
    return Parameters(signature, values, bytes(parameters.data), Copies(parameters.regions), owners, streams)


def _encoded(kernel: ir.Function, number: int, encoded: bytes) -> Any:
    """A tensor map as an argument; where a parameter is a pointer to it, as an array."""
    import numpy

    is_pointer = number < len(kernel.parameters) and layout.size_of_variable(kernel.parameters[number]) == 8
    return numpy.frombuffer(encoded, numpy.uint8) if is_pointer else encoded


def _require_gpu(memory: Memory, gpu: Gpu) -> None:
    number = memory.gpu
    if number == -1 and memory.address and memory.size:
        kind = bindings().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        with current(gpu.number):
            status, found = bindings().cuPointerGetAttribute(kind, memory.address)
        number = gpu.number if int(status) else int(found)
    if number not in (-1, gpu.number):
        raise ValueError(f"the array is on GPU {number}, the launch is on GPU {gpu.number}: "
                         f'copy it there, or launch with `device="cuda:{number}"`')  # fmt: skip
