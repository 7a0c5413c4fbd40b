"""Dᵢ = Aᵢ·Bᵢᵀ of all groups in one launch: A and D have the rows of all groups one after the other."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b8, b16, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.formats import Formats
from ptxlab.kernels.operands import STRIPE, Operand
from ptxlab.kernels.persistent import Plan, run
from ptxlab.kernels.tile_stores import TileStore
from ptxlab.kernels.wgmma_gemm.kernel import MainLoop
from ptxlab.kernels.wgmma_gemm.shapes import Layout, Shape
from ptxlab.kernels.wgmma_grouped_gemm.changed_map import ChangedMapStore
from ptxlab.kernels.wgmma_grouped_gemm.groups import Columns, GroupedShare, Rows
from ptxlab.kernels.wgmma_grouped_gemm.stores import GroupedStore, MaskedCopy, RaggedCopy


class Tokens(Operand):
    """A: the rows of all groups. A tile may have rows of the next group, whose results are not stored."""

    def copy(
        self, sources: Any, tile: Any, stage: Any, first: Rows, start: Any, rank: Any, outer: Any = (), policy: Any = ()
    ) -> None:
        """Start the copy of a K tile."""
        super().copy(sources, tile, stage, first.first, start, rank, policy=policy)


class Weights(Operand):
    """B: a matrix for each group, in a tensor of three dimensions."""

    def copy(
        self,
        sources: Any,
        tile: Any,
        stage: Any,
        first: Columns,
        start: Any,
        rank: Any,
        outer: Any = (),
        policy: Any = (),
    ) -> None:
        """Start the copies of a K tile."""
        super().copy(sources, tile, stage, first.first, start, rank, (first.group,), policy)


def consume(loop: MainLoop, store: TileStore) -> None:
    """A consumer warpgroup: compute and store its rows of each tile; where its group has none, only release stages."""
    (stage, read), shape = loop.stages, loop.shape
    share: Any = loop.share
    for number in share.numbers():
        with ptx.when(share.has_rows(loop.own * (STRIPE * shape.tall))):
            accumulators, row, column = loop.compute(number)
            store.write(accumulators, row, column)
        with ptx.otherwise():
            share.origin(number)
            for _ in share.steps():
                stage.wait()
                stage.advance()
                read.release(shape.cluster)
    store.finish_all()


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out."""
    operands = (
        Tokens(shape.rows, True, shape.stages, 1, formats.element),
        Weights(shape.columns, layout.right_along_k, shape.stages, shape.cluster, formats.element),
    )
    return Plan(formats, shape, operands, shape.boxes(layout))


@cache
def specialize(formats: Formats, shape: Shape, layout: Layout, most: int, store: str = "ragged") -> Kernel:
    """Build the kernel for `most` groups or fewer; `store` is how the last rows of a group are stored.

    Its arguments are the tensor maps of A, B and D, the ends of groups, their number, m, n and k. With "masked" stores
    follow D and the distance of its rows, with "changed" maps space for maps.
    """
    plan = plan_of(formats, shape, layout)

    def compute(maps: Any, offsets: Any, extents: Any, store_of: Any) -> None:
        def share_of(rank: Any) -> GroupedShare:
            return GroupedShare(plan, most, offsets, extents, rank)

        run(plan, [[one] for one in maps], share_of, store_of, consume)

    @kernel(**plan.directives)
    def wgmma_grouped_gemm(
        a: tensor_map, b: tensor_map, d: tensor_map, offsets: pointer[u32], groups: u32, m: u32, n: u32, k: u32
    ) -> None:
        def store_of(memory: Any) -> TileStore:
            return GroupedStore(formats.out, plan.boxes, memory, RaggedCopy(d.generic))

        compute((a.generic, b.generic), offsets, (groups, m, n, k), store_of)

    @kernel(**plan.directives)
    def with_masked_stores(
        a: tensor_map,
        b: tensor_map,
        d: tensor_map,
        offsets: pointer[u32],
        groups: u32,
        m: u32,
        n: u32,
        k: u32,
        out: pointer[b16],
        pitch: u32,
    ) -> None:
        def store_of(memory: Any) -> TileStore:
            return GroupedStore(formats.out, plan.boxes, memory, MaskedCopy(d.generic, out, n, pitch))

        compute((a.generic, b.generic), offsets, (groups, m, n, k), store_of)

    @kernel(**plan.directives)
    def with_changed_maps(
        a: tensor_map,
        b: tensor_map,
        d: tensor_map,
        offsets: pointer[u32],
        groups: u32,
        m: u32,
        n: u32,
        k: u32,
        space: pointer[b8],
    ) -> None:
        def store_of(memory: Any) -> TileStore:
            return ChangedMapStore(formats.out, plan.boxes, memory, d.generic, space)

        compute((a.generic, b.generic), offsets, (groups, m, n, k), store_of)

    found: Kernel = {"ragged": wgmma_grouped_gemm, "masked": with_masked_stores, "changed": with_changed_maps}[store]
    return found
