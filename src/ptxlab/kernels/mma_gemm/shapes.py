"""Types and shapes: what the kernel is written for, and which shape suits a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptxlab.author import Instruction, Scalar, b8, bf16, f16, f32, ptx, s8, s32
from ptxlab.launch.launches import UnsuitedError, ceil_div

MMA = ptx.mma.sync.aligned


@dataclass(frozen=True)
class Kind:
    """A type to multiply: of elements in memory, the instruction, what adds up, what comes out."""

    element: type[Scalar]
    multiply: Instruction
    total: type[Scalar]
    result: type[Scalar]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.element.type.width // 8


KINDS = {
    "f16": Kind(f16, MMA.m16n8k16.row.col.f32.f16.f16.f32, f32, f16),
    "bf16": Kind(bf16, MMA.m16n8k16.row.col.f32.bf16.bf16.f32, f32, bf16),
    "tf32": Kind(f32, MMA.m16n8k8.row.col.f32.tf32.tf32.f32, f32, f32),
    "e4m3": Kind(b8, MMA.m16n8k32.row.col.f32.e4m3.e4m3.f32, f32, bf16),
    "s8": Kind(s8, MMA.m16n8k32.row.col.s32.s8.s8.s32, s32, s32),
}


@dataclass(frozen=True)
class Shape:
    """How the work is cut: rows and columns of D for a block and a warp, the ring of stages, the order of blocks."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    stages: int
    depth: int = 128  # bytes of a row in a stage
    group: int = 8  # rows of tiles that are made together, for the L2 cache
    copies_first: bool = True  # whether copies are before the loads of a step, or after them
    target: str = "sm_80"

    def __post_init__(self) -> None:
        at_once = self.threads * 16 // self.depth  # rows that all threads copy at once
        parts = (
            (self.rows, self.warp_rows),
            (self.columns, self.warp_columns),
            (self.warp_rows, 16),
            (self.warp_columns, 16),
        )
        if self.depth not in (64, 128) or self.stages < 2 or any(whole % part for whole, part in parts):
            raise UnsuitedError(f"{self} does not divide into warps of 16 by 16 and K tiles of 64 or 128 bytes")
        if self.warp_columns & (self.warp_columns - 1):
            raise UnsuitedError(f"{self.warp_columns} columns per warp are not a power of two")
        if self.rows % at_once or self.columns % at_once:
            raise UnsuitedError(f"{self} has no whole number of copies a thread, {at_once} rows at once")

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.rows // self.warp_rows * (self.columns // self.warp_columns)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    def tiles(self, m: int, n: int) -> int:
        """Blocks that make D."""
        return ceil_div(m, self.rows) * ceil_div(n, self.columns)

    def shared(self, kind: Kind) -> int:
        """Bytes of shared memory: for the stages, and after them for a tile of D."""
        ring = (self.rows + self.columns) * self.depth * self.stages
        return max(ring, self.rows * self.columns * kind.result.type.width // 8)


LARGE = Shape(160, 256, 80, 64, stages=4, target="sm_90")  # all the registers and shared memory that an SM has
WIDE = Shape(128, 256, 64, 64, stages=4, copies_first=False, target="sm_90")
SQUARE = Shape(128, 128, 64, 64, stages=3, copies_first=False)
NARROW = Shape(128, 64, 64, 32, stages=4)
SMALL = Shape(64, 64, 32, 32, stages=3)

# How fast an SM of an H200 multiplies with each, beside the fastest.
SPEEDS = {LARGE: 1.0, WIDE: 0.98, SQUARE: 0.95, NARROW: 0.75, SMALL: 0.63}
# Before Blackwell fp8 is made f16 first, which takes registers.
SPEEDS_OF_FP8 = {replace(SQUARE, copies_first=True, target="sm_89"): 1.0, replace(SMALL, target="sm_89"): 0.97}
SMS = 132


def suited(type: str, m: int, n: int) -> Shape:
    """The shape with which the SM that has most to do is done first, if there are `SMS` of them."""
    speeds = SPEEDS_OF_FP8 if type == "e4m3" else SPEEDS
    return min(speeds, key=lambda shape: ceil_div(shape.tiles(m, n), SMS) * shape.rows * shape.columns / speeds[shape])
