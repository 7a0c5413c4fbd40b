"""Whether `ldmatrix` reads a box that was copied by the swizzle that its tensor map has.

Lanes give the addresses of the eight rows of a matrix, which are in one column of the box, by the swizzle of the map.
If they are not, but are by another swizzle, the threads and the map do not agree.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tiles import TileRead, WrittenTile
from ptxlab.emulate.runtime.order.tile_layouts import MATRIX, report_tile, tile_at
from ptxlab.isa.descriptor import CHUNK
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

ROWS = 8
SWIZZLES = 4


@native
def note_row(thread: Pointer[Thread], offset: u64, instruction: u32) -> None:
    """A lane reads a row of a matrix; the last of the eight lanes compares all of them."""
    thread.order.row = offset
    thread.order.row_at = instruction + 1
    thread.order.rows += 1
    first = thread.block.threads + (thread.number - thread.lane % ROWS)
    for lane in range(ROWS):
        other = first + lane
        if other.order.row_at != instruction + 1 or other.order.rows != thread.order.rows:
            return
    tile = tile_at(thread.block, offset)
    if cast(u64, tile) == 0 or tile.rank != 2 or is_column(first, tile, tile.swizzle):
        return
    for swizzle in range(SWIZZLES):
        if is_column(first, tile, swizzle):
            read = TileRead(
                descriptor=(u64(4) - u64(swizzle)) << 62,
                is_tensor=0,
                major=0,
                first=0,
                lines=ROWS,
                chunks=1,
                is_b=0,
                type=0,
                unused=0,
            )
            report_tile(thread, read, tile, MATRIX, instruction)
            return


@native
def is_column(first: Pointer[Thread], tile: Pointer[WrittenTile], swizzle: u32) -> boolean:
    """Whether the rows of eight lanes, all of one tile, are in the same column of it by a swizzle."""
    column: u64 = 0
    for lane in range(ROWS):
        offset: u64 = first[lane].order.row
        plain: u64 = offset ^ ((offset >> 7 & ((u64(1) << swizzle) - 1)) << 4)
        if plain < tile.offset or plain >= tile.offset + u64(tile.size) or plain % CHUNK != 0:
            return False
        found: u64 = (plain - tile.offset) % u64(tile.pitch)
        if lane != 0 and found != column:
            return False
        column = found
    return True


CALLED = (note_row,)
