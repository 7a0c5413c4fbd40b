"""Dᵢ = Aᵢ·Bᵢᵀ of all groups in one launch: A and D have the rows of all groups one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ptxlab.author import Kernel, b8, b16, f32, kernel, pointer, tensor_map, u32
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import Operand
from ptxlab.kernels.parts.persistent import Block, Plan, run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_stores import TileStore
from ptxlab.kernels.wgmma_grouped_gemm.changed_map import ChangedMapStore
from ptxlab.kernels.wgmma_grouped_gemm.groups import Columns, GroupedShare, Rows
from ptxlab.kernels.wgmma_grouped_gemm.stores import GroupedStore, MaskedCopy, RaggedCopy, Scales


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


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out."""
    operands = (
        Tokens(shape.rows, True, shape.stages, 1, formats.element, keep=shape.keep[0]),
        Weights(shape.columns, layout.right_along_k, shape.stages, shape.cluster, formats.element, keep=shape.keep[1]),
    )
    return Plan(formats, shape, operands, shape.boxes(layout))


class Groups(Block):
    """Tiles of all groups; `extents` are the number of groups, m, n and k, `store_of(memory)` stores them."""

    early = False

    def __init__(self, plan: Plan, most: int, offsets: Any, extents: Any, store_of: Callable[[Any], TileStore]) -> None:
        self.given, self.store_of = (plan, most, offsets, extents), store_of

    def share(self, rank: Any) -> GroupedShare:
        return GroupedShare(*self.given, rank)

    def store(self, memory: Any, residual: Any) -> TileStore:
        return self.store_of(memory)


@cache
def specialize(
    formats: Formats, shape: Shape, layout: Layout, most: int, store: str = "ragged", scaled: bool = False
) -> Kernel:
    """Build the kernel for `most` groups or fewer; `store` is how the last rows of a group are stored.

    Its arguments are the tensor maps of A, B and D, the ends of groups, their number, m, n and k. Those after that are
    0 where they are not used: the scales of rows of A and of columns of B's matrices where it is `scaled`; D and the
    distance of its rows for "masked" stores; space for maps, for "changed" ones.
    """
    plan = plan_of(formats, shape, layout)

    @kernel(**plan.directives)
    def wgmma_grouped_gemm(
        a: tensor_map,
        b: tensor_map,
        d: tensor_map,
        offsets: pointer[u32],
        groups: u32,
        m: u32,
        n: u32,
        k: u32,
        scale_a: pointer[f32],
        scale_b: pointer[f32],
        out: pointer[b16],
        pitch: u32,
        space: pointer[b8],
    ) -> None:
        def store_of(memory: Any) -> TileStore:
            if store == "changed":
                return ChangedMapStore(formats.out, plan.boxes, memory, d.generic, space)
            copy = RaggedCopy(d.generic) if store == "ragged" else MaskedCopy(d.generic, out, n, pitch)
            scales = Scales(scale_a, scale_b, m, n) if scaled else None
            return GroupedStore(formats.out, plan.boxes, memory, copy, scales)

        run(plan, [[a.generic], [b.generic]], Groups(plan, most, offsets, (groups, m, n, k), store_of))

    found: Kernel = wgmma_grouped_gemm
    return found
