"""What kernels allocate by `malloc`: it lives until a kernel frees it, or as long as the module."""

from __future__ import annotations

import ctypes

from ptxlab.device.arguments import HEAP
from ptxlab.device.regions import Region
from ptxlab.isa.undefined import undefined_bytes

LIMIT = 1 << 30  # bytes that the kernels of a module may have at once
_GAP = 4096  # so that a step too far is found out
_NAME = "memory of `malloc`"


class Heap:
    """Regions by their addresses; no address is given twice, so that an access after `free` is always found."""

    def __init__(self) -> None:
        self.regions: dict[int, Region] = {}
        self.next = HEAP
        self.size = 0

    def allocate(self, size: int) -> Region | None:
        """New memory; None where the heap is full."""
        if size == 0 or self.size + size > LIMIT:
            return None
        memory = (ctypes.c_char * size).from_buffer(bytearray(undefined_bytes(0, size)))
        region = Region(self.next, size, ctypes.addressof(memory), _NAME, True, memory)
        self.add(region)
        return region

    def add(self, region: Region) -> None:
        """Add memory after all that was there."""
        self.regions[region.base] = region
        self.next = -(-(region.base + region.size + _GAP) // 256) * 256
        self.size += region.size

    def free(self, base: int) -> None:
        """Give memory back."""
        self.size -= self.regions.pop(base).size
