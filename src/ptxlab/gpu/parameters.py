"""Arguments of a launch on a GPU: arrays that are there already, arrays of the host copied there and back."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import AddressSpace, ParameterSlot, pack
from ptxlab.device.multicast import Multicast
from ptxlab.device.placed_objects import PlacedObject
from ptxlab.device.placing import Encoded
from ptxlab.device.regions import Region
from ptxlab.device.structures import is_container, map_leaves
from ptxlab.device.tensor_maps import BYTES, TensorMap, address_in
from ptxlab.device.textures import Sampler
from ptxlab.gpu.arrays import ArrayMemory, host_view, is_ready, is_torch, memory_of
from ptxlab.gpu.driver import bindings, broken, call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.tensor_maps import encode
from ptxlab.gpu.textures import TextureObjects
from ptxlab.report import Diagnostic, KernelError, error


class DeviceCopies:
    """Arrays of the host on the GPU, and textures and surfaces made of them, as long as a launch takes."""

    def __init__(self, regions: Sequence[Region], objects: Sequence[PlacedObject] = ()) -> None:
        self.regions = regions
        self.objects = TextureObjects(objects)
        self.addresses: dict[int, int] = {}

    def with_variables(self, bound: Sequence[tuple[str, Any]]) -> DeviceCopies:
        """The same, and textures and surfaces that variables of the module refer to."""
        if not bound:
            return self
        found = DeviceCopies(self.regions, self.objects.placed)
        found.objects.bound = bound
        return found

    @property
    def names(self) -> list[str]:
        """What there is to copy, as messages call it."""
        placed = [one.name for one in self.objects.placed] + [f"`{name}`" for name, _ in self.objects.bound]
        return [region.name for region in self.regions] + placed

    def copy_in(self) -> None:
        """Allocate memory and fill it."""
        self.objects.create()
        for region in self.regions:
            allocated = int(call("cuMemAlloc", max(region.size, 1)))
            self.addresses[region.base] = allocated
            if region.size:
                call("cuMemcpyHtoD", allocated, region.data, region.size)
        for region in self.regions:
            if region.pointers:
                call("cuMemcpyHtoD", self.addresses[region.base], self._addresses_in(region), region.size)

    def _addresses_in(self, region: Region) -> bytes:
        """Memory that holds pointers, with the addresses that arrays have on the GPU."""
        found = bytearray(ctypes.string_at(region.data, region.size))
        for at in region.pointers:
            found[at : at + 8] = self.address_of(int.from_bytes(found[at : at + 8], "little")).to_bytes(8, "little")
        return bytes(found)

    def address_of(self, virtual: int) -> int:
        """The address on the GPU of an offset into an array."""
        for region in self.regions:
            if region.base <= virtual <= region.base + region.size:
                return self.addresses[region.base] + virtual - region.base
        raise AssertionError(f"{virtual:#x} belongs to no array")

    def place_map(self, map: TensorMap, virtual: int) -> int:
        """Encode a tensor map as the driver does, in the memory that a pointer points to; where on the GPU that is."""
        (region,) = (region for region in self.regions if region.base == virtual)
        allocated = self.addresses[region.base]
        call("cuMemcpyHtoD", allocated, encode(map, self.address_of(region.tensor)), BYTES)
        return allocated

    def copy_out(self, kept: dict[int, bytearray] | None) -> None:
        """Bring back what the kernel made of the arrays, or into `kept`, by region, without touching the arrays."""
        self.objects.copy_out(kept)
        for region in self.regions:
            if not region.size:
                continue
            if kept is not None:
                kept[region.data] = bytearray(region.size)
                target = ctypes.addressof((ctypes.c_uint8 * region.size).from_buffer(kept[region.data]))
                call("cuMemcpyDtoH", target, self.addresses[region.base], region.size)
            elif region.writable:
                call("cuMemcpyDtoH", region.data, self.addresses[region.base], region.size)

    def free(self) -> None:
        """Give the memory back, unless the kernel still works on it or the context is gone."""
        self.objects.free()
        while self.addresses and broken() is None:
            bindings().cuMemFree(self.addresses.popitem()[1])


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

    data: bytes
    slots: Sequence[ParameterSlot]
    copies: DeviceCopies
    owners: Sequence[Any]
    streams: Sequence[int]

    def placed(self) -> bytes:
        """The parameters once all arrays are on the GPU: with the addresses they have there."""
        if not self.copies.names:
            return self.data
        found = bytearray(self.data)
        for slot in self.slots:
            at = slot.offset
            if slot.is_handle:
                handle = self.copies.objects.handles[int.from_bytes(found[at : at + 8], "little")]
                found[at : at + 8] = handle.to_bytes(8, "little")
                continue
            if slot.map is not None and not slot.is_pointer:
                virtual = address_in(found[at : at + BYTES])
                found[at : at + BYTES] = encode(slot.map, self.copies.address_of(virtual))
                continue
            virtual = int.from_bytes(found[at : at + 8], "little")
            allocated = (
                self.copies.address_of(virtual) if slot.map is None else self.copies.place_map(slot.map, virtual)
            )
            found[at : at + 8] = allocated.to_bytes(8, "little")
        return bytes(found)


_NO_COPIES = DeviceCopies(())


def convert(
    module: ir.Module,
    kernel: ir.Function,
    signature: Signature,
    args: Sequence[object],
    gpu: Gpu,
    space: AddressSpace | None = None,
) -> Parameters:
    """Turn arguments into parameters; what does not fit is reported for all of them at once."""
    values: list[Any] = []
    problems: list[Diagnostic] = []
    conversion = _Conversion(gpu)
    for number, value in enumerate(args):
        if type(value) is int or type(value) is float:
            values.append(value)
            continue
        try:
            values.append(map_leaves(conversion.convert, value) if is_container(value) else conversion.convert(value))
            conversion.is_simple = conversion.is_simple and not is_container(value)
        except (TypeError, ValueError) as problem:
            values.append(0)
            span = module.span(kernel.parameters[number]) if number < len(kernel.parameters) else None
            problems.append(error("bad-argument", f"argument {number} of `{kernel.title}`: {problem}", span,
                                  "the parameter is declared here"))  # fmt: skip
    if problems:
        raise KernelError(problems)
    owners, streams = conversion.owners, conversion.streams
    data = signature.pack(values) if conversion.is_simple else None
    if data is not None:
        return Parameters(data, (), _NO_COPIES, owners, streams)
    parameters = pack(module, kernel, values, space)
    return Parameters(
        bytes(parameters.data),
        parameters.slots,
        DeviceCopies(parameters.regions, parameters.objects.placed),
        owners,
        streams,
    )


class _Conversion:
    """Values of arguments as `pack` takes them: arrays on the GPU are their addresses there."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.owners: list[Any] = []
        self.streams: list[int] = []
        self.is_simple = True  # whether all values are numbers

    def convert(self, value: Any) -> Any:
        """A number, an array of the host, or the address of an array on the GPU."""
        if type(value) is int or type(value) is float:
            return value
        if is_torch(value.__class__) and is_ready(value, self.gpu.number):
            self.owners.append(value)
            return value.data_ptr()
        if isinstance(value, Multicast):
            raise TypeError(
                "a multicast address is of several GPUs at an NVSwitch, and a launch has one: "
                "it is for the emulator, or pass the address that `cuMemMap` of your multicast object gave you"
            )
        if isinstance(value, Sampler):
            raise TypeError("a sampler apart from its texture is for the emulator: CUDA gives textures their own")
        memory = memory_of(value.array if isinstance(value, TensorMap) else value)
        if memory is None or memory.gpu is None:
            self.is_simple = False
            return host_view(value)
        if memory.gpu != self.gpu.number:
            _require_gpu(memory, self.gpu)
        self.owners.append(memory.owner)
        if memory.stream is not None:
            self.streams.append(memory.stream)
        if isinstance(value, TensorMap):
            self.is_simple = False
            return Encoded(encode(value, memory.address + value.offset))
        return memory.address


def _require_gpu(memory: ArrayMemory, gpu: Gpu) -> None:
    number = memory.gpu
    if number == -1 and memory.address and memory.size:
        kind = bindings().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        with current(gpu.number):
            status, found = bindings().cuPointerGetAttribute(kind, memory.address)
        number = gpu.number if int(status) else int(found)
    if number not in (-1, gpu.number):
        raise ValueError(f"the array is on GPU {number}, the launch is on GPU {gpu.number}: "
                         f'copy it there, or launch with `device="cuda:{number}"`')  # fmt: skip
