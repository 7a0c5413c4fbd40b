"""Which tiles of keys a block has: all tiles of all heads, in a row, are cut into equal pieces, one for each block.

A piece may begin in the middle of one head and end in the middle of another. So all blocks have the same work, however
long the sequences are, and a head is split no more often than that takes. The last block has the first piece: a head's
first keys are then those of the block with the highest number, which waits for others that have started before it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ptxlab.author import ptx, u32
from ptxlab.kernels.mma_attention.softmax import ALL

LANES = 32


@dataclass
class Item:
    """Tiles of keys that a block attends to for one head: `count` of them, from `tile` on."""

    batch: Any
    head: Any
    length: Any
    tile: Any
    count: Any
    others: Any
    """Blocks after this one that have more tiles of the head."""
    left: Any
    """Tiles of further heads that this block has."""

    def set(self, other: Item) -> None:
        """Become the other one."""
        for one in fields(self):
            getattr(self, one.name).set(getattr(other, one.name))

    def is_not(self, other: Item) -> Any:
        """Whether the two differ."""
        bits = u32(0)
        for one in fields(self):
            bits = bits | (getattr(self, one.name) ^ getattr(other, one.name))
        return bits != 0


class Schedule:
    """Numbers all tiles: sequence after sequence, head after head. No length counts more than there are positions."""

    def __init__(self, lengths: Any, batch: Any, heads: Any, positions: Any, keys: int) -> None:
        self.lengths, self.batch, self.heads, self.positions, self.keys = lengths, batch, heads, positions, keys
        self.lane = ptx.tid.x & (LANES - 1)
        self.share, self.seen = u32(), u32()
        self.piece = ptx.nctaid.x - 1 - ptx.ctaid.x

    def find(self) -> Item:
        """What this block has first; of nothing the count is 0. The first 32 lengths are read once.

        An earlier kernel may still be writing them: whatever they are, the item is within the cache.
        """
        self.seen.set(self.read())
        total = over_lanes(self._tiles_of(self.seen, self.lane))
        for first in ptx.range(u32(LANES), self.batch, LANES):
            total += over_lanes(self._tiles_of(self._length(first + self.lane), first + self.lane))
        total = total * self.heads
        self.share.set((total + ptx.nctaid.x - 1) // ptx.nctaid.x)
        start = self.piece * self.share
        item = Item(*(u32(0) for _ in fields(Item)))
        with ptx.when(start < total):
            before = self._sequence_of(start, item)
            tiles = tiles_of(item.length, self.keys)
            item.head.set(ptx.min.u32((start - before) // tiles, self.heads - 1))
            item.tile.set(ptx.min.u32(start - before - item.head * tiles, tiles - 1))
            item.left.set(ptx.min.u32(self.share, total - start))
            self._count(item, tiles)
        return item

    def read(self) -> Any:
        """The length of the sequence with this lane's number."""
        return self._length(self.lane)

    def may_have_changed(self, lengths: Any) -> Any:
        """Whether there are lengths that are not those of `find`, or more than were read now."""
        more = ptx.selp.b32(1, 0, self.batch > LANES, out=u32())
        return ptx.vote.sync.any.pred(((lengths ^ self.seen) | more) != 0, ALL)

    def next(self, item: Item) -> None:
        """Continue with the next head."""
        item.tile.set(u32(0))
        item.head += 1
        with ptx.when(item.head == self.heads):
            item.head.set(u32(0))
            item.batch += 1
            item.length.set(self._length(item.batch))
        self._count(item, tiles_of(item.length, self.keys))

    def _count(self, item: Item, tiles: Any) -> None:
        """Set how many tiles there are of this head, here and elsewhere."""
        item.count.set(ptx.min.u32(tiles - item.tile, item.left))
        item.left -= item.count
        item.others.set((tiles - item.tile - item.count + self.share - 1) // self.share)

    def _length(self, batch: Any) -> Any:
        """The keys of a sequence, past the L1 cache, where they could be old; none after the last sequence."""
        length = u32(0)
        ptx.ld.relaxed.gpu.global_.u32(self.lengths + batch, out=length, when=batch < self.batch)
        return ptx.min.u32(length, self.positions)

    def _tiles_of(self, length: Any, batch: Any) -> Any:
        """Tiles of a sequence; none after the last one."""
        return ptx.selp.b32(tiles_of(length, self.keys), 0, batch < self.batch, out=u32())

    def _sequence_of(self, start: Any, item: Item) -> Any:
        """Set the sequence that a tile is of, and its length; return the number of the sequence's first tile."""
        before, first, lengths = u32(0), u32(0), u32()
        lengths.set(self.seen)
        with ptx.loop():
            tiles = self._tiles_of(lengths, first + self.lane)
            up_to = inclusive(tiles, self.lane) * self.heads + before  # the lane's own sequence included
            count = ptx.popc.b32(ptx.vote.sync.ballot.b32(up_to <= start, ALL), out=u32())
            last = ptx.shfl.sync.idx.b32(up_to, ptx.max.u32(count, 1) - 1, 31, ALL, out=u32())
            before.set(ptx.selp.b32(last, before, count > 0, out=u32()))
            item.batch.set(ptx.min.u32(first + count, self.batch - 1))  # if lengths have changed in between
            item.length.set(ptx.shfl.sync.idx.b32(lengths, item.batch - first, 31, ALL, out=u32()))
            first += LANES
            ptx.leave_when(count < LANES)
            ptx.leave_when(first >= self.batch)
            lengths.set(self._length(first + self.lane))
        return before


def tiles_of(length: Any, keys: int) -> Any:
    """Tiles of so many keys each; of an empty sequence there is one, too, which writes its zeros."""
    return (ptx.max.u32(length, 1) + (keys - 1)) // keys


def over_lanes(value: Any) -> Any:
    """The sum over a warp."""
    return ptx.redux.sync.add.u32(value, ALL)


def inclusive(value: Any, lane: Any) -> Any:
    """The sum over the lanes up to this one."""
    for distance in (1, 2, 4, 8, 16):
        other = ptx.shfl.sync.up.b32(value, distance, 0, ALL, out=u32())
        value = value + ptx.selp.b32(other, 0, lane >= distance, out=u32())
    return value
