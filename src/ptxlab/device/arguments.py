"""Arguments of a launch: Python's values as the parameters that a kernel declares, arrays as memory it may touch."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.host_memory import HostMemory, HostPointer, RawArguments, RawParameter
from ptxlab.device.multicast import MULTICAST, STEP, Multicast, PlacedMulticast
from ptxlab.device.parameter_fields import POINTER, ParameterField, fields_of
from ptxlab.device.placed_objects import PlacedObjects, objects_of
from ptxlab.device.placing import POINTER_BYTES, Encoded, is_record, place
from ptxlab.device.regions import Region
from ptxlab.device.structures import PointerArray, is_container, leaves
from ptxlab.device.tensor_maps import BYTES as MAP_BYTES
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.device.textures import OPAQUE
from ptxlab.ir.origin import at_origin
from ptxlab.isa.types import Type
from ptxlab.report import Diagnostic, KernelError, error
from ptxlab.values import dataclass

ARGUMENTS = 0x7000_0000_0000  # where arrays start in the generic address space
HEAP = 0x7800_0000_0000  # where `malloc` of a kernel does
HEAP_STEP = 1 << 36  # of `malloc`, from one GPU of a node to the next
_GAP = 65536  # between arrays, so that a step too far is found out


@dataclass(frozen=True)
class ParameterSlot:
    """Bytes of the parameters that are others on a GPU: an address, a tensor map, or a handle."""

    offset: int
    map: TensorMap | None = None
    is_pointer: bool = True  # whether an address is there, or the map itself
    is_handle: bool = False  # whether it is the handle of a texture or surface


@dataclass
class Parameters:
    """The parameters as bytes, the memory they point to, and where in the bytes they do."""

    data: bytearray
    regions: list[Region] = field(default_factory=list)
    slots: list[ParameterSlot] = field(default_factory=list)
    objects: PlacedObjects = field(default_factory=PlacedObjects)
    multicasts: list[PlacedMulticast] = field(default_factory=list)
    memory: HostMemory | None = None
    """All of which the kernel can reach, if the arguments are bytes."""


@dataclass
class AddressSpace:
    """The addresses of arrays; launches that share one know an array by one address."""

    regions: list[Region] = field(default_factory=list)
    next: int = ARGUMENTS


def pack(
    module: ir.Module,
    kernel: ir.Function,
    args: Sequence[object],
    space: AddressSpace | None = None,
    bound: Mapping[str, object] | None = None,
) -> Parameters:
    """Turn arguments into parameters; what does not fit is reported for all of them at once.

    `bound` has the textures, surfaces and samplers that variables of the module are set to.
    """
    problems: list[Diagnostic] = []
    if len(args) != len(kernel.parameters):
        raise KernelError(at_origin(module, [_count_problem(module, kernel, len(args))]))
    packing = _Packing(kernel, space or AddressSpace())
    packing.parameters.objects = objects_of(module, bound or {})
    if isinstance(args, RawArguments):
        packing.take(args)
    for number, (parameter, value) in enumerate(zip(kernel.parameters, args, strict=True)):
        try:
            if _is_structure(parameter, value):
                fields = fields_of(module, kernel)[number]
                for one in place(parameter, fields, value):
                    packing.add(number, one.field, one.value, f" at +{one.field.offset}")
            else:
                packing.add(number, ParameterField(0, packing.area.sizes[id(parameter)], parameter.type.name), value)
        except (TypeError, ValueError, OverflowError) as caught:
            problems.append(_problem(module, kernel, number, caught))
    if problems:
        raise KernelError(at_origin(module, problems))
    return packing.parameters


def _is_structure(parameter: ir.Variable, value: object) -> bool:
    """Whether an argument is packed by the fields of a structure, not as one number, array or tensor map."""
    if not (parameter.dimensions or parameter.vector > 1):
        return is_container(value) and not isinstance(value, PointerArray)
    if isinstance(value, (TensorMap, Encoded)):
        return layout.size_of_variable(parameter) not in (8, MAP_BYTES)
    return not isinstance(value, (bytes, bytearray, memoryview, RawParameter))


class _Packing:
    """Parameters while arguments are added."""

    def __init__(self, kernel: ir.Function, space: AddressSpace) -> None:
        self.kernel, self.space = kernel, space
        self.area = layout.block_of(kernel.parameters)
        self.parameters = Parameters(bytearray(self.area.size))

    def take(self, args: RawArguments) -> None:
        """Let the kernel reach what arguments that are bytes may refer to; `add` then writes the bytes."""
        self.parameters.regions += args.memory.regions.values()
        self.parameters.multicasts += args.memory.multicasts
        self.parameters.memory = args.memory
        for number, value in args.objects.items():
            self.parameters.objects.place(value, number, f"the {value.__class__.__name__.lower()} object {number}")
            self.parameters.objects.count = max(self.parameters.objects.count, number + 1)

    def add(self, number: int, field: ParameterField, value: object, where: str = "") -> None:
        """Write a value to a field of a parameter."""
        parameter = self.kernel.parameters[number]
        offset = self.area.offsets[id(parameter)] + field.offset
        name = f"argument {number}{where}"
        if value is None:
            value = _null(field)
        elif isinstance(value, (TensorMap, Encoded)):
            value = self._map(value, offset, field, name, parameter.title)
        elif isinstance(value, Multicast):
            value = self._multicast(value, field, f"{name} (`{parameter.title}`)")
        elif isinstance(value, OPAQUE):
            handle = self.parameters.objects.add(value, field.kind, field.size, f"{name} (`{parameter.title}`)")
            value = handle.to_bytes(field.size, "little")
            self.parameters.slots.append(ParameterSlot(offset, is_handle=True))
        elif isinstance(value, RawParameter):
            if value.memory is not self.parameters.memory:
                self._reach(value.regions(), "")
            value = value.data
        elif isinstance(value, HostPointer):
            value = self._pointer(value, field)
        elif isinstance(value, PointerArray):
            value = self._pointers(value, field, f"{name} (`{parameter.title}`)")
            self.parameters.slots.append(ParameterSlot(offset))
        elif is_array(value):
            if field.size != 8:
                raise ValueError(f"an array needs a 64-bit parameter, this one is `.{field.kind}`")
            value = self._address(value, f"{name} (`{parameter.title}`)")
            self.parameters.slots.append(ParameterSlot(offset))
        self.parameters.data[offset : offset + field.size] = number_bytes(field.type, value, field.size)

    def _map(
        self, map: TensorMap | Encoded, offset: int, field: ParameterField, name: str, parameter: str
    ) -> bytes | int:
        """A tensor map as the bytes of a parameter, or as the address of memory that holds it."""
        if field.size not in (8, MAP_BYTES):
            raise ValueError(
                f"a tensor map needs a parameter of {MAP_BYTES} bytes, `.align 64 .b8 name[128]`, or a pointer"
            )
        map_address, encoded = 0, map.data if isinstance(map, Encoded) else b""
        if isinstance(map, TensorMap):
            map_address = self._address(map.array, f"{name} (`{parameter}`)") + map.offset
            encoded = map.encode(map_address)
        given = map if isinstance(map, TensorMap) else None
        if field.size == MAP_BYTES:
            self.parameters.slots += [ParameterSlot(offset, given, False)] if given is not None else []
            return encoded
        region = self._add_region(encoded, f"the tensor map of {name}")
        region.tensor = map_address
        self.parameters.slots.append(ParameterSlot(offset, given))
        return region.base

    def _pointers(self, pointers: PointerArray, field: ParameterField, name: str) -> int:
        """The address of memory that holds those of arrays; what is a number already is an address of the GPU."""
        if field.size != POINTER_BYTES:
            raise ValueError(f"an array of pointers needs a 64-bit parameter, this one is `.{field.kind}`")
        addresses = []
        for at, value in enumerate(pointers):
            if not is_array(value) and not isinstance(value, int) and value is not None:
                raise TypeError(f"pointer {at} is not an array: {value!r:.40}")
            addresses.append(self._address(value, f"{name}, array {at}") if is_array(value) else value or 0)
        region = self._add_region(struct.pack(f"<{len(addresses)}Q", *addresses), f"the pointers of {name}")
        region.pointers = tuple([POINTER_BYTES * at for at, value in enumerate(pointers) if is_array(value)])
        return region.base

    def _pointer(self, pointer: HostPointer, field: ParameterField) -> int:
        """An address in memory of the host, all of which the kernel can reach."""
        if field.size != POINTER_BYTES:
            raise ValueError(f"a pointer needs a 64-bit parameter, this one is `.{field.kind}`")
        self._reach(pointer.regions(), pointer.name)
        return pointer.address

    def _reach(self, regions: Sequence[Region], name: str) -> None:
        """Let the kernel reach memory; a region that has this name gets it."""
        known = {region.base: region for region in self.parameters.regions}
        for region in regions:
            if region.base not in known:
                self.parameters.regions.append(region)
            elif name and region.name == name:
                known[region.base].name = name

    def _add_region(self, data: bytes, name: str) -> Region:
        """Memory with these bytes, which the kernel only reads."""
        memory = (ctypes.c_uint8 * len(data)).from_buffer_copy(data)
        region = Region(self.space.next, len(data), ctypes.addressof(memory), name, False, memory)
        self.space.regions.append(region)
        self.parameters.regions.append(region)
        self.space.next = -(-(region.base + region.size + _GAP) // 256) * 256
        return region

    def _address(self, array: object, name: str) -> int:
        """The address of an array."""
        region = self._region(array, name)
        return region.base + (_array_address(array) - region.data)

    def _multicast(self, multicast: Multicast, field: ParameterField, name: str) -> int:
        """The address that the arrays of several devices have together."""
        if field.size != 8:
            raise ValueError(f"a multicast address needs a 64-bit parameter, this one is `.{field.kind}`")
        base = MULTICAST + STEP * len(self.parameters.multicasts)
        replicas = tuple(
            [self._address(array, f"{name}, device {number}") for number, array in enumerate(multicast.arrays)]
        )
        size = int(multicast.arrays[0].nbytes)
        self.parameters.multicasts.append(PlacedMulticast(base, size, replicas, name))
        return base

    def _region(self, array: object, name: str) -> Region:
        """The memory of an array, by the name that it has in this launch."""
        space, own = self.space, self.parameters.regions
        known = _region(array, space.next, name, space.regions)
        if known.base <= space.next:  # arrays of a node are above
            space.next = -(-(max(space.next, known.base + known.size) + _GAP) // 256) * 256
        region = next((one for one in own if one.base == known.base), None)
        if region is None:
            own.append(region := replace(known, name=name))
        region.writable = known.writable
        return region


def _null(field: ParameterField) -> int:
    """The null pointer, which `None` is."""
    if field.kind not in ("u64", "b64", POINTER):
        raise ValueError(f"`None` is a null pointer, which needs a `.u64` parameter, this one is `.{field.kind}`")
    return 0


def _problem(module: ir.Module, kernel: ir.Function, number: int, caught: Exception) -> Diagnostic:
    """What is wrong with an argument, as a diagnostic."""
    parameter = kernel.parameters[number]
    large = isinstance(caught, OverflowError)  # Python's words for it are about `struct`
    problem = f"the number is too large for `.{parameter.type.name}`" if large else caught
    return error(
        "bad-argument",
        f"argument {number} of `{kernel.title}`: {problem}",
        module.span(parameter),
        "the parameter is declared here",
        notes=getattr(caught, "notes", ()),
        helps=getattr(caught, "helps", ()),
    )


def address_space_of(launches: Sequence[Sequence[object]]) -> AddressSpace:
    """Addresses for the arrays of several launches: of arrays that overlap, the largest has them all."""
    space = AddressSpace()
    every = [leaf for args in launches for value in args for leaf in leaves(value)]
    arrays = [leaf.array if isinstance(leaf, TensorMap) else leaf for leaf in every]
    for array in sorted(filter(is_array, arrays), key=lambda array: -int(array.nbytes)):
        with suppress(TypeError, ValueError):  # which is reported for its argument
            region = _region(array, space.next, "an array", space.regions)
            space.next = -(-(max(space.next, region.base + region.size) + _GAP) // 256) * 256
    return space


def _count_problem(module: ir.Module, kernel: ir.Function, given: int) -> Diagnostic:
    names = ", ".join(f"`{p.name}` (.{p.type.name})" for p in kernel.parameters) or "none"
    wanted = len(kernel.parameters)
    return error(
        "bad-argument",
        f"`{kernel.title}` takes {wanted} argument{'s' * (wanted != 1)}, not {given}",
        module.name_span(kernel),
        "the kernel is declared here",
        notes=[f"its parameters are {names}"],
    )


def is_array(value: object) -> bool:
    """Whether a value is an array of the host, not one of NumPy's numbers."""
    if not hasattr(value, "__array_interface__") or is_record(value):
        return False
    return not (hasattr(value, "item") and getattr(value, "shape", None) == () and not hasattr(value, "__setitem__"))


def _array_address(value: Any) -> int:
    return int(value.__array_interface__["data"][0])


def _region(value: Any, base: int, name: str, known: list[Region]) -> Region:
    """The memory of an array: of several that overlap, one region."""
    interface = value.__array_interface__
    if interface.get("strides") is not None and not value.flags.c_contiguous and not value.flags.f_contiguous:
        raise ValueError("the array has gaps: pass a contiguous one, as numpy.ascontiguousarray makes it")
    if not value.dtype.isnative:
        raise TypeError(f"the bytes of an array of {value.dtype} are in an order that no GPU reads")
    if value.dtype.hasobject:
        raise TypeError("a GPU can't use an array of Python objects")
    address, read_only = interface["data"]
    size = int(value.nbytes)
    for region in known:
        if region.data <= address < region.data + region.size or address <= region.data < address + size:
            if address >= region.data and address + size <= region.data + region.size:
                region.writable = region.writable or not read_only
                return region
            raise ValueError(f"the array overlaps {region.name} in part; pass the larger one first")
    region = Region(base, size, address, name, not read_only, value)
    known.append(region)
    return region


def number_bytes(type: Type, value: Any, size: int) -> bytes:
    """A Python or NumPy number, or bytes, as a value of that type and that many bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        given = bytes(value)
        if len(given) != size:
            raise ValueError(f"{len(given)} byte{'s' * (len(given) != 1)} for a parameter of {size}")
        return given
    if 8 * size != type.width:
        raise TypeError(f"the parameter is an aggregate of {size} bytes: pass `bytes`")
    if is_float_of(value, size) and type.kind == "b":
        return bytes(value.tobytes())
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float):
        return _float_bytes(type, value)
    if not isinstance(value, int):
        raise TypeError(f"{value.__class__.__name__} is not a number, array or bytes")
    if type.kind == "f":
        return _float_bytes(type, float(value))
    low = -(1 << (type.bits - 1))  # compilers declare every integer of C as unsigned
    high = (1 << (type.bits - 1)) - 1 if type.kind == "s" else (1 << type.bits) - 1
    if not low <= value <= high:
        raise ValueError(f"{value} does not fit `.{type.name}` ({low} to {high})")
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def is_float_of(value: object, size: int) -> bool:
    """Whether a value is a float of NumPy's or of ml_dtypes' with that many bytes."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind in "fV" and dtype.itemsize == size and dtype.names is None


def _float_bytes(type: Type, value: float) -> bytes:
    if type.name == "bf16":
        from ml_dtypes import bfloat16

        return bytes(bfloat16(value).tobytes())
    codes = {"f64": "<d", "b64": "<d", "f32": "<f", "b32": "<f", "f16": "<e"}
    if type.name in codes:
        return struct.pack(codes[type.name], value)
    if type.kind == "f":
        raise TypeError(f"a float does not fit `.{type.name}`")
    raise TypeError(f"{value} is not an integer, which `.{type.name}` needs")
