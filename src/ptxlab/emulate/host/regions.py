"""The memory that a kernel may touch: arrays, variables of the module, and what it allocates itself."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping

from ptxlab.device.regions import Region
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.host.needs import marks_offset
from ptxlab.native.checking import share_range, unshare_range

WORKSPACE = 0x6F00_0000_0000  # an address below all arrays; see `arguments`


class Regions:
    """Regions in the order of their addresses, and `table`, the same for machine code."""

    def __init__(
        self, regions: Iterable[Region], spare: int, kept: Mapping[int, ctypes.Array[ctypes.c_char]] | None
    ) -> None:
        """`spare` more can be added; `kept` has space for what they hold before a trial, by address."""
        self._regions = sorted(regions, key=lambda region: region.base)
        self._kept = kept or {}
        self.table = StructArray(address_spaces.Allocation, len(self._regions) + spare)
        for index in range(len(self._regions)):
            self._list(index)

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    def at(self, address: int) -> Region | None:
        """The region that contains an address, or the last one before it."""
        position = bisect_right(self._regions, address, key=lambda region: region.base)
        return self._regions[position - 1] if position else None

    def add(self, region: Region) -> bool:
        """Add one whose address is beyond all others; false if the table is full."""
        if len(self._regions) >= self.table.capacity:
            return False
        self._regions.append(region)
        self._list(len(self._regions) - 1)
        return True

    def remove(self, base: int) -> None:
        """Take out the one at an address."""
        position = bisect_left(self._regions, base, key=lambda region: region.base)
        removed = self._regions.pop(position)
        unshare_range(removed.data, removed.size)
        at, stride = self.table.address + position * self.table.stride, self.table.stride
        ctypes.memmove(at, at + stride, (len(self._regions) - position) * stride)

    def share(self) -> None:
        """Let native code, where it is checked, access them: another launch with the same memory has ended."""
        for region in self._regions:
            share_range(region.data, region.size)

    def unshare(self) -> None:
        """Let native code, where it is checked, access them no longer."""
        for region in self._regions:
            unshare_range(region.data, region.size)

    def _list(self, index: int) -> None:
        region = self._regions[index]
        share_range(region.data, region.size)
        assert region.base % 256 == 0  # so a distance from it is aligned as the address is
        self.table.set(index, base=region.base, size=region.size, data=region.data, writable=int(region.writable))
        if region.base in self._kept:
            kept = ctypes.addressof(self._kept[region.base])
            self.table.set(index, kept=kept, marks=kept + marks_offset(region.size))


def workspace() -> Region:
    """What blocks of a cooperative launch synchronize through: its size, then a counter (`cooperative_groups.h`)."""
    memory = ctypes.create_string_buffer(struct.pack("<II", 8, 0), 8)
    return Region(WORKSPACE, 8, ctypes.addressof(memory), "the grid's own memory", owner=memory)
