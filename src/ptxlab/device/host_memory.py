"""Memory of the host at addresses that stay from launch to launch, so that addresses may be in memory themselves.

An array is an argument by its address alone; with a `HostPointer`, all memory of the same `HostMemory` can be reached,
as on a GPU: arrays whose addresses the host wrote into another array, and what surrounds a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ptxlab.device.multicast import PlacedMulticast
from ptxlab.device.regions import Region
from ptxlab.values import dataclass

if TYPE_CHECKING:
    pass

START = 0x7400_0000_0000  # above the arrays of a launch, below what a kernel allocates
_GAP = 65536  # between arrays, so that a step too far is found out
_ALIGNMENT = 256


class HostMemory:
    """Arrays of bytes, each at an address of its own."""

    def __init__(self) -> None:
        self.regions: dict[int, Region] = {}  # by where they are in truth
        self.multicasts: list[PlacedMulticast] = []
        self._next = START

    def add(self, data: NDArray[Any], name: str, key: int | None = None) -> Region:
        """The region of an array that is not a part of another; `key` finds it again, if its data has no address."""
        address, read_only = data.__array_interface__["data"]
        key = address if key is None else key
        known = self.regions.get(key)
        if known is not None and known.size == data.nbytes:
            return known
        region = Region(self._next, data.nbytes, address, name, not read_only, data)
        self.regions[key] = region
        self._next = -(-(region.base + region.size + _GAP) // _ALIGNMENT) * _ALIGNMENT
        return region

    def forget(self, key: int) -> None:
        """Take a region out."""
        self.regions.pop(key, None)

    def freed_at(self, address: int) -> Region | None:
        """What was at an address and is freed, where that is known."""
        return None

    def copy(self) -> HostMemory:
        """The same memory, at the same addresses, with bytes of its own."""
        made = HostMemory()
        made._next = self._next
        for key, region in self.regions.items():
            data = region.owner.copy()
            made.regions[key] = replace(region, data=data.__array_interface__["data"][0], owner=data, writable=True)
        return made


@dataclass(frozen=True)
class RawParameter:
    """An argument: the bytes of a parameter, whose addresses are in memory of the host."""

    memory: HostMemory
    data: bytes

    def regions(self) -> list[Region]:
        """All memory that can be reached."""
        return list(self.memory.regions.values())


class RawArguments(list[RawParameter]):
    """All arguments of a launch as the bytes of its parameters; `objects` are textures and surfaces by their numbers.

    The kernel can reach the memory even where it has no parameters: variables may hold addresses of it.
    """

    def __init__(self, memory: HostMemory, data: Iterable[bytes], objects: Mapping[int, object]) -> None:
        super().__init__(RawParameter(memory, one) for one in data)
        self.memory, self.objects = memory, objects


@dataclass(frozen=True)
class HostPointer:
    """An argument: an address in memory of the host; `name` is what messages call what is there."""

    memory: HostMemory
    address: int
    name: str = ""

    def regions(self) -> list[Region]:
        """All memory that can be reached, this argument's by its name."""
        found = []
        for region in self.memory.regions.values():
            is_here = region.base <= self.address < region.base + max(region.size, 1)
            found.append(replace(region, name=self.name) if is_here and self.name else region)
        return found
