"""Dᵢ = Aᵢ·Bᵢᵀ of all groups in one launch: A and D have the rows of all groups one after the other."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab.author import Kernel, Pointer, f32, kernel, pointer, tensor_map, u32
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import STRIPE, Operand
from ptxlab.kernels.parts.persistent import Block, Plan, run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_stores import TileStore
from ptxlab.kernels.wgmma_grouped_gemm.groups import Columns, GroupedShare, Rows
from ptxlab.kernels.wgmma_grouped_gemm.stores import GroupedStore, RaggedCopy, Scales, ragged_map, ragged_rows

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap


class Tokens(Operand):
    """A: the rows of all groups. Those of a tile that are not of its group are zeros, which cost less energy."""

    def map(self, matrix: Array) -> TensorMap:
        """The tensor map that copies are given."""
        return ragged_map(super().map(matrix))

    def coordinates(self, first: Rows, start: u32) -> tuple[u32, u32, list[u32]]:
        """The row of a tile in the tensor of groups, and the two outer coordinates there."""
        row, *outer = ragged_rows(first.first, first.end)
        return row, start, outer


class Weights(Operand):
    """B: a matrix for each group, in a tensor of three dimensions."""

    def coordinates(self, first: Columns, start: u32) -> tuple[u32, u32, list[u32]]:
        """The column of a tile, in the matrix of its group."""
        return first.first, start, [first.group]


def plan_of(formats: Formats, shape: Shape, layout: Layout) -> Plan:
    """How the kernel is laid out; where D is stored transposed, the weights are the operand that has the rows."""
    kinds = (Weights, Tokens) if shape.swap_ab else (Tokens, Weights)
    along_k = {Tokens: True, Weights: layout.right_along_k}
    sharers = shape.beside, shape.cluster // shape.beside
    left, right = (
        kind(extent, along_k[kind], shape.stages, shared, formats.element, keep=keep, span=span)
        for kind, extent, shared, keep, span in zip(
            kinds, (shape.rows, shape.columns), sharers, shape.keep, (STRIPE, shape.span), strict=True
        )
    )
    return Plan(formats, shape, (left, right), shape.boxes(layout))


def in_order(shape: Shape, tokens: Any, weights: Any) -> list[Any]:
    """What is of tokens and of weights in the order of the operands, or the other way round."""
    return [weights, tokens] if shape.swap_ab else [tokens, weights]


class Groups(Block):
    """Tiles of all groups; `extents` are the number of groups, m, n and k."""

    early = False

    def __init__(
        self,
        plan: Plan,
        most: int,
        offsets: Pointer,
        extents: tuple[u32, u32, u32, u32],
        d: Pointer,
        scales: Scales | None,
    ) -> None:
        self.given, self.plan, self.d, self.scales = (plan, most, offsets, extents), plan, d, scales

    def share(self, rank: object) -> GroupedShare:
        return GroupedShare(*self.given, rank)

    def store(self, memory: Pointer, residual: object) -> TileStore:
        return GroupedStore(self.plan.formats.out, self.plan.boxes, memory, RaggedCopy(self.d), self.scales)


@cache
def specialize(formats: Formats, shape: Shape, layout: Layout, most: int, scaled: bool = False) -> Kernel:
    """Build the kernel for `most` groups or fewer.

    Its arguments are the tensor maps of A, B and D, the ends of groups, their number, m, n and k, and the scales of
    rows of A and of columns of B's matrices, 0 where it is not `scaled`.
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
    ) -> None:
        scales = Scales(scale_a, scale_b, m, n, shape.swap_ab) if scaled else None
        maps = in_order(shape, [a.generic], [b.generic])
        run(plan, maps, Groups(plan, most, offsets, (groups, m, n, k), d.generic, scales))

    return wgmma_grouped_gemm
