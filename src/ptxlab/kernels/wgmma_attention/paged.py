"""Keys and values in pages of a cache, as a table says: what differs from sequences one after the other.

Queries are packed. A map of the cache has pages for a batch, so that a TMA copy brings positions of one page; what is
after the last key of a sequence comes from after the end of a map, as zeros. Queries are the last of their sequence's
tokens: rows are counted from its first key, so that masks are as elsewhere, and are negative where keys are fewer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, ptx, s32, u32, u64
from ptxlab.kernels.wgmma_attention.order import Dealt, Found, Order
from ptxlab.kernels.wgmma_attention.plan import Plan
from ptxlab.kernels.wgmma_attention.producer import COPY, Producer

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile


LANES = 32


class CachedKeys:
    """The keys of a sequence; where there are none, the first is after its page, where a copy finds zeros."""

    def __init__(self, lengths: Pointer, sequence: u32, positions: u32, page: int) -> None:
        self.length = ptx.min.u32(ptx.ld["global"].s32(lengths + sequence).view(u32), positions)
        self.start = ptx.selp.u32(page, 0, self.length == 0)
        self.end = ptx.max.u32(self.length - last_page(self.length, page) * page, 1)
        """Where the last page of the sequence ends."""


def last_page(keys: u32, page: int) -> u32:
    """The number of a sequence's last page."""
    return (ptx.max.u32(keys, 1) - 1) // page


class WarpDealt(Dealt):
    """Numbers of tiles for a warp, of which the first lane counts and hands them on."""

    def draw(self) -> u32:
        """The next number."""
        number = u32()
        with ptx.when(ptx.laneid == 0):
            number.set(super().draw())
        return ptx.shfl.sync.idx.b32(number, 0, LANES - 1, -1, out=u32())

    def hand(self, number: u32) -> None:
        """Hand a number to the consumers."""
        assert self.side is not None
        self.side.wait()
        with ptx.when(ptx.laneid == 0):
            self.order.numbers[self.side.index] = number
            self.side.arrive()
        self.side.advance()


class PagedProducer(Producer):
    """A warp that issues all copies: of keys and values, each lane those of one page, which it finds in a table."""

    def __init__(self, plan: Plan, table: tuple[Pointer, u32], *others: Any) -> None:
        super().__init__(plan, *others)
        self.table, self.columns = table
        self.last, self.pages = u32(), u64()
        """The last page of the tile's sequence, and where its pages are listed."""

    def deal(self, order: Order) -> Dealt:
        return WarpDealt(order)

    def alone(self) -> AbstractContextManager[object]:
        return ptx.when(ptx.laneid == 0)

    def begin(self, tile: Found) -> tuple[Any, ...]:
        """Copy the last keys of a tile, whose sequence is its batch."""
        _, sequence = tile.order.keys_at(tile)
        self.last.set(last_page(tile.keys, self.plan.page))
        self.pages.set(ptx.mad.wide.u32(sequence * self.columns, 4, self.table.address))
        return super().begin(tile)

    def copy(self, stage: Side, tile: Tile, source: Pointer | u64, there: tuple[Any, ...]) -> None:
        """Fill a stage as soon as it is empty; `source` is a map of values that ends with the sequence.

        Which page a lane copies from is read before, while the stage is in use.
        """
        plan, (first, head, _) = self.plan, there
        is_keys, lane = stage is self.keys, ptx.laneid
        rows, boxes = plan.key_rows, plan.boxes if is_keys else plan.value_boxes
        with ptx.when(lane < plan.keys // rows):
            position = first.view(u32) + lane * rows
            index = ptx.min.u32(position // plan.page, self.last)
            page = ptx.ld.global_.nc.s32(ptx.pointer_to(s32, "global", ptx.mad.wide.u32(index, 4, self.pages)))
            stage.wait()
            with self.alone():
                stage.expect(plan.key_bytes if is_keys else plan.value_bytes)
            map = self.maps[1] if is_keys else ptx.selp.b64(source, self.maps[2], index == self.last)
            for box in range(boxes):
                at = s32(box * plan.box), (position - index * plan.page).view(s32), head.view(s32), page
                COPY(tile.at(lane * rows, 0, stage.index * boxes + box), (map, at), stage.barrier)
        stage.advance()
