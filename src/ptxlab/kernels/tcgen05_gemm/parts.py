"""What the steps share: the shape of a tile, the copies and MMAs of a K tile, and the way out.

A tile of D has 128 rows, one for each lane of tensor memory, and as many columns as `Shape` says. A K tile is 64
elements deep: 128 bytes, the width of the swizzle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.author import Instruction, Pointer, b16, b32, f32, pred, ptx, s32, u32

if TYPE_CHECKING:
    from ptxlab.author.operand import Text
    from ptxlab.author.tiles import Tile

ROWS = 128  # of a tile of D: the lanes of tensor memory
DEPTH = 64  # elements of a row of a K tile
BOX = 64  # columns of D that one copy stores: 128 bytes, too
STEP = 16  # elements that one MMA multiplies along k
COPY = ptx.cp.async_.bulk.tensor["2d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
COPY_BACK = ptx.cp.async_.bulk.tensor["2d"]["global"]["shared::cta"].bulk_group
COMMIT = ptx.tcgen05.commit["cta_group::1"]["mbarrier::arrive::one"]["shared::cluster"].b64
MULTIPLY = ptx.tcgen05.mma["cta_group::1"]["kind::f16"]


@dataclass(frozen=True)
class Shape:
    """The columns of a tile of D, and the stages of the ring."""

    columns: int = 128
    stages: int = 4

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: the K tiles of A and B."""
        return 2 * DEPTH * (ROWS + self.columns)

    def tiles(self, memory: Pointer) -> tuple[Tile, Tile, Pointer]:
        """The K tiles of A and B in all stages, and the memory after them."""
        a = ptx.tile(b16, ROWS, DEPTH, swizzle="128B", copies=self.stages, at=memory)
        memory = memory + self.stages * ROWS * DEPTH
        b = ptx.tile(b16, self.columns, DEPTH, swizzle="128B", copies=self.stages, at=memory)
        return a, b, memory + self.stages * self.columns * DEPTH


def copy(map: Pointer, tile: Tile, stage: int | u32, row: u32, start: u32, barrier: Pointer) -> None:
    """Start the copy of a K tile; rows beyond the matrix become zeros."""
    COPY(tile.at(0, 0, stage), (map, (start.view(s32), row.view(s32))), barrier)


def multiply(
    d: Text, a_tile: Tile, b_tile: Tile, stage: int | u32, bits: int, adds: pred, instruction: Instruction = MULTIPLY
) -> None:
    """Issue the MMAs of a K tile; the first one overwrites D unless `adds` holds."""
    a, b = ptx.descriptor(a_tile, copy=stage), ptx.descriptor(b_tile, copy=stage)
    always = ptx.setp.eq.u32(0, 0)
    for step in range(DEPTH // STEP):
        further = step * STEP * 2 // 16  # bytes along a row, as a descriptor counts them
        instruction(d, a + further, b + further, bits, always if step else adds)


def pairs(type: str, values: list[f32]) -> list[b32]:
    """Accumulators, rounded, two in a register."""
    rounded = ptx.cvt.rn[f"{type}x2"].f32
    return [rounded(high, low).view(b32) for low, high in zip(values[::2], values[1::2], strict=True)]
