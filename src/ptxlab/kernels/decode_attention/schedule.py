"""Which tiles of keys a block has: all tiles of all heads, in a row, are cut into equal pieces, one for each block.

The last block has the first piece: a head's first keys are then those of the block with the highest number, which waits
for others that have started before it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ptxlab.author import Pointer, pred, ptx, u32
from ptxlab.kernels.mma_attention.softmax import ALL
from ptxlab.kernels.parts.reductions import prefix_sum

LANES = 32


@dataclass
class Item:
    """Tiles of keys that a block attends to for one head: `count` of them, from `tile` on.

    There are more of them in `others` blocks after this one, and this one has `left` tiles of further heads.
    """

    batch: u32
    head: u32
    length: u32
    tile: u32
    count: u32
    others: u32
    left: u32

    @property
    def registers(self) -> list[u32]:
        """All of it."""
        return [getattr(self, one.name) for one in fields(self)]


class Schedule:
    """Numbers all tiles: sequence after sequence, head after head. No length counts more than there are positions."""

    def __init__(self, lengths: Pointer, batch: u32, heads: u32, positions: u32, keys: int) -> None:
        self.lengths, self.batch, self.heads, self.positions, self.keys = lengths, batch, heads, positions, keys
        self.lane, self.share, self.seen, self.now = ptx.tid.x & (LANES - 1), u32(), u32(), u32()
        self.more = ptx.selp.b32(1, 0, batch > LANES, out=u32())
        self.piece = ptx.nctaid.x - 1 - ptx.ctaid.x
        self.item = Item(*(u32() for _ in fields(Item)))

    def find(self) -> None:
        """Set what this block has first; of nothing the count is 0. The first 32 lengths are read once.

        An earlier kernel may still be writing them: whatever they are, the item is within the cache.
        """
        item = self.item
        for one in item.registers:
            one.set(u32(0))
        self.seen.set(self._length_of(self.lane))
        total = ptx.redux.sync.add.u32(self._tiles_of(self.seen, self.lane), ALL)
        for first in ptx.range(u32(LANES), self.batch, LANES):
            number = first + self.lane
            total += ptx.redux.sync.add.u32(self._tiles_of(self._length_of(number), number), ALL)
        total = total * self.heads
        self.share.set((total + ptx.nctaid.x - 1) // ptx.nctaid.x)
        start = self.piece * self.share
        with ptx.when(start < total):
            before = self._find_sequence(start)
            tiles = self._tiles_of(item.length)
            item.head.set(ptx.min.u32((start - before) // tiles, self.heads - 1))
            item.tile.set(ptx.min.u32(start - before - item.head * tiles, tiles - 1))
            item.left.set(ptx.min.u32(self.share, total - start))
            self._count()

    def read_again(self) -> None:
        """Read the first 32 lengths again."""
        self.now.set(self._length_of(self.lane))

    def find_again(self) -> pred:
        """Find it again if lengths have changed, or there are more than 32; return whether it is another."""
        is_other = u32(0)
        with ptx.when(ptx.vote.sync.any.pred(((self.now ^ self.seen) | self.more) != 0, ALL)):
            before = [one + 0 for one in self.item.registers]
            self.find()
            self.now.set(self.seen)
            self.more.set(u32(0))
            for one, other in zip(self.item.registers, before, strict=True):
                is_other.set(is_other | (one ^ other))
        return is_other != 0

    def next(self) -> None:
        """Continue with the next head."""
        item = self.item
        item.tile.set(u32(0))
        item.head += 1
        with ptx.when(item.head == self.heads):
            item.head.set(u32(0))
            item.batch += 1
            item.length.set(self._length_of(item.batch))
        self._count()

    def _count(self) -> None:
        """Set how many tiles there are of this head, here and elsewhere."""
        item = self.item
        tiles = self._tiles_of(item.length) - item.tile
        item.count.set(ptx.min.u32(tiles, item.left))
        item.left -= item.count
        item.others.set((tiles - item.count + self.share - 1) // self.share)

    def _length_of(self, batch: u32) -> u32:
        """The keys of a sequence, past the L1 cache, where they could be old; none after the last sequence."""
        length = u32(0)
        ptx.ld.relaxed.gpu.global_.u32(self.lengths + batch, out=length, when=batch < self.batch)
        return ptx.min.u32(length, self.positions)

    def _tiles_of(self, length: u32, batch: u32 | None = None) -> u32:
        """Tiles of a sequence. An empty one has a tile, too, which writes its zeros; none after the last sequence."""
        tiles = (ptx.max.u32(length, 1) + (self.keys - 1)) // self.keys
        return tiles if batch is None else ptx.selp.b32(tiles, 0, batch < self.batch, out=u32())

    def _find_sequence(self, start: u32) -> u32:
        """Set the sequence that a tile is of, and its length; return the number of the sequence's first tile."""
        item, before, first, lengths = self.item, u32(0), u32(0), self.seen + 0
        with ptx.loop():
            tiles = self._tiles_of(lengths, first + self.lane)
            up_to = prefix_sum(tiles, self.lane) * self.heads + before
            count = ptx.popc.b32(ptx.vote.sync.ballot.b32(up_to <= start, ALL), out=u32())
            last = ptx.shfl.sync.idx.b32(up_to, ptx.max.u32(count, 1) - 1, 31, ALL, out=u32())
            before.set(ptx.selp.b32(last, before, count > 0, out=u32()))
            item.batch.set(ptx.min.u32(first + count, self.batch - 1))  # if lengths have changed in between
            item.length.set(ptx.shfl.sync.idx.b32(lengths, item.batch - first, 31, ALL, out=u32()))
            first += LANES
            ptx.leave_when(count < LANES)
            ptx.leave_when(first >= self.batch)
            lengths.set(self._length_of(first + self.lane))
        return before
