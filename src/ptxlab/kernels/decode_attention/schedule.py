"""Which tiles of keys a block has: all tiles of all heads, in a row, are cut into equal pieces, one for each block.

A piece may begin in the middle of one head and end in the middle of another. So all blocks have the same work, however
long the sequences are, and a head is split no more often than that takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import ptx, u32

LANES = 32
ALL = 0xFFFFFFFF


@dataclass
class Item:
    """Tiles of keys that a block attends to for one head: `count` of them, from `tile` on, of `tiles`."""

    batch: Any
    head: Any
    length: Any
    tile: Any
    count: Any
    tiles: Any
    start: Any
    """The number of its first tile, among all tiles of all heads."""


class Schedule:
    """Numbers all tiles: sequence after sequence, head after head."""

    def __init__(self, lengths: Any, batch: Any, heads: Any, keys: int, least: Any) -> None:
        self.lengths, self.batch, self.heads, self.keys = lengths, batch, heads, keys
        self.lane = ptx.tid.x & (LANES - 1)
        total = u32(0)
        for first in ptx.range(u32(0), batch, LANES):
            total += over_lanes(self._tiles_of(first + self.lane))
        self.total = total * heads
        share = (self.total + ptx.nctaid.x - 1) // ptx.nctaid.x
        self.share = ptx.max.u32(share, least)

    def _tiles_of(self, batch: Any) -> Any:
        """Tiles of a sequence; one that is empty has one too, which writes its zeros. None after the last sequence."""
        length = u32(0)
        ptx.ld.global_.u32(self.lengths + batch, out=length, when=batch < self.batch)
        return ptx.selp.b32(self.tiles(length), 0, batch < self.batch, out=u32())

    def tiles(self, length: Any) -> Any:
        """Tiles of so many keys."""
        return tiles_of(length, self.keys)

    def first(self) -> Any:
        """What this block has first, if that is anything: a hint, while an earlier kernel may still write lengths."""
        for item in self.items():
            yield item
            ptx.leave()

    def items(self) -> Any:
        """What this block has, head by head."""
        start, end, batch = u32(), u32(), u32()
        start.set(ptx.ctaid.x * self.share)
        end.set(ptx.min.u32(start + self.share, self.total))
        with ptx.when(start < end):
            before = self._find(start, batch)
            length, tiles = u32(), u32()
            length.set(self.lengths[batch])
            tiles.set(self.tiles(length))
            head, tile = u32(), u32()
            head.set((start - before) // tiles)
            tile.set(start - before - head * tiles)
            with ptx.loop():
                count = ptx.min.u32(tiles - tile, end - start)
                yield Item(batch, head, length, tile, count, tiles, start - tile)
                start += count
                ptx.leave_when(start >= end)
                tile.set(u32(0))
                head += 1
                with ptx.when(head == self.heads):
                    head.set(u32(0))
                    batch += 1
                    length.set(self.lengths[batch])
                    tiles.set(self.tiles(length))

    def _find(self, start: Any, batch: Any) -> Any:
        """Set `batch` to the sequence that a tile is of, and return the number of that sequence's first tile."""
        before = u32(0)
        batch.set(u32(0))
        with ptx.loop():
            tiles = self._tiles_of(batch + self.lane)
            up_to = inclusive(tiles, self.lane) * self.heads + before  # the lane's own sequence included
            passed = ptx.vote.sync.ballot.b32(up_to <= start, ALL)
            count = ptx.popc.b32(passed, out=u32())
            last = ptx.shfl.sync.idx.b32(up_to, ptx.max.u32(count, 1) - 1, 31, ALL, out=u32())
            before.set(ptx.selp.b32(last, before, count > 0, out=u32()))
            batch += count
            ptx.leave_when(batch >= self.batch)  # if lengths have changed in between
            ptx.repeat_when(count == LANES)
        batch.set(ptx.min.u32(batch, self.batch - 1))
        return before


def tiles_of(length: Any, keys: int) -> Any:
    """Tiles of so many keys each; of nothing there is one, too."""
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
