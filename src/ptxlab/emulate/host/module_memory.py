"""A module on the emulator: its memory, which outlives launches."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import field

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.digest import digest_of
from ptxlab.device.host_variables import HostVariables
from ptxlab.device.limits import check_variable
from ptxlab.device.regions import Region
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.host.heap import Heap
from ptxlab.values import dataclass

Bytes = ctypes.Array[ctypes.c_char]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Variables, and what was allocated, with what they hold."""

    variables: dict[layout.VariableKey, bytes]
    allocated: list[tuple[Region, bytes]]
    next: int


@dataclass
class ModuleMemory:
    """The variables of a module, once a kernel has run or the host has set them, and what kernels have allocated."""

    host: HostVariables = field(default_factory=HostVariables)
    variables: dict[layout.VariableKey, Bytes] = field(default_factory=dict)
    heap: Heap = field(default_factory=Heap)

    def regions(self, variables: layout.Variables) -> list[Region]:
        """The memory of a kernel's variables, which keep their values from launch to launch."""
        regions = []
        for address, variable in variables.allocated:
            memory = self.of(variables, variable)
            size = layout.size_of_variable(variable)
            writable = not variable.state_space.startswith("const")
            regions.append(Region(address, size, ctypes.addressof(memory), f"`{variable.title}`", writable, memory))
        return regions

    def of(self, variables: layout.Variables, variable: ir.Variable) -> Bytes:
        """The memory of one variable."""
        key = variables.keys[id(variable)]
        found = self.variables.get(key)
        if found is None:
            check_variable(variables.module, variable)
            if variable.initializer is None and variable.name not in self.host.given:
                found = _zeros(layout.size_of_variable(variable))
            else:
                data = self.initial_value(variables, variable)
                found = ctypes.create_string_buffer(data, max(len(data), 1))
            self.variables[key] = found
        return found

    def initial_value(self, variables: layout.Variables, variable: ir.Variable) -> bytes:
        """What a variable holds before the first launch: what it was set to, or what the PTX says."""
        if variables.by_name.get(variable.name) is variable:
            data = self.host.given_to(variables.module, variable)
            if data is not None:
                return data
        numbers = layout.function_numbers(variables.module)
        addresses = {name: address_spaces.FUNCTION_WINDOW + 16 * number for name, number in numbers.items()}
        return bytes(variables.initial_bytes(variable, addresses))

    def snapshot(self) -> Snapshot:
        """What kernels find when they start, beside arguments."""
        allocated = [(region, ctypes.string_at(region.data, region.size)) for region in self.heap.regions.values()]
        return Snapshot({key: memory.raw for key, memory in self.variables.items()}, allocated, self.heap.next)

    def restore(self, taken: Snapshot) -> None:
        """Have kernels find that again."""
        self.variables = {key: ctypes.create_string_buffer(data, len(data)) for key, data in taken.variables.items()}
        self.heap = Heap()
        for region, data in taken.allocated:
            ctypes.memmove(region.data, data, region.size)
            self.heap.add(region)
        self.heap.next = taken.next


def _zeros(size: int) -> Bytes:
    """Memory that takes none of the machine's before it is written."""
    return (ctypes.c_char * max(size, 1)).from_buffer(mmap.mmap(-1, max(size, 1)))


@dataclass(frozen=True)
class EmulatedModule:
    """A program, the digest of its text, and its memory: what a launch on the emulator starts from."""

    module: ir.Module
    digest: str
    memory: ModuleMemory

    @classmethod
    def load(cls, module: ir.Module) -> EmulatedModule:
        """A module with memory of its own."""
        return cls(module, digest_of(module), ModuleMemory())
