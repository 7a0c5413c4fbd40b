"""Sequences of unequal lengths, one after the other in memory, as a list of tiles that a kernel of its own makes.

Where sequences start is in the GPU's memory. One block lists the tiles of all sequences, those with most keys first,
and makes two tensor maps for each sequence that end where it does: copies of values then fill what comes after it with
zeros, and copies of the answer leave it as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Scalar, b32, ptx, s32, u32
from ptxlab.kernels.parts.reductions import prefix_sum
from ptxlab.kernels.wgmma_attention.order import Order, Work
from ptxlab.kernels.wgmma_attention.paged import CachedKeys
from ptxlab.kernels.wgmma_attention.plan import Plan

if TYPE_CHECKING:
    from ptxlab.kernels.wgmma_attention.consumer import Current
    from ptxlab.kernels.wgmma_attention.order import Found

LISTING_THREADS = 1024  # of the block that lists tiles
LANES = 32
RECORD = 8  # numbers of a tile in the list; the first record has how many tiles there are
BUCKETS = 256  # tiles are sorted by the number of their keys' tiles: its exponent, and three bits of its mantissa
MAP = 128  # bytes
VALUES, ANSWERS = 0, MAP  # where the maps of a sequence are
ACQUIRE = ptx.fence.proxy["tensormap::generic"].acquire.gpu
RELEASE = ptx.fence.proxy["tensormap::generic"].release.gpu
REPLACE = ptx.tensormap.replace.tile


def capacity(queries: int, sequences: int, plan: Plan) -> int:
    """Tiles that the list has at most."""
    return queries // plan.rows + sequences


class PackedOrder(Order):
    """Tiles by number: `together` heads, one record of the list after the other."""

    def __init__(
        self,
        plan: Plan,
        counter: Pointer,
        sizes: tuple[u32, ...],
        together: u32,
        window: u32,
        lists: tuple[Pointer, Pointer],
    ) -> None:
        super().__init__(plan, counter, sizes, together, window)
        self.units, self.maps = lists

    def begin(self) -> None:
        """Wait for the list."""
        ptx.griddepcontrol.wait()
        self.down = ptx.ld["global"].u32(self.units)
        self.count = self.down * self.all_heads
        ptx.exit(when=ptx.ctaid.x >= self.count)  # the list may have fewer tiles than there are blocks

    def work(self, number: u32) -> Work:
        """The tile of a number; it has the address of its record for a batch."""
        down, head = self.divide(number)
        record = (ptx.min.u32(down, self.down - 1) + 1) * RECORD
        row, keys = self.field(record, 0), self.field(record, 5)
        return Work(row.view(s32), head, record, keys)

    def field(self, record: u32, number: int) -> u32:
        """A number of a record."""
        return ptx.ld["global"].u32(self.units + record + number)

    def queries_at(self, tile: Current | Found) -> tuple[s32, u32, u32]:
        """Row, head and batch of the queries in memory."""
        return tile.row + self.field(tile.batch, 2).view(s32), tile.head, u32(0)

    def keys_at(self, tile: Found) -> tuple[u32, u32]:
        """The row of the first key of the sequence, and its batch, or its number where a table has its pages."""
        return self.field(tile.batch, 4), self.field(tile.batch, 1) if self.plan.page else u32(0)

    def logs_at(self, tile: Any, row: Any) -> tuple[object, object]:
        """Where the log-sum-exp of a row is, and how many rows there are."""
        return tile.head * self.queries + self.field(tile.batch, 2) + row, self.field(tile.batch, 3)

    def values_map(self, tile: Found, whole: Pointer) -> Any:
        """The map of the values of the sequence."""
        return self._map(tile, VALUES)

    def output_map(self, tile: Current, whole: Pointer) -> Any:
        """The map of the answer of the sequence."""
        return self._map(tile, ANSWERS)

    def _map(self, tile: Current | Found, which: int) -> Scalar:
        found = self.maps.address + ptx.mul.wide.u32(self.field(tile.batch, 1), 2 * MAP) + which
        ACQUIRE(found, MAP)
        return found


def list_tiles(listed: Listed, most: u32, lists: tuple[Pointer, Pointer], templates: tuple[Pointer, Pointer]) -> None:
    """List tiles, `most` of them at most, and make the maps of sequences from those of values and of the answer.

    This is a kernel of one block. The first warps list what the last ones make maps of.
    """
    (units, maps), (values, answer) = lists, templates
    for sequence, query, key in listed.sequences((LISTING_THREADS // LANES - 1) - ptx.tid.x // LANES):
        own = maps + sequence * (2 * MAP)
        shorten([(values, own + VALUES, key.end), (answer, own + ANSWERS, query.end)])
    counts = ptx.shared(u32, BUCKETS, name="counts")
    with ptx.when(ptx.tid.x < BUCKETS):
        counts[ptx.tid.x] = u32(0)
    ptx.bar.sync(0)
    for _, bucket in listed.tiles():
        ptx.red.shared.add.u32(counts.at(bucket), 1)
    ptx.bar.sync(0)
    with ptx.when(ptx.tid.x < LANES):
        total = add_up(counts)
        units[0] = ptx.min.u32(total, most)
    ptx.bar.sync(0)
    for record, bucket in listed.tiles():
        number = ptx.atom.shared.add.u32(counts.at(bucket), 1)
        with ptx.when(number < most):
            there = units + (number + 1) * RECORD
            ptx.st["global"].v4.u32(there, tuple(record[:4]))
            ptx.st["global"].v2.u32(there + 4, tuple(record[4:]))


class Range:
    """The rows of a sequence; one without rows is after all others."""

    def __init__(self, starts: Pointer, sequence: u32, rows: u32) -> None:
        start, end = (ptx.min.u32(ptx.ld["global"].s32(starts + sequence + next).view(u32), rows) for next in (0, 1))
        self.length = ptx.max.u32(start, end) - start
        self.start = ptx.selp.u32(rows, start, self.length == 0)
        self.end = self.start + self.length


class Listed:
    """What the block lists: each warp has every so many sequences, each lane every so many tiles of one."""

    def __init__(self, plan: Plan, starts: tuple[Pointer, Pointer], sizes: tuple[u32, u32, u32], window: u32) -> None:
        self.plan, self.starts, self.window = plan, starts, window
        self.count, self.queries, self.keys = sizes

    def sequences(self, warp: u32) -> Any:
        """Each sequence of a warp: its number, its queries and its keys."""
        for sequence in ptx.range(warp, self.count, LISTING_THREADS // LANES):
            query, page = Range(self.starts[0], sequence, self.queries), self.plan.page
            keys = self.starts[1], sequence, self.keys
            yield sequence, query, CachedKeys(*keys, page) if page else Range(*keys)

    def tiles(self) -> Any:
        """The record of each tile of this lane, and the bucket that it belongs to."""
        for sequence, query, key in self.sequences(ptx.tid.x // LANES):
            for row in ptx.range(ptx.laneid * self.plan.rows, query.length, LANES * self.plan.rows):
                first, origin = row, query.start
                if self.plan.page:  # queries are the last tokens
                    before = key.length - query.length
                    first, origin = row + before, origin - before
                start, end = self.plan.span(first.view(s32), key.length, self.window)
                bits = ptx.mov.b32(ptx.cvt.rn.f32.u32(end - start), out=u32()) >> 20
                bucket = (BUCKETS - 1) - ptx.min.u32(bits - (127 << 3), BUCKETS - 1)
                yield [first, sequence, origin, query.length, key.start, key.length], bucket


def add_up(counts: Pointer) -> b32:
    """Replace the number of tiles in each bucket by that in all before; a warp does it. Return the number of all."""
    each = BUCKETS // LANES
    places = [counts.at(ptx.laneid * each + number) for number in range(each)]
    own = [ptx.ld.shared.u32(place) for place in places]
    total = sum(own[1:], own[0])
    running = prefix_sum(total)
    before = running - total
    for place, count in zip(places, own, strict=True):
        ptx.st.shared.u32(place, before)
        before = before + count
    return ptx.shfl.sync.idx.b32(running, LANES - 1, 31, -1)


def shorten(maps: list[tuple[Pointer, Pointer, u32]]) -> None:
    """Make tensor maps in global memory: of each, from which map, where, and the row it ends at. A warp does it."""
    words = [ptx.ld.b32(template.generic + ptx.mul.wide.u32(ptx.laneid, 4)) for template, _, _ in maps]
    for word, (_, there, _) in zip(words, maps, strict=True):
        ptx.st["global"].b32(there + ptx.laneid * 4, word)
    ptx.bar.warp.sync(-1)
    with ptx.when(ptx.laneid == 0):
        for _, there, end in maps:
            REPLACE.global_dim["global"].b1024.b32(there, 1, end)
        RELEASE()
