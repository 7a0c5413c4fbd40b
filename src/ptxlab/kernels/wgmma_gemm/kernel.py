"""D = A·Bᵀ by `wgmma`: a persistent, warp-specialized kernel.

A block computes one tile of D after the other. One thread of its first warpgroup, the producer, issues the TMA copies
of K tiles of A and B, as many ahead as there are stages, also those of the next tile while the last is stored. The
other warpgroups, the consumers, have the registers that the first one gave up; each multiplies 64 rows, or twice that.

Blocks of a cluster either share the K tiles of B, each copying a part of them to all (`Shape.cluster`), or compute one
tile together, each a part of k (`Shape.split_k`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, b16, b32, f32, kernel, pointer, pred, ptx, tensor_map, u32
from ptxlab.kernels.parts.block_sums import ThroughCluster, ThroughMemory
from ptxlab.kernels.parts.finishing import Extras, Finish
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.persistent import Block, Plan, run
from ptxlab.kernels.parts.residuals import RingResidual
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_order import Share, TileOrder
from ptxlab.kernels.parts.tile_stores import CopyBack, PlainStore, TileStore

ALONG_K = Layout()


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out."""
    return Plan(formats, shape, shape.operands(layout), shape.boxes(layout))


@cache
def specialize(type: str | Formats, shape: Shape, layout: Layout = ALONG_K, extras: Extras | None = None) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k.

    Where `needs_more` says so, there are others: D is a tensor map or a pointer, and after k come the distance of its
    rows, the bias, the residual, the distance of its rows, memory for partial results and for counters, which are 0,
    and the scales of A and B.
    """
    formats = Formats.of(type)
    plan = plan_of(formats, shape, layout)
    element: Any = {2: b16, 4: b32}[layout.out_size]
    target: Any = tensor_map if layout.aligned else pointer[element]
    matrix: Any = tensor_map if extras is not None and extras.in_ring else pointer[b16]

    @kernel(**plan.directives)
    def wgmma_gemm(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        run(plan, [[a.generic], [b.generic]], Product(plan, CopyBack(d.generic), (m, n, k)))

    @kernel(**plan.directives)
    def wgmma_gemm_with_extras(
        a: tensor_map,
        b: tensor_map,
        d: target,
        m: u32,
        n: u32,
        k: u32,
        pitch: u32,
        bias: pointer[b16],
        residual: matrix,
        residual_pitch: u32,
        partial: pointer[f32],
        counters: pointer[u32],
        scale_a: pointer[f32],
        scale_b: pointer[f32],
    ) -> None:
        is_map = target is tensor_map
        adds = extras is not None and extras.adds
        store = CopyBack(d.generic, adds) if is_map else PlainStore(d, *((n, m) if shape.swap_ab else (m, n)), pitch)
        finish = None
        if extras is not None and extras != Extras(adds=True):
            added = (bias.view(element), residual if matrix is tensor_map else residual.view(element), residual_pitch)
            finish = Finish(formats.out, extras, shape.swap_ab, (m, n), *added, (scale_a, scale_b))
        product = Product(plan, store, (m, n, k), finish, (partial, counters))
        if matrix is tensor_map:
            product.ring_boxes = shape.ring_boxes(layout)
        run(plan, [[a.generic], [b.generic]], product)

    found: Kernel = wgmma_gemm_with_extras if needs_more(shape, layout, extras) else wgmma_gemm
    return found


def needs_more(shape: Shape, layout: Layout, extras: Extras | None) -> bool:
    """Whether there are other arguments than those of a plain product."""
    return not layout.aligned or extras is not None or (shape.split_k > 1 and not shape.clustered)


class Product(Block):
    """Tiles of one product; `extents` are m, n and k, `target` is a `CopyBack` or a `PlainStore`."""

    multiple = 1  # K tiles are a multiple of so many
    barriers: Any = None  # for sums in a cluster
    ring_boxes: Any = None  # how a residual that is a tensor map comes through the ring

    def __init__(
        self,
        plan: Plan,
        target: CopyBack | CopyBack | PlainStore,
        extents: tuple[u32, u32, u32],
        finish: Finish | None = None,
        workspace: tuple[Pointer, Pointer] | None = None,
    ) -> None:
        self.plan, self.shape, self.target, self.extents = plan, plan.shape, target, extents
        self.finish, self.workspace = finish, workspace

    def share(self, rank: object) -> Share:
        (m, n, k), shape = self.extents, self.shape
        order = TileOrder(*shape.covered, shape.raster, m, n, shape.blocks)
        is_through_memory = shape.split_k > 1 and not shape.clustered
        part = ptx.ctaid.x // shape.cluster % shape.split_k if is_through_memory else rank
        return Share(
            order,
            k,
            self.plan.formats.depth,
            rank=rank,
            cluster=shape.cluster,
            beside=shape.beside,
            split_k=shape.split_k,
            part=part,
            multiple=self.multiple,
        )

    def store(self, memory: Pointer, residual: object) -> TileStore:
        finish = residual or (self.finish and self.finish.begin())
        return TileStore(self.plan.formats.out, self.plan.boxes, memory, self.target, finish)

    def initialize(self, when: pred) -> None:
        if self.shape.split_k > 1 and self.shape.clustered:
            self.barriers = ThroughCluster.barriers(self.shape.parts, when)

    def residual(self, memory: Pointer) -> RingResidual | None:
        if self.finish is None or self.ring_boxes is None:
            return None
        return RingResidual(self.ring_boxes, memory, self.finish.residual.generic, self.finish)

    def exchange(self, share: Share, memory: Any) -> ThroughCluster | ThroughMemory | None:
        if self.shape.split_k == 1:
            return None
        accumulator, parts = self.plan.formats.accumulator, self.shape.parts
        if self.shape.clustered:
            return ThroughCluster(accumulator, parts, share.part, memory, *self.barriers)
        assert self.workspace is not None
        return ThroughMemory(accumulator, parts, share.part, *self.workspace)
