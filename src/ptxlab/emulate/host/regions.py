"""The memory that a kernel may touch: arrays, variables of the module, and what it allocates itself."""

from __future__ import annotations

import ctypes
import mmap
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import Region
from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.structs import Record
from ptxlab.emulate.host.heap import Heap, heap_of
from ptxlab.emulate.host.needs import marks_offset

WORKSPACE = 0x6F00_0000_0000  # an address below all arrays; see `arguments`


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What outlives a launch: variables, and what was allocated, with what they hold."""

    variables: dict[int, bytes]
    allocated: list[tuple[Region, bytes]]
    next: int


class Regions:
    """Regions in the order of their addresses, and `table`, the same for machine code."""

    def __init__(
        self, regions: Iterable[Region], spare: int, kept: Mapping[int, ctypes.Array[ctypes.c_char]] | None
    ) -> None:
        """`spare` more can be added; `kept` has room for what they hold before a trial, by address."""
        self._regions = sorted(regions, key=lambda region: region.base)
        self._kept = kept or {}
        self.table = Record(state.Allocation, len(self._regions) + spare)
        for index in range(len(self._regions)):
            self._list(index)

    def __len__(self) -> int:
        return len(self._regions)

    def at(self, address: int) -> Region | None:
        """The region that an address lies in or behind."""
        position = bisect_right(self._regions, address, key=lambda region: region.base)
        return self._regions[position - 1] if position else None

    def add(self, region: Region) -> bool:
        """Add one whose address is beyond all others; false if there is no room in the table."""
        if len(self._regions) >= self.table.room:
            return False
        self._regions.append(region)
        self._list(len(self._regions) - 1)
        return True

    def remove(self, base: int) -> None:
        """Take out the one at an address."""
        position = bisect_left(self._regions, base, key=lambda region: region.base)
        del self._regions[position]
        at, stride = self.table.address + position * self.table.stride, self.table.stride
        ctypes.memmove(at, at + stride, (len(self._regions) - position) * stride)

    def _list(self, index: int) -> None:
        region = self._regions[index]
        assert region.base % 256 == 0  # so a distance from it is aligned as the address is
        self.table.set(index, base=region.base, size=region.size, data=region.data, writable=int(region.writable))
        if region.base in self._kept:
            kept = ctypes.addressof(self._kept[region.base])
            self.table.set(index, kept=kept, marks=kept + marks_offset(region.size))


def workspace() -> Region:
    """The memory where the blocks of a cooperative launch meet: its size, then a counter (`cooperative_groups.h`)."""
    memory = ctypes.create_string_buffer(struct.pack("<II", 8, 0), 8)
    return Region(WORKSPACE, 8, ctypes.addressof(memory), "the grid's own memory", owner=memory)


def globals_of(module: ir.Module, variables: layout.Variables) -> list[Region]:
    """The memory of the module's variables, which keep their values from launch to launch."""
    regions = []
    for address, variable in variables.allocated:
        memory = memory_of(module, variables, variable)
        size = layout.size_of_variable(variable)
        writable = not variable.state_space.startswith("const")
        regions.append(Region(address, size, ctypes.addressof(memory), f"`{variable.name}`", writable, memory))
    return regions


def memory_of(module: ir.Module, variables: layout.Variables, variable: ir.Variable) -> ctypes.Array[ctypes.c_char]:
    """The memory of one variable, which lives as long as the module."""
    # Not by name: functions may have variables of one name.
    found: ctypes.Array[ctypes.c_char] | None = module.memory.get(id(variable))
    if found is None:
        if variable.initialiser is None and variable.name not in module.given:
            found = _zeros(layout.size_of_variable(variable))
        else:
            data = beginning(module, variables, variable)
            found = ctypes.create_string_buffer(data, max(len(data), 1))
        module.memory[id(variable)] = found
    return found


def _zeros(size: int) -> ctypes.Array[ctypes.c_char]:
    """Memory that takes none of the machine's before it is written."""
    return (ctypes.c_char * max(size, 1)).from_buffer(mmap.mmap(-1, max(size, 1)))


def beginning(module: ir.Module, variables: layout.Variables, variable: ir.Variable) -> bytes:
    """What a variable holds before the first launch: what it was set to, or what the PTX says."""
    if variable.name in module.given and variables.by_name[variable.name] is variable:
        return module.given[variable.name]
    numbers = layout.function_numbers(module)
    addresses = {name: state.FUNCTION_WINDOW + 16 * number for name, number in numbers.items()}
    return bytes(variables.initial_bytes(variable, addresses))


def snapshot(module: ir.Module) -> Snapshot:
    """What the kernels of a module find when they begin, beside arguments."""
    heap = heap_of(module)
    allocated = [(region, ctypes.string_at(region.data, region.size)) for region in heap.regions.values()]
    return Snapshot({variable: memory.raw for variable, memory in module.memory.items()}, allocated, heap.next)


def restore(module: ir.Module, taken: Snapshot) -> None:
    """Have the kernels of a module find that again."""
    module.memory = {
        variable: ctypes.create_string_buffer(data, len(data)) for variable, data in taken.variables.items()
    }
    module.heap = heap = Heap()
    for region, data in taken.allocated:
        ctypes.memmove(region.data, data, region.size)
        heap.add(region)
    heap.next = taken.next
