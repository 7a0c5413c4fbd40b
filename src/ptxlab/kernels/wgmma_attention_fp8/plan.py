"""The parameters of the kernel for e4m3: what differs where an element has one byte."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.author import Pointer, b8, f32, ptx
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, LINE, STEP, Plan
from ptxlab.kernels.wgmma_attention.tiles import Tiles


@dataclass(frozen=True)
class Fp8Plan(Plan):
    """Queries, keys and values are e4m3, the answer is bf16."""

    type: str = "bf16"
    value_stages: int = 2
    """Stages of values before they are transposed."""
    transposers: int = 2
    """Warps that transpose values."""
    chunk: int = 0
    """Tiles of keys after which the tensor cores' sums are added to others; 0: they sum over all keys."""
    early: int = 0
    """Of so many registers of weights, one is computed before O is there; 0: as ptxas likes."""
    ones: str = "between"
    """Whether weights are multiplied by ones `first`, before values, `last`, or in `between`."""
    computed: int = 0
    """Of so many weights of a row, one is computed by a polynomial and not by `ex2`; 0: none."""
    turns: bool = False
    """Whether warpgroups compute P in turn, one while the tensor cores multiply for another."""
    element = "e4m3"
    bytes = 1
    overlaps = True
    query_stages = 1  # queries are there until they are in registers

    @property
    def transposed_box(self) -> int:
        """Keys in a row of the transposed values: as many as the swizzle is wide."""
        return next(width for width in (LINE, LINE // 2, LINE // 4) if self.keys % width == 0)

    @property
    def answer_bytes(self) -> int:
        """Bytes for sums in f32, where the answer is, too."""
        return self.rows * self.size * (4 if self.chunk else 2)

    @property
    def answer_step(self) -> int:
        """Boxes from the answer of one warpgroup to that of the next: it is where the warpgroup's own sums are."""
        return self.answer_bytes // self.groups // (2 * GROUP_ROWS * BOX)

    @property
    def shared(self) -> int:
        """Bytes of shared memory: there are stages of values transposed, too."""
        return super().shared + self.stages * self.key_bytes


class Fp8Tiles(Tiles):
    """Shared memory: also stages of values transposed, ones, and promoted sums."""

    def __init__(self, plan: Fp8Plan, memory: Pointer) -> None:
        super().__init__(plan, memory)
        boxes = plan.keys // plan.transposed_box
        self.transposed = self.cut(b8, plan.size, plan.transposed_box, plan.stages * boxes)
        self.ones = ptx.tile(b8, 8, STEP, swizzle="32B", name="ones")
        self.power = ptx.shared(f32, 1, name="power") if plan.turns else None
