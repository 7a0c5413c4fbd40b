"""Several products of NVFP4 matrices in one launch: blocks go through the tiles of all groups, one after the other.

The tensor maps of all groups are made by the host and passed in one structure: a block only computes which is its own.
`changed_maps.py` changes them in the kernel instead.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from ptxlab.author import Kernel, Pointer, kernel, pointer, ptx, tensor_maps, u32
from ptxlab.kernels.nvfp4_gemm.kernel import TOGETHER, Maps, Shape, Tile, compute
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS
from ptxlab.kernels.tcgen05_gemm.parts import ROWS

MAPS = 128 * 5  # bytes of the maps of a group


class Group(NamedTuple):
    """A group: its number, and the extents of its product."""

    number: u32
    m: Any
    n: Any
    k: Any


class GroupedTiles:
    """The tiles of all groups that a block computes; `sizes` has m, n and k of each."""

    copiers = 1

    def __init__(self, shape: Shape, groups: int, maps: Pointer, sizes: Pointer) -> None:
        self.shape, self.groups, self.maps, self.sizes = shape, groups, maps, sizes

    def each(self) -> Iterator[Tile]:
        """Each of them, on the GPU."""
        maps = self.maps.generic.address
        return self.by_group(lambda group: Maps(maps + ptx.mul.wide.u32(group.number, MAPS), self.shape.products))

    to_copy = to_write = each

    def by_group(self, maps: Callable[[Group], Any], start: Callable[[Group], None] | None = None) -> Iterator[Tile]:
        """Each tile, with the maps of its group; `start` is executed before the first tile of a group."""
        cluster, number = self.shape.cluster, u32()
        ptx.mov.u32(ptx.ctaid.x // cluster if cluster > 1 else ptx.ctaid.x, out=number)
        for index in ptx.range(0, self.groups):
            group = Group(index, *(self.sizes[index * 3 + part] for part in range(3)))
            order = TileOrder(ROWS, cluster * self.shape.columns, TOGETHER, group.m, group.n, cluster)
            if start is not None:
                with ptx.when(number < order.count):
                    start(group)
            found = maps(group)
            with ptx.loop():  # where the tiles of a group end, those of the next follow
                ptx.leave_when(number >= order.count)
                row, column = order.origin(number)
                if cluster > 1:
                    column = column + ptx.cluster_ctarank * self.shape.columns
                yield Tile(found, row, column, group.k)
                number += order.step
            number -= order.count


@cache
def specialize(shape: Shape, groups: int) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of all groups, in one structure, and their sizes."""
    given: Any = tensor_maps(5 * groups)
    cluster: dict[str, Any] = {"reqnctapercluster": shape.cluster} if shape.cluster > 1 else {}

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1, **cluster)
    def nvfp4_group_gemm(maps: given, sizes: pointer[u32]) -> None:
        compute(shape, None, GroupedTiles(shape, groups, maps, sizes))

    return nvfp4_group_gemm
