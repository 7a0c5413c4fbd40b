"""Shared memory: where queries, keys, values and the answer are."""

from __future__ import annotations

from typing import Any

from ptxlab.author import b16, ptx
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan


class Tiles:
    """Shared memory: queries, the answer, and stages of keys and of values, each in boxes of 64 columns."""

    def __init__(self, plan: Plan, memory: Any) -> None:
        def cut(rows: int, copies: int) -> Any:
            nonlocal memory
            found = ptx.tile(b16, rows, BOX, swizzle="128B", copies=copies, at=memory)
            memory = memory + copies * rows * BOX
            return found

        self.q = cut(GROUP_ROWS, plan.query_stages * plan.groups * plan.boxes)
        self.o = cut(GROUP_ROWS, plan.groups * plan.boxes) if plan.overlaps else self.q
        self.k, self.v = (cut(plan.keys, plan.stages * plan.boxes) for _ in range(2))
