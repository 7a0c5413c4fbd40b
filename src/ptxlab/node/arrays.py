"""Arrays that belong to a GPU of a node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing
from numpy.typing import NDArray

from ptxlab.device.multicast import MULTICAST, Multicast, PlacedMulticast
from ptxlab.device.multicast import STEP as MULTICAST_STEP
from ptxlab.device.regions import Region
from ptxlab.device.structures import map_leaves
from ptxlab.device.tensor_maps import TensorMap

if TYPE_CHECKING:
    from ptxlab.node.machine import Node

Data = NDArray[Any]

START = 0x7400_0000_0000  # above the arrays of a launch, below what a kernel allocates
STEP = 1 << 38  # from the memory of one GPU to that of the next
_GAP = 65536  # between arrays, so that a step too far is found out
_ALIGNMENT = 256
_OF_LAUNCHES = 64  # multicast addresses that the arguments of a launch may have


class Array:
    """Memory of one GPU, as an array: an argument of launches on any GPU that may access it.

    Reading it waits for all that was launched on the node; `node.synchronize` says more of that.
    """

    def __init__(self, node: Node, region: Region, data: Data) -> None:
        self.node, self.region, self.data = node, region, data

    @property
    def rank(self) -> int:
        """The number of the GPU that it belongs to."""
        assert self.region.owner_device is not None
        return self.region.owner_device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def dtype(self) -> Any:
        """As NumPy has it."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    @property
    def address(self) -> int:
        """Where its first element is, for every GPU that may access it."""
        return self.region.base + int(self.data.__array_interface__["data"][0]) - self.region.data

    def numpy(self) -> Data:
        """A copy of what it holds, once all that was launched is complete."""
        self.node.synchronize()
        self.node.refuse_freed(self)
        return self.data.copy()

    def set(self, values: object) -> None:
        """Write values to it, once all that was launched is complete."""
        self.node.synchronize()
        self.node.refuse_freed(self)
        self.data[...] = values

    def free(self) -> None:
        """Give its memory back, once all that was launched is complete; an access after that is a finding."""
        self.node.synchronize()
        self.node.free(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Data:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __getitem__(self, index: Any) -> Array:
        """A part of it, in the same memory."""
        part = self.data[index]
        if not isinstance(part, numpy.ndarray):
            raise TypeError("a part of an array is an array: use a slice, or `numpy()` for a value")
        return Array(self.node, self.region, part)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<array of {self.dtype} {self.shape} on rank {self.rank}>"


class Memory:
    """The arrays of all GPUs of a node, and those that were freed."""

    def __init__(self, gpus: int) -> None:
        self.regions: dict[int, Region] = {}  # by address
        self.freed: list[Region] = []
        self._next = [START + rank * STEP for rank in range(gpus)]
        self._counts = [0] * gpus
        self.multicasts: list[PlacedMulticast] = []

    def allocate(self, rank: int, data: Data, name: str | None) -> Region:
        """A region of a GPU for an array, by a name or a number."""
        called = f"`{name}`" if name is not None else f"array {self._counts[rank]}"
        self._counts[rank] += 1
        base = self._next[rank]
        address = int(data.__array_interface__["data"][0])
        region = Region(base, data.nbytes, address, f"{called} of rank {rank}", owner=data, owner_device=rank)
        self._next[rank] = -(-(base + max(data.nbytes, 1) + _GAP) // _ALIGNMENT) * _ALIGNMENT
        if self._next[rank] > START + (rank + 1) * STEP:
            raise MemoryError(f"rank {rank} has {STEP >> 30} GB of memory, all of which is allocated")
        self.regions[base] = region
        return region

    def line_up(self) -> None:
        """Have the next array of each GPU be as far from the start of its memory as those of the others."""
        farthest = max(next - rank * STEP for rank, next in enumerate(self._next))
        self._next = [farthest + rank * STEP for rank in range(len(self._next))]

    def multicast(self, addresses: tuple[int, ...], size: int) -> int:
        """An address for memory of several GPUs together, which `multimem` accesses."""
        for known in self.multicasts:
            if (known.replicas, known.size) == (addresses, size):
                return known.base
        base = MULTICAST + MULTICAST_STEP * (_OF_LAUNCHES + len(self.multicasts))
        self.multicasts.append(PlacedMulticast(base, size, addresses, "symmetric memory"))
        return base

    def free(self, region: Region) -> None:
        """Take a region out."""
        region.is_freed = True
        self.freed.append(self.regions.pop(region.base))

    def name(self, region: Region, name: str) -> None:
        """Give a region that has only a number the name of the parameter that it was passed for."""
        if not region.name.startswith("`"):
            region.name = f"`{name}` of rank {region.owner_device}"


def in_host_memory(args: object) -> Any:
    """Arguments with the memory of arrays in place of these."""
    return map_leaves(_memory_of, args)


def _memory_of(leaf: object) -> Any:
    if isinstance(leaf, Array):
        return leaf.data
    if isinstance(leaf, TensorMap) and isinstance(leaf.array, Array):
        return replace(leaf, array=leaf.array.data)
    if isinstance(leaf, Multicast):
        return Multicast([_memory_of(array) for array in leaf.arrays])
    return leaf
