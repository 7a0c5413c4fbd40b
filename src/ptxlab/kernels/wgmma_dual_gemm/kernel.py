"""D = activation(A·Gᵀ) ⊙ (A·Uᵀ) in one kernel: both products share the K tiles of A, and meet in registers.

A K tile has rows of A, rows of G, and after them as many rows of U. To `wgmma` the rows of G and U are one matrix: the
first half of a thread's accumulators are of A·Gᵀ, the second half are of A·Uᵀ at the same rows and columns. Blocks of a
cluster share the K tiles of G and U, or compute one tile together, each a part of k.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, f32, kernel, pointer, pred, ptx, tensor_map, u32
from ptxlab.kernels.parts.block_sums import ThroughCluster
from ptxlab.kernels.parts.finishing import Activation, activation_of
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import Operand
from ptxlab.kernels.parts.persistent import Block, Plan, run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_order import Share, TileOrder
from ptxlab.kernels.parts.tile_stores import Boxes, CopyBack, TileStore


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out; `shape.columns` are the columns of both products together."""
    operands = (
        Operand(shape.rows, layout.left_along_k, shape.stages, 1, formats.element, keep=shape.keep[0]),
        Operand(
            shape.columns,
            layout.right_along_k,
            shape.stages,
            shape.cluster,
            formats.element,
            matrices=2,
            keep=shape.keep[1],
        ),
    )
    width = shape.parts.width // 2
    boxes = Boxes(shape.groups, shape.tall, width, False, shape.buffers, formats.out_size, shape.pingpong, shape.box)
    return Plan(formats, shape, operands, boxes)


class GatedStore(TileStore):
    """Stores what both products make together: the activation of the first, times the second, each times a factor.

    A gradient needs both products, too: then they are stored before, one after the other, through the same memory.
    """

    activation: Any = None
    factors: tuple[f32, f32] | None = None
    products: tuple[CopyBack, ...] = ()

    def write(self, accumulators: list[list[f32]], row: u32, column: u32) -> None:
        """Store a tile whose first element is there: each of the first half with the one that belongs to it."""
        half = len(accumulators[0]) // 2
        gated, self.is_gated = self.store, False
        for number, target in enumerate(self.products):
            self.store = target
            super().write([values[number * half :][:half] for values in accumulators], row, column)
        self.store, self.is_gated = gated, True
        pairs: list[list[Any]] = [[*zip(values[:half], values[half:], strict=True)] for values in accumulators]
        super().write(pairs, row, column)

    def stage(self, values: list[Any], copy: Any, loaded: Iterable[Any], box: int) -> None:
        """Gate the products of one box and write the results to shared memory."""
        if not self.is_gated:
            super().stage(values, copy, loaded, box)
            return
        if self.factors is not None:
            values = [tuple(one * factor for one, factor in zip(pair, self.factors, strict=True)) for pair in values]
        super().stage([self.activation(x) * y for x, y in values], copy, loaded, box)


class SumOfHalves(ThroughCluster):
    """Sums over blocks, of which each stores the same columns of both products."""

    @property
    def columns(self) -> int:
        """Columns of D that a block stores."""
        return self.parts.width // 2

    def deposit(self, accumulators: list[list[object]]) -> None:
        """Write them so that those of a block follow each other: a part of the first product, and one of the second."""
        each = len(accumulators[0]) // (2 * self.parts.count)
        starts = [each * (number + half * self.parts.count) for number in range(self.parts.count) for half in range(2)]
        super().deposit([[one for start in starts for one in values[start:][:each]] for values in accumulators])


class Gated(Block):
    """Tiles of both products; `extents` are m, n and k, `scales` where the factors of A, G and U are.

    The first of `targets` is for D; others are for the products.
    """

    barriers: Any = None  # for sums in a cluster

    def __init__(
        self,
        plan: Plan,
        targets: Sequence[CopyBack],
        extents: tuple[u32, u32, u32],
        activation: object,
        scales: tuple[Pointer, Pointer, Pointer] | None,
    ) -> None:
        self.plan, self.extents, (self.target, *self.products) = plan, extents, targets
        self.activation, self.scales = activation, scales

    def share(self, rank: u32 | None) -> Share:
        (m, n, k), shape = self.extents, self.plan.shape
        order = TileOrder(shape.rows * shape.cluster, shape.columns // 2, shape.raster, m, n, shape.blocks)
        return Share(order, k, self.plan.formats.depth, rank=rank, cluster=shape.cluster, split_k=shape.split_k)

    def initialize(self, when: pred) -> None:
        if self.plan.shape.split_k > 1:
            self.barriers = ThroughCluster.barriers(self.plan.shape.parts, when)

    def exchange(self, share: Share, memory: Pointer) -> SumOfHalves | None:
        if self.plan.shape.split_k == 1:
            return None
        accumulator, parts = self.plan.formats.accumulator, self.plan.shape.parts
        return SumOfHalves(accumulator, parts, share.part, memory, *self.barriers)

    def store(self, memory: Pointer, residual: object) -> TileStore:
        found = GatedStore(self.plan.formats.out, self.plan.boxes, memory, self.target)
        found.activation, found.products = self.activation, tuple(self.products)
        if self.scales is not None:
            of_a, of_g, of_u = (ptx.ld.global_.f32(one) for one in self.scales)
            found.factors = of_a * of_g, of_a * of_u
        return found


@cache
def specialize(
    formats: Formats,
    shape: Shape,
    layout: Layout,
    activation: str | Activation,
    scaled: bool = False,
    keeps: bool = False,
) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, G, U and D, m, n and k, and the scales of A, G and U.

    Where it is not `scaled`, the scales are 0. The last two are tensor maps of where the products are stored if it
    `keeps` them.
    """
    plan = plan_of(formats, shape, layout)

    @kernel(**plan.directives)
    def wgmma_dual_gemm(
        a: tensor_map,
        g: tensor_map,
        u: tensor_map,
        d: tensor_map,
        m: u32,
        n: u32,
        k: u32,
        scale_a: pointer[f32],
        scale_g: pointer[f32],
        scale_u: pointer[f32],
        first: tensor_map,
        second: tensor_map,
    ) -> None:
        scales = (scale_a, scale_g, scale_u) if scaled else None
        targets = [CopyBack(map.generic) for map in ((d, first, second) if keeps else (d,))]
        gated = Gated(plan, targets, (m, n, k), activation_of(activation), scales)
        run(plan, [[a.generic], [g.generic, u.generic]], gated)

    return wgmma_dual_gemm
