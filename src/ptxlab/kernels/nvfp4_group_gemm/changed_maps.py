"""The group product with tensor maps that the kernel changes itself, by `tensormap.replace`, where a group starts.

The host makes one set of maps. Each block has a copy of it in shared memory, in which one thread replaces addresses and
sizes. `tensormap.cp_fenceproxy` copies a changed map to global memory, where copies read it, and releases it; the
acquire after that makes this block's copies see it. The warp that copies changes the maps of A and B, the first warp
of the epilogue that of D.

A map may be overwritten when no copy reads it any more. The epilogue waits for its stores. The warp that copies does
not wait: it has one set of maps more than there are stages. Before the same set comes again, every stage was filled
since, and a stage is filled only after the copy before was used.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, Scalar, b8, kernel, pointer, ptx, struct, tensor_maps, u32, u64
from ptxlab.kernels.nvfp4_gemm.kernel import FACTORS, Maps, Shape, Tile, compute
from ptxlab.kernels.nvfp4_group_gemm.kernel import Group, GroupedTiles
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, WRITERS
from ptxlab.measure.block_scaled import BLOCK, NVFP4

MAP = 128  # bytes
PARTS = 5  # pointers of a group
REPLACE = ptx.tensormap.replace.tile
RELEASE = ptx.tensormap.cp_fenceproxy["global"]["shared::cta"]["tensormap::generic"].release.gpu.sync.aligned
ACQUIRE = ptx.fence.proxy["tensormap::generic"].acquire.gpu


def slots(shape: Shape) -> int:
    """The sets of maps of A and B that a block has."""
    return shape.stages + 1


def workspace(shape: Shape) -> int:
    """Bytes of global memory in which a block has its maps."""
    return MAP * (4 * slots(shape) + 1)


class ChangedMaps:
    """Maps of one warp: `count` copies of those at `templates`, in shared memory."""

    def __init__(self, templates: Scalar, count: int) -> None:
        self.held = ptx.shared(b8, count, MAP, align=128)
        self.templates, self.count = templates, count

    def copy_templates(self) -> None:
        """Copy the maps that the host made: each lane four bytes of each."""
        for number in range(self.count):
            word = ptx.ld.b32(self.templates + number * MAP + ptx.mul.wide.u32(ptx.laneid, 4))
            ptx.st.shared.b32(self.held.at(number, ptx.laneid * 4), word)

    def replace(
        self, number: int, address: u64, sizes: dict[int, int] | dict[int, object], strides: dict[int, int]
    ) -> None:
        """Change one of them: where its tensor is, the sizes and, in bytes, the strides of all dimensions but one."""
        here = self.held.at(number, 0)
        REPLACE.global_address["shared::cta"].b1024.b64(here, address)
        for ordinal, size in sizes.items():
            REPLACE.global_dim["shared::cta"].b1024.b32(here, ordinal, size)
        for ordinal, stride in strides.items():
            REPLACE.global_stride["shared::cta"].b1024.b64(here, ordinal, ptx.cvt.u64.u32(stride))

    def publish(self, address: Scalar) -> None:
        """Copy them to global memory and have this block's copies see them there, all lanes of the warp together."""
        ptx.bar.warp.sync(-1)  # the changes are those of one lane
        for number in range(self.count):
            RELEASE(address + number * MAP, self.held.at(number, 0), MAP)
        for number in range(self.count):
            ACQUIRE(address + number * MAP, MAP)


class TilesOfChangedMaps(GroupedTiles):
    """The tiles of all groups, whose maps two warps of the block change."""

    copiers = 32

    def __init__(
        self, shape: Shape, groups: int, maps: Pointer, sizes: Pointer, pointers: Pointer, space: Pointer
    ) -> None:
        super().__init__(shape, groups, maps, sizes)
        self.pointers = pointers.generic.address
        self.space = space.address + ptx.mul.wide.u32(ptx.ctaid.x, workspace(shape))
        templates = maps.generic.address
        self.sources, self.target = ChangedMaps(templates, 4), ChangedMaps(templates + 4 * MAP, 1)

    def to_copy(self) -> Iterator[Tile]:
        """Each tile, with the maps of A and B; for all lanes of the warp that copies."""
        slot = u32(slots(self.shape) - 1)
        self.sources.copy_templates()

        def start(group: Group) -> None:
            ptx.add.u32(slot, 1, out=slot)
            ptx.mov.u32(0, out=slot, when=slot == slots(self.shape))
            ptx.bar.warp.sync(-1)  # all lanes have copied the maps that are changed now
            with ptx.when(ptx.tid.x == 0):
                self._replace_sources(group)
            self.sources.publish(self._set(slot))

        yield from self.by_group(lambda group: Maps(self._set(slot), 1), start)

    def to_write(self) -> Iterator[Tile]:
        """Each tile, with the map of D; for all threads of the epilogue."""
        first = ptx.tid.x == THREADS - WRITERS
        target = self.space + 4 * MAP * slots(self.shape)
        is_changer = ptx.tid.x >> 5 == (THREADS - WRITERS) >> 5
        with ptx.when(is_changer):
            self.target.copy_templates()

        def start(group: Group) -> None:
            with ptx.when(is_changer):
                ptx.cp.async_.bulk.wait_group(0, when=first)  # no store reads the map any more
                ptx.bar.warp.sync(-1)
                with ptx.when(first):
                    self.target.replace(0, self._pointer(group, 4), {0: group.n, 1: group.m}, {0: group.n * 2})
                self.target.publish(target)

        yield from self.by_group(lambda group: Maps(target - 4 * MAP, 1), start)

    def _set(self, slot: u32) -> Scalar:
        """Where a set of maps is in global memory."""
        return self.space + ptx.mul.wide.u32(slot, 4 * MAP)

    def _pointer(self, group: Group, part: int) -> u64:
        return ptx.ld.u64(self.pointers + ptx.mul.wide.u32(group.number, 8 * PARTS) + 8 * part)

    def _replace_sources(self, group: Group) -> None:
        """Have the maps in shared memory describe A and B of a group, and their factors."""
        bytes, blocks = group.k // 2, (group.k + (4 * NVFP4.group - 1)) // (4 * NVFP4.group)
        for number, rows in enumerate((group.m, group.n)):
            self.sources.replace(2 * number, self._pointer(group, 2 * number), {0: bytes, 1: rows}, {0: bytes})
            down = (rows + (BLOCK - 1)) // BLOCK
            scale_factors = self._pointer(group, 2 * number + 1)
            self.sources.replace(2 * number + 1, scale_factors, {2: blocks, 3: down}, {2: blocks * FACTORS})


@cache
def specialize(shape: Shape, groups: int) -> Kernel:
    """Build the kernel; its arguments are one set of maps, pointers and sizes of all groups, and space for maps."""
    template: Any = tensor_maps(PARTS)
    addresses: Any = struct[8 * PARTS * groups, 8]  # type: ignore[misc]

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1)
    def nvfp4_group_gemm_changed(maps: template, pointers: addresses, sizes: pointer[u32], space: pointer[b8]) -> None:
        compute(shape, None, TilesOfChangedMaps(shape, groups, maps, sizes, pointers, space))

    return nvfp4_group_gemm_changed
