"""Dᵢ = Aᵢᵀ·Bᵢ: groups are along k, and each has a result of its own, as the gradients of experts' weights are.

A is tokens by m and B tokens by n, with the rows of all groups one after the other, D is groups by m by n. Rows after
the last one of a group are zeros for it, out of bounds of its tensor map: `RaggedCopy` says how. A group without rows
has a K tile of nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlab.author import Kernel, Pointer, kernel, pointer, ptx, s32, tensor_map, u32
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import Operand
from ptxlab.kernels.parts.persistent import Block, Plan, run
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.parts.tile_order import TileOrder
from ptxlab.kernels.parts.tile_stores import CopyBack, TileStore
from ptxlab.kernels.wgmma_gemm import grid_of
from ptxlab.kernels.wgmma_grouped_gemm.choice import InnerGrouped, fastest
from ptxlab.kernels.wgmma_grouped_gemm.stores import ragged_map, ragged_rows
from ptxlab.launch.launches import Launch, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

STORES = ptx.cp.async_.bulk.tensor["3d"], ptx.cp.reduce.async_.bulk.tensor["3d"]


class Place(NamedTuple):
    """A row or column of D, its group, and the token after the group's last."""

    first: u32
    group: u32
    end: u32


class Tokens(Operand):
    """A or B: K tiles are tokens of a group, and zeros after them."""

    def map(self, matrix: Array) -> Any:
        """The tensor map that copies are given."""
        return ragged_map(super().map(matrix))

    def coordinates(self, first: Place, start: u32) -> tuple[u32, u32, list[u32]]:
        """The row or column of a tile, and its tokens in the tensor of groups."""
        token, *outer = ragged_rows(start, first.end)
        return first.first, token, outer


class InnerShare:
    """What a block computes: tiles of each group's result, along the group's tokens."""

    def __init__(self, plan: Plan, offsets: pointer[u32], extents: tuple[u32, u32, u32, u32]) -> None:
        self.groups, self.tokens, m, n = extents
        self.offsets, self.depth, self.rank = offsets, plan.formats.depth, None
        self.order = TileOrder(*plan.shape.covered, plan.shape.raster, m, n)
        self.group = self.first = self.end = u32(0)  # of the tile that is computed

    def numbers(self) -> Any:
        """The number of each tile of this block; then its group is known."""
        for number in ptx.range(ptx.ctaid.x, self.order.count * self.groups, ptx.nctaid.x):
            self.group = number // self.order.count
            place, start = self.offsets + self.group, u32(0)
            self.end = ptx.min.u32(ptx.ld.global_.u32(place), self.tokens)
            ptx.ld.global_.u32(place - 1, out=start, when=self.group > 0)
            self.first = ptx.min.u32(start, self.end)
            yield number

    def origin(self, number: u32) -> tuple[Place, Place]:
        """Where a tile is."""
        row, column = self.order.origin(number % self.order.count)
        return Place(row, self.group, self.end), Place(column, self.group, self.end)

    def tiles(self) -> Any:
        """Where each tile is."""
        return (self.origin(number) for number in self.numbers())

    def steps(self) -> Any:
        """The first token of each K tile, of which there is one at least."""
        return ptx.range(self.first, ptx.max.u32(self.end, self.first + 1), self.depth)


class InnerStore(TileStore):
    """Stores a tile of a group's result."""

    def prepare(self, row: Place, column: Place) -> None:
        """There is nothing to load."""

    def write(self, accumulators: list[list[Any]], row: Place, column: Place) -> None:
        """Store a tile whose first element is there."""
        self.store.group = row.group
        super().write(accumulators, row.first, column.first)


class CopyToGroup(CopyBack):
    """Boxes are stored to the result of a group, or added to it."""

    group: Any = None

    def __init__(self, d: Pointer, adds: bool) -> None:
        super().__init__(d)
        tensor: Any = STORES[adds]["global"]["shared::cta"]
        self.instruction = (tensor.add if adds else tensor).bulk_group

    def copy(self, of: TileStore, copy: u32, first: tuple[Any, Any]) -> None:
        """Start the copy of a box, by this thread."""
        row, column = first
        there = column, row, self.group
        self.instruction((self.d, tuple(one.view(s32) for one in there)), of.tile.at(0, 0, copy))


class InnerGroups(Block):
    """Tiles of all groups; `extents` are the number of groups, of tokens, m and n."""

    early = False

    def __init__(
        self, plan: Plan, offsets: pointer[u32], extents: tuple[u32, u32, u32, u32], d: Pointer, adds: bool
    ) -> None:
        self.plan, self.offsets, self.extents, self.d, self.adds = plan, offsets, extents, d, adds

    def share(self, rank: object) -> InnerShare:
        return InnerShare(self.plan, self.offsets, self.extents)

    def store(self, memory: Pointer, residual: object) -> TileStore:
        return InnerStore(self.plan.formats.out, self.plan.boxes, memory, CopyToGroup(self.d, self.adds))


def plan_of(formats: Formats, shape: Shape) -> Plan:
    """How the kernel is laid out."""
    operands = (
        Tokens(shape.rows, False, shape.stages, 1, formats.element),
        Tokens(shape.columns, False, shape.stages, 1, formats.element, span=shape.span),
    )
    layout = Layout(False, False, element=formats.element, out_size=formats.out_size)
    return Plan(formats, shape, operands, shape.boxes(layout))


@cache
def specialize(formats: Formats, shape: Shape, adds: bool) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, the ends of groups, and all extents."""
    plan = plan_of(formats, shape)

    @kernel(**plan.directives)
    def wgmma_inner_grouped_gemm(
        a: tensor_map, b: tensor_map, d: tensor_map, offsets: pointer[u32], groups: u32, tokens: u32, m: u32, n: u32
    ) -> None:
        run(plan, [[a.generic], [b.generic]], InnerGroups(plan, offsets, (groups, tokens, m, n), d.generic, adds))

    return wgmma_inner_grouped_gemm


def choose(groups: int, tokens: int, m: int, n: int, out_size: int, emulated: bool) -> Shape:
    """The variant: the fastest on the GPU, or one that is cheap on the emulator."""
    if emulated:
        return Shape(groups=1, columns=64, stages=2)
    return fastest(InnerGrouped.of(groups, tokens, m, n, out_size))


def launch(
    formats: Formats,
    matrices: tuple[Array, Array, Array],
    offsets: Array | int,
    extents: tuple[int, int, int, int],
    shape: Shape,
    adds: bool = False,
) -> Launch:
    """The launch of one variant; `extents` are groups, tokens, m and n."""
    (a, b, d), (groups, _, m, n) = matrices, extents
    plan = plan_of(formats, shape)
    left, right = plan.operands
    tiles = groups * ceil_div(m, shape.rows) * ceil_div(n, shape.columns)
    args = [left.map(a), right.map(b), plan.boxes.map(d), offsets, *extents]
    return Launch(
        specialize(formats, shape, adds), grid_of(tiles, shape), shape.threads, args, plan.shared, overlap=True
    )
