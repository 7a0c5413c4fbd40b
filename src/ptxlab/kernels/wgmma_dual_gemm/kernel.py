"""D = activation(A·Gᵀ) ⊙ (A·Uᵀ) in one kernel: both products share the K tiles of A, and meet in registers.

A K tile has rows of A, rows of G, and after them as many rows of U. To `wgmma` the rows of G and U are one matrix: the
first half of a thread's accumulators are of A·Gᵀ, the second half are of A·Uᵀ at the same rows and columns.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, kernel, tensor_map, u32
from ptxlab.kernels.finishing import ACTIVATIONS
from ptxlab.kernels.formats import Formats
from ptxlab.kernels.operands import Operand
from ptxlab.kernels.persistent import Plan, run
from ptxlab.kernels.tile_order import Share, TileOrder
from ptxlab.kernels.tile_stores import Boxes, CopyBack, TileStore
from ptxlab.kernels.wgmma_gemm.shapes import Layout, Shape


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out; `shape.columns` are the columns of both products together."""
    operands = (
        Operand(shape.rows, layout.left_along_k, shape.stages, 1, formats.element),
        Operand(shape.columns, layout.right_along_k, shape.stages, shape.cluster, formats.element, matrices=2),
    )
    boxes = Boxes(shape.groups, shape.tall, shape.columns // 2, False, shape.buffers, formats.out_size)
    return Plan(formats, shape, operands, boxes)


class GatedStore(TileStore):
    """Stores what both products make together."""

    activation: Any = None

    def write(self, accumulators: list[list[Any]], row: Any, column: Any) -> None:
        """Store a tile whose first element is there."""
        super().write([self.gate(values) for values in accumulators], row, column)

    def gate(self, values: list[Any]) -> list[Any]:
        """The activation of each of the first half, times the one of the second half that belongs to it."""
        half = len(values) // 2
        return [self.activation(x) * y for x, y in zip(values[:half], values[half:], strict=True)]


@cache
def specialize(formats: Formats, shape: Shape, layout: Layout, activation: str) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, G, U and D, and m, n and k."""
    plan = plan_of(formats, shape, layout)

    @kernel(**plan.directives)
    def wgmma_dual_gemm(a: tensor_map, g: tensor_map, u: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        def share_of(rank: Any) -> Share:
            order = TileOrder(shape.rows * shape.cluster, shape.columns // 2, shape.together, m, n, shape.cluster)
            return Share(order, k, formats.depth, rank=rank, cluster=shape.cluster)

        def store_of(memory: Any) -> TileStore:
            found = GatedStore(formats.out, plan.boxes, memory, CopyBack(d.generic))
            found.activation = ACTIVATIONS[activation]
            return found

        run(plan, [[a.generic], [g.generic, u.generic]], share_of, store_of)

    found: Kernel = wgmma_dual_gemm
    return found
