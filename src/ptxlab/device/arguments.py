"""Arguments of a launch: Python's values as the parameters that a kernel declares, arrays as memory it may touch."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.tensor_maps import BYTES as MAP_BYTES
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.report import Diagnostic, KernelError, error

ARGUMENTS = 0x7000_0000_0000  # where arrays begin in the generic address space
HEAP = 0x7800_0000_0000  # where `malloc` of a kernel does
_GAP = 65536  # between arrays, so that a step too far is found out


@dataclass
class Region:
    """Memory at an address of the kernel: `data` is where it is in truth, `name` what a message calls it."""

    base: int
    size: int
    data: int
    name: str
    writable: bool = True
    owner: Any = field(default=None, repr=False)
    tensor: int = 0  # of a tensor map that is pointed to: where its tensor is


@dataclass
class Parameters:
    """The parameters as bytes, and the memory they point to."""

    data: bytearray
    regions: list[Region]


def pack(module: ir.Module, kernel: ir.Function, args: Sequence[Any]) -> Parameters:
    """Turn arguments into parameters; what does not fit is reported for all of them at once."""
    area = layout.block_of(kernel.parameters)
    problems: list[Diagnostic] = []
    if len(args) != len(kernel.parameters):
        raise KernelError([_count_problem(module, kernel, len(args))])
    data = bytearray(area.size)
    regions: list[Region] = []
    at = ARGUMENTS
    for number, (parameter, value) in enumerate(zip(kernel.parameters, args, strict=True)):
        try:
            if isinstance(value, TensorMap):
                region = _region(value.array, at, f"argument {number} (`{parameter.name}`)", regions)
                at = -(-(max(at, region.base + region.size) + _GAP) // 256) * 256
                place = region.base + (_array_address(value.array) - region.data) + value.offset
                value = value.encode(place)
                if area.sizes[id(parameter)] not in (8, MAP_BYTES):
                    raise ValueError(
                        f"a tensor map needs a parameter of {MAP_BYTES} bytes, `.align 64 .b8 name[128]`, or a pointer"
                    )
                if area.sizes[id(parameter)] == 8:
                    regions.append(_map_region(value, at, f"the tensor map of argument {number}", place))
                    value, at = at, at + _GAP
            elif is_array(value):
                region = _region(value, at, f"argument {number} (`{parameter.name}`)", regions)
                at = -(-(max(at, region.base + region.size) + _GAP) // 256) * 256
                found = region.base + (_array_address(value) - region.data)
                value = found
                if area.sizes[id(parameter)] != 8:
                    raise ValueError(f"an array needs a 64-bit parameter, this one is `.{parameter.type.name}`")
            offset, size = area.offsets[id(parameter)], area.sizes[id(parameter)]
            data[offset : offset + size] = scalar_bytes(parameter, value, size)
        except (TypeError, ValueError, OverflowError) as caught:
            large = isinstance(caught, OverflowError)  # Python's words for it are about `struct`
            problem = f"the number is too large for `.{parameter.type.name}`" if large else caught
            problems.append(
                error(
                    "bad-argument",
                    f"argument {number} of `{kernel.name}`: {problem}",
                    module.span(parameter),
                    "the parameter is declared here",
                )
            )
    if problems:
        raise KernelError(problems)
    return Parameters(data, regions)


def _count_problem(module: ir.Module, kernel: ir.Function, given: int) -> Diagnostic:
    names = ", ".join(f"`{p.name}` (.{p.type.name})" for p in kernel.parameters) or "none"
    wanted = len(kernel.parameters)
    return error(
        "bad-argument",
        f"`{kernel.name}` takes {wanted} argument{'s' * (wanted != 1)}, not {given}",
        module.name_span(kernel),
        "the kernel is declared here",
        notes=[f"its parameters are {names}"],
    )


def is_array(value: Any) -> bool:
    """Whether a value is an array of the host, not one of NumPy's numbers."""
    return hasattr(value, "__array_interface__") and not (
        hasattr(value, "item") and getattr(value, "shape", None) == () and not hasattr(value, "__setitem__")
    )


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


def _map_region(encoded: bytes, base: int, name: str, tensor: int) -> Region:
    """Memory that holds a tensor map."""
    memory = (ctypes.c_uint8 * MAP_BYTES).from_buffer_copy(encoded)
    return Region(base, MAP_BYTES, ctypes.addressof(memory), name, False, memory, tensor)


def scalar_bytes(parameter: ir.Variable, value: Any, size: int) -> bytes:
    """A Python or NumPy number, or bytes, as a parameter of that type."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        given = bytes(value)
        if len(given) != size:
            raise ValueError(f"{len(given)} byte{'s' * (len(given) != 1)} for a parameter of {size}")
        return given
    if hasattr(value, "item"):
        value = value.item()
    kind, bits = parameter.type.kind, parameter.type.bits
    if parameter.dimensions or parameter.vector > 1:
        raise TypeError(f"the parameter is an aggregate of {size} bytes: pass `bytes`")
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float) and (kind == "f" or (kind == "b" and bits in (32, 64))):
        if bits == 64:
            return struct.pack("<d", value)
        if bits == 32:
            return struct.pack("<f", value)
        if bits == 16 and parameter.type.name in ("f16", "b16"):
            return struct.pack("<e", value)
        raise TypeError(f"a float does not fit `.{parameter.type.name}`")
    if isinstance(value, int) and kind == "f":
        return scalar_bytes(parameter, float(value), size)
    if isinstance(value, float):
        raise TypeError(f"{value} is not an integer, which `.{parameter.type.name}` needs")
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} is not a number, array or bytes")
    low = -(1 << (bits - 1))  # compilers declare every integer of C as unsigned
    high = (1 << (bits - 1)) - 1 if kind == "s" else (1 << bits) - 1
    if not low <= value <= high:
        raise ValueError(f"{value} does not fit `.{parameter.type.name}` ({low} to {high})")
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
