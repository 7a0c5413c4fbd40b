"""What the steps share: the shape of a tile, the copies and MMAs of a K tile, and two ways out of registers.

A K tile is 64 elements deep: 128 bytes, the width of the swizzle. A warpgroup multiplies 64 rows by one `wgmma`, and
has one set of accumulators for each 64 rows that it computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.author import Pointer, b16, b32, f16, f32, ptx, s32, u32

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile

GROUP = 128  # threads of a warpgroup
STRIPE = 64  # rows that one wgmma multiplies
DEPTH = 64  # elements of a row of a K tile
STEP = 16  # elements that one wgmma multiplies along k
BOX = 64  # columns of D that one copy stores: 128 bytes, too
COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
COPY_BACK = ptx.cp.async_.bulk.tensor["2d"]["global"]["shared::cta"].bulk_group


@dataclass(frozen=True)
class Shape:
    """Rows and columns of a tile of D, the stages of the ring, and the warpgroups that compute a tile together."""

    rows: int = 128
    columns: int = 128
    stages: int = 4
    groups: int = 1

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: the K tiles of A and B."""
        return 2 * DEPTH * (self.rows + self.columns)

    @property
    def tall(self) -> int:
        """Sets of accumulators in a warpgroup."""
        return self.rows // (STRIPE * self.groups)

    @property
    def small(self) -> Shape:
        """The smallest tile that the same kernel computes."""
        return Shape(STRIPE * self.groups, BOX, min(self.stages, 2), self.groups)

    def tiles(self, memory: Pointer) -> tuple[Tile, Tile, Pointer]:
        """The K tiles of A and B in all stages, and the memory after them."""
        a = ptx.tile(b16, self.rows, DEPTH, swizzle="128B", copies=self.stages, at=memory)
        memory = memory + self.stages * self.rows * DEPTH
        b = ptx.tile(b16, self.columns, DEPTH, swizzle="128B", copies=self.stages, at=memory)
        return a, b, memory + self.stages * self.columns * DEPTH

    def accumulators(self) -> list[list[f32]]:
        """Registers for them, zero."""
        return [[f32(0.0) for _ in range(self.columns // 2)] for _ in range(self.tall)]


def copy(
    shape: Shape,
    maps: tuple[Pointer, Pointer],
    tiles: list[Tile],
    stage: int | u32,
    first: tuple[u32, u32],
    start: u32,
    barrier: Pointer,
) -> None:
    """One thread copies a K tile of A and one of B: it announces their bytes, and the copies bring them."""
    ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, shape.stage_bytes)
    for map, tile, row in zip(maps, tiles, first, strict=True):
        COPY(tile.at(0, 0, stage), (map, (start.view(s32), row.view(s32))), barrier)


def wait(barrier: Pointer, parity: u32 | None) -> None:
    """Wait for a phase of an mbarrier."""
    with ptx.loop():
        ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(barrier, parity))


def multiply(
    type: str, shape: Shape, accumulators: list[list[f32]], tiles: list[Tile], stage: int | u32, group: u32
) -> None:
    """Issue the MMAs of a K tile as one group; `group` is the number of the warpgroup in the tile."""
    product = ptx.wgmma.mma_async.sync.aligned[f"m64n{shape.columns}k16"].f32[type][type]
    a, b = (ptx.descriptor(tile, copy=stage) for tile in tiles)
    ptx.wgmma.fence.sync.aligned()
    for step in range(DEPTH // STEP):
        along = step * STEP * 2 // 16  # bytes of a row, as a descriptor counts them
        for part, values in enumerate(accumulators):
            down = ptx.cvt.u64.u32((group * shape.tall + part) * (STRIPE * 128 // 16))
            product(values, a + along + down, b + along, True, 1, 1, 0, 0)
    ptx.wgmma.commit_group.sync.aligned()


def rounded(type: str, values: list[f32]) -> list[b32]:
    """Accumulators, two in a register."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return [ptx.cvt.rn[f"{type}x2"].f32(high, low).view(b32) for low, high in pairs]


def store(
    type: str,
    shape: Shape,
    accumulators: list[list[f32]],
    group: u32,
    d: Pointer,
    first: tuple[u32, u32],
    extents: tuple[u32, u32],
) -> None:
    """Store accumulators from registers, two columns a thread, where D has them."""
    (row, column), (m, n), warp, lane = first, extents, ptx.tid.x >> 5 & 3, ptx.laneid
    column = column + (lane & 3) * 2
    for part, values in enumerate(accumulators):
        words = rounded(type, values)
        for half in range(2):
            own = row + (group * shape.tall + part) * STRIPE + warp * 16 + (lane >> 2) + 8 * half
            target, is_row = d.at(ptx.mad.lo.u32(own, n, column)), own < m
            for number, word in enumerate(words[half::2]):
                is_inside = ptx.and_.pred(is_row, column + 8 * number < n)
                ptx.st.global_.b32(target + 8 * number, word, when=is_inside)


class Writer:
    """Stores tiles of a warpgroup by TMA copies from shared memory, which run while it computes the next one."""

    def __init__(self, type: str, shape: Shape, memory: Pointer, d: Pointer, group: u32) -> None:
        self.type, self.shape, self.d, self.group = type, shape, d, group
        self.boxes = shape.columns // BOX
        self.first_copy = group * (shape.tall * self.boxes)
        copies = 2 * shape.tall * self.boxes
        self.tile = ptx.tile(b16, STRIPE, BOX, swizzle="128B", copies=copies, at=memory)
        self.is_first = ptx.tid.x % GROUP == 0

    def write(self, accumulators: list[list[f32]], row: u32, column: u32) -> None:
        """Store the tile whose first element is there; what is beyond D is not written."""
        ptx.cp.async_.bulk.wait_group.read(0, when=self.is_first)  # the copies before have read their boxes
        self.synchronize()
        held = ptx.warpgroup_fragments(ptx.wgmma.mma_async.sync.aligned.m64n16k16.f32[self.type][self.type])
        packed, warp = held.d.packed(f16), ptx.tid.x >> 5 & 3
        for part, values in enumerate(accumulators):
            words = rounded(self.type, values)
            for number in range(0, len(words), 4):
                box, start = divmod(4 * number, BOX)
                at = self.tile.matrices(
                    packed, ptx.laneid, warp * 16, start, self.first_copy + (part * self.boxes + box)
                )
                packed.store(at, words[number : number + 4])
        ptx.fence.proxy.async_["shared::cta"]()
        self.synchronize()
        with ptx.when(self.is_first):
            for part in range(self.shape.tall):
                for box in range(self.boxes):
                    right, down = column + box * BOX, row + part * STRIPE
                    copied = self.tile.at(0, 0, self.first_copy + (part * self.boxes + box))
                    COPY_BACK((self.d, (right.view(s32), down.view(s32))), copied)
            ptx.cp.async_.bulk.commit_group()

    def synchronize(self) -> None:
        """Synchronize the warpgroup, at a barrier of its own."""
        ptx.barrier.sync.aligned(self.group + 1, GROUP)

    def finish(self) -> None:
        """Wait for the last copies to read."""
        ptx.cp.async_.bulk.wait_group.read(0, when=self.is_first)
