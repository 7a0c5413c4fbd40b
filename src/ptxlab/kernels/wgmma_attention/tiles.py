"""Shared memory: where queries, keys, values and the answer are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.author import Pointer, Scalar, b8, b16, f32, ptx
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile


class Tiles:
    """Shared memory: queries, the answer, and stages of keys and of values, each in boxes as wide as the swizzle."""

    def __init__(self, plan: Plan, memory: Pointer) -> None:
        element = b8 if plan.bytes == 1 else b16
        self.free = memory
        self.q = self.cut(element, GROUP_ROWS, plan.box, plan.query_stages * plan.groups * plan.boxes)
        self.accumulators = self.free.view(f32)
        self.o = self.cut(b16, GROUP_ROWS, BOX, plan.groups * plan.answer_step) if plan.overlaps else self.q
        self.k = self.cut(element, plan.keys, plan.box, plan.stages * plan.boxes)
        self.v = self.cut(element, plan.keys, plan.box, plan.value_stages * plan.value_boxes)

    def cut(self, element: type[Scalar], rows: int, columns: int, copies: int) -> Tile:
        """Tiles from the memory that is still free."""
        width = columns * (2 if element is b16 else 1)
        found = ptx.tile(element, rows, columns, swizzle=f"{width}B", copies=copies, at=self.free)
        self.free = self.free + copies * rows * width
        return found
