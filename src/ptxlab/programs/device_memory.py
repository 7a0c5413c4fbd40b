"""Memory of the GPUs as one process of a program sees it: what its requests allocate, map, share and free."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from ptxlab.device.host_memory import HostMemory
from ptxlab.device.multicast import PlacedMulticast
from ptxlab.device.regions import Region
from ptxlab.programs.libraries import BadCallError
from ptxlab.programs.log import AllocationRecord
from ptxlab.programs.messages import Frames, MessageReader

VIEW, VIEW_SIZE = 0x7400_0000_0000, 4 << 40
_MOST_WATCHED = 64 << 20  # bytes of which is asked what kernels read
PART = VIEW_SIZE // 16  # of a PE; its upper half is symmetric
KINDS = ("device", "pinned", "managed", "registered", "variable", "array", "pooled", "created", "mapped", "symmetric")
_OF_HOST = ("pinned", "managed")  # that the host may access, too
_OF_ONE_GPU = ("device", "variable", "pooled", "created", "symmetric")


class DeviceMemory(HostMemory):
    """Memory by its addresses, in a file that the process and the emulator have mapped, and which GPU may access it."""

    def __init__(self, file: int, gpus: int, records: list[AllocationRecord], one_gpu: str = "GPU") -> None:
        """Allocations are added to `records`; `one_gpu` is what messages call a GPU."""
        super().__init__()
        self.file, self.gpus, self.records, self.one_gpu = file, gpus, records, one_gpu
        self.view = mmap.mmap(file, VIEW_SIZE, mmap.MAP_SHARED)
        self.is_shared = False  # with another process
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self.view))
        self.numbers: dict[int, int] = {}  # of allocations, by their addresses
        self.arrays: dict[int, int] = {}  # sizes by addresses
        self.peers: list[set[int]] = [set() for _ in range(gpus)]
        self.pool_peers: list[set[int]] = [set() for _ in range(gpus)]  # whose pools each GPU may access
        self.pooled: set[int] = set()  # addresses of memory of pools
        self.symmetric: set[int] = set()  # addresses of memory that all PEs may access
        self.mapped: dict[int, Region] = {}  # by address, whether kernels may access it or not
        self.accessible: dict[int, set[int]] = {}  # of that: the GPUs that may

    def close(self) -> None:
        """Give back the address space, of which there is little."""
        os.close(self.file)
        if not self.is_shared:
            self.view.close()

    def place(self, address: int) -> int:
        """Where the emulator has an address of the file."""
        return self._start + address - VIEW

    def bytes_at(self, address: int, size: int) -> NDArray[Any]:
        """Device memory as an array of bytes."""
        start = self.place(address)
        for region in self.mapped.values():
            if region.base <= address < region.base + region.size:
                start = region.data + address - region.base
        return _bytes(start, size)

    def bytes_of_one(self, address: int, size: int) -> NDArray[Any]:
        """Memory that a library is given, if it is in one allocation."""
        for region in self.regions.values():
            if region.base <= address < region.base + max(region.size, 1):
                if address + size > region.base + region.size:
                    has = region.base + region.size - address
                    raise BadCallError(f"{size:,} bytes are accessed where {region.name} has {has:,}")
                return _bytes(region.data + address - region.base, size)
        raise BadCallError(f"{address:#x} is not an address of device memory")

    def held(self, variables: Iterable[ctypes.Array[ctypes.c_char]]) -> list[NDArray[Any]]:
        """All memory of the device that the program has allocated, and variables of a module."""
        sizes = {base: region.size for base, region in self.regions.items() if base in self.numbers}
        held = [self.bytes_at(base, size) for base, size in (*sizes.items(), *self.arrays.items())]
        return [*held, *(numpy.frombuffer(memoryview(one), numpy.uint8) for one in variables if len(one))]

    def watched(self) -> list[Region]:
        """Memory that the host may write while kernels read it, if that is not too much."""
        found = [region for region in self.regions.values() if region.is_of_host]
        return found if sum(region.size for region in found) <= _MOST_WATCHED else []

    def array_regions(self) -> list[Region]:
        """Memory of CUDA arrays, which kernels reach by textures only, and copies by its address."""
        return [Region(base, size, self.place(base), "an array") for base, size in self.arrays.items()]

    def freed_at(self, address: int) -> Region | None:
        """The allocation that was at an address last, if it is freed."""
        for number, one in reversed([*enumerate(self.records, 1)]):
            if one.base <= address < one.base + max(one.size, 1):
                freed = Region(one.base, one.size, 0, f"allocation {number}", is_freed=True)
                return freed if one.freed else None
        return None

    def number_at(self, address: int) -> int | None:
        """The number of the allocation that contains an address, or ends right before it."""
        below = [base for base in self.numbers if base <= address]
        return self.numbers[max(below)] if address and below else None

    def may_access(self, device: int, region: Region) -> bool:
        """Whether a GPU may access memory of one."""
        owner = region.owner_device
        if region.base in self.mapped:  # memory of a multicast object is reached by that without access to it
            replicas = [one for placed in self.multicasts for one in placed.replicas]
            is_replica = any(region.base <= one < region.base + region.size for one in replicas)
            return is_replica or device in self.accessible.get(region.base, ())
        is_pooled = region.base in self.pooled and owner in self.pool_peers[device]
        return owner == device or owner in self.peers[device] or is_pooled or region.base in self.symmetric

    def is_symmetric(self, address: int) -> bool:
        """Whether an address is of memory that all PEs may access."""
        return bool(address) and self.in_part(address) >= PART // 2

    @staticmethod
    def part_of(pe: int) -> int:
        """Where the memory of a PE starts."""
        return VIEW + pe * PART

    @staticmethod
    def in_part(address: int) -> int:
        """Where an address is in the memory of its PE."""
        return (address - VIEW) % PART

    # Requests.

    def allocate(self, given: MessageReader) -> AllocationRecord:
        """Note an allocation."""
        base, size, kind, device = given.number(), given.number(), KINDS[given.number()], given.number()
        frames = given.frames()
        if base in self.numbers:  # memory of a graph, which runs again
            number = self.numbers[base]
            self.records[number - 1].freed = ()
        else:
            number = self._record(base, size, kind, frames)
        name = f"allocation {number}" if kind != "variable" else f"the variable of allocation {number}"
        if kind == "array":
            self.arrays[base] = size
        else:
            owner = device if self.gpus > 1 and kind in _OF_ONE_GPU else None
            name += f" of {self.one_gpu} {device}" * (owner is not None)
            if kind in ("pooled", "symmetric"):
                (self.pooled if kind == "pooled" else self.symmetric).add(base)
            self.regions[base] = Region(
                base, size, self.place(base), name, owner_device=owner, is_of_host=kind in _OF_HOST
            )
        return self.records[number - 1]

    def _record(self, base: int, size: int, kind: str, frames: Frames) -> int:
        self.records.append(AllocationRecord(base, size, kind, frames))
        self.numbers[base] = len(self.records)
        return len(self.records)

    def free(self, given: MessageReader) -> None:
        base = given.number()
        self.regions.pop(base, None)
        self.arrays.pop(base, None)
        self.records[self.numbers[base] - 1].freed = given.frames()

    def alias(self, given: MessageReader) -> None:
        """Memory of the host's own that was registered: kernels reach it by the host's address."""
        address, base, size = given.number(), given.number(), given.number()
        self.regions[address] = Region(address, size, self.place(base), "registered memory of the host")

    def set_peer(self, given: MessageReader) -> None:
        device, peer, is_enabled = given.number(), given.number(), given.number()
        (self.peers[device].add if is_enabled else self.peers[device].discard)(peer)

    def set_pool(self, given: MessageReader) -> None:
        device, owner, is_enabled = given.number(), given.number(), given.number()
        (self.pool_peers[device].add if is_enabled else self.pool_peers[device].discard)(owner)

    # Requests of memory that is mapped in steps: a kernel reaches it once it may access it.

    def map(self, given: MessageReader) -> None:
        base, size, home, device = (given.number() for _ in range(4))
        number = self._record(base, size, "mapped", given.frames())
        name = f"allocation {number}" + f" of GPU {device}" * (self.gpus > 1)
        owner = device if self.gpus > 1 else None
        region = Region(base, size, self.place(home), name, owner_device=owner, is_mapped=True)
        self.mapped[base] = region
        if self.gpus > 1:  # otherwise all that is there is accessible
            self.regions[base] = region

    def unmap(self, given: MessageReader) -> None:
        base = given.number()
        self.mapped.pop(base)
        self.regions.pop(base, None)
        self.accessible.pop(base, None)
        self.records[self.numbers[base] - 1].freed = given.frames()

    def set_access(self, given: MessageReader) -> None:
        base, device, is_enabled = given.number(), given.number(), given.number()
        devices = self.accessible.setdefault(base, set())
        (devices.add if is_enabled else devices.discard)(device)
        self.regions[base] = self.mapped[base]

    def set_multicast(self, given: MessageReader) -> None:
        """What a multicast address refers to: memory of each device, at the address that it is mapped to, if it is."""
        base, size, count = given.number(), given.number(), given.number()
        homes = [given.number() for _ in range(count)]
        others = [one for one in self.multicasts if one.base != base]
        replicas = tuple(self._mapped_at(home) for home in homes)
        made = [PlacedMulticast(base, size, replicas, "a multicast object")] if homes else []
        self.multicasts = [*others, *made]

    def _mapped_at(self, home: int) -> int:
        at = self.place(home)
        for region in self.mapped.values():
            if region.data <= at < region.data + region.size:
                return region.base + at - region.data
        return home

    def open(self, owner: DeviceMemory, home: int, base: int, size: int, frames: Frames) -> str:
        """Have memory of another process at an address of this one; the file that it is in."""
        self._record(base, size, "mapped", frames)
        self.mapped[base] = self.regions[base] = replace(owner.regions[home], base=base)
        self.accessible[base] = set(range(self.gpus))  # as `cudaIpcMemLazyEnablePeerAccess` has it
        owner.is_shared = True
        return f"/proc/{os.getpid()}/fd/{owner.file}"


def _bytes(start: int, size: int) -> NDArray[Any]:
    """Memory of this process as an array."""
    memory = (ctypes.c_uint8 * size).from_address(start)
    return numpy.frombuffer(memoryview(memory), numpy.uint8) if size else numpy.zeros(0, numpy.uint8)
