"""The parameters of the kernel for e4m3: what differs where an element has one byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import b8, b16, f32, ptx
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, LINE, Plan
from ptxlab.kernels.wgmma_attention.tiles import Tiles

STEP = 32  # elements along which one MMA multiplies
TRANSPOSERS = 2  # warps that transpose values


@dataclass(frozen=True)
class Fp8Plan(Plan):
    """Queries, keys and values are e4m3, the answer is bf16."""

    type: str = "bf16"
    raw_stages: int = 2
    """Stages of values before they are transposed."""
    chunk: int = 0
    """Tiles of keys after which the tensor cores' sums are added to others; 0: they sum over all keys."""

    @property
    def bytes(self) -> int:
        """Bytes of an element of queries, keys and values."""
        return 1

    @property
    def overlaps(self) -> bool:
        """Whether a tile begins before the last one is stored."""
        return True

    @property
    def query_stages(self) -> int:
        """Tiles of queries in shared memory: they are there until they are in registers."""
        return 1

    @property
    def transposed_box(self) -> int:
        """Keys in a row of the transposed values: as many as the swizzle is wide."""
        return next(width for width in (LINE, LINE // 2, LINE // 4) if self.keys % width == 0)

    @property
    def sum_bytes(self) -> int:
        """Bytes for sums in f32, in which the answer is, too."""
        return self.rows * self.size * (4 if self.chunk else 2)

    @property
    def answer_step(self) -> int:
        """Boxes from the answer of one warpgroup to that of the next: it is where the warpgroup's own sums are."""
        return self.sum_bytes // self.groups // (2 * GROUP_ROWS * BOX)

    @property
    def shared(self) -> int:
        """Bytes of shared memory: sums, queries, stages of keys, of values, and of values transposed."""
        return self.sum_bytes + self.query_bytes + (2 * self.stages + self.raw_stages) * self.key_bytes

    def mma(self, columns: int) -> Any:
        """The MMA of 64 rows and so many columns."""
        return ptx.wgmma.mma_async.sync.aligned[f"m64n{columns}k{STEP}"].f32.e4m3.e4m3

    @property
    def scores(self) -> Any:
        """The MMA of queries and keys."""
        return self.mma(self.keys)

    @property
    def answer(self) -> Any:
        """The MMA of weights and values."""
        return self.mma(self.size)

    @property
    def total(self) -> Any:
        """The MMA of weights and ones."""
        return self.mma(8)


class Fp8Tiles(Tiles):
    """Shared memory: queries, the answer, and stages of keys, of values, and of values transposed."""

    def __init__(self, plan: Fp8Plan, memory: Any) -> None:
        def cut(element: Any, rows: int, columns: int, copies: int) -> Any:
            nonlocal memory
            width = columns * (2 if element is b16 else 1)
            found = ptx.tile(element, rows, columns, swizzle=f"{width}B", copies=copies, at=memory)
            memory = memory + copies * rows * width
            return found

        self.sums = memory.view(f32)
        self.o = ptx.tile(b16, GROUP_ROWS, BOX, swizzle="128B", copies=plan.groups * plan.answer_step, at=memory)
        memory = memory + plan.sum_bytes
        self.q = cut(b8, GROUP_ROWS, plan.box, plan.groups * plan.boxes)
        self.k = cut(b8, plan.keys, plan.box, plan.stages * plan.boxes)
        self.v = cut(b8, plan.keys, plan.box, plan.raw_stages * plan.boxes)
        self.transposed = cut(b8, plan.size, plan.transposed_box, plan.stages * (plan.keys // plan.transposed_box))
        self.ones = ptx.tile(b8, 8, STEP, swizzle="32B", name="ones")
