"""Whether threads read a box that was copied, for MMAs by their warp, as its tensor map has it.

The eight rows of a matrix are in one column of the box, by the swizzle of the map: with `ldmatrix` eight lanes give
their addresses, and fragments that are loaded otherwise have a row for each four lanes. If they are not in one column,
but are by another swizzle, the threads and the map do not agree. Neither do they if the MMA is of another type.
"""

from __future__ import annotations

from ptxlab.emulate.abi.findings import MismatchReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import ROWS as REMEMBERED_ROWS
from ptxlab.emulate.abi.thread_parts import MatrixRow
from ptxlab.emulate.abi.tiles import TileRead, WrittenTile
from ptxlab.emulate.runtime.order.tile_layouts import is_mistyped, report_tile, tile_at
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

ROWS = 8
SWIZZLES = 4


@native
def note_row(thread: Pointer[Thread], offset: u64, apart: u32, instruction: u32) -> None:
    """A lane reads a row of a matrix; the last of the eight lanes, so far apart, compares all of them."""
    thread.order.rows += 1
    row = cast(Pointer[MatrixRow], thread.order.latest_rows + instruction % REMEMBERED_ROWS)
    row.offset = offset
    row.instruction = instruction + 1
    row.number = thread.order.rows
    first = thread.block.threads + (thread.number - thread.lane // apart % ROWS * apart)
    for index in range(ROWS):
        other = row_of(first, index * apart, instruction)
        if other.instruction != instruction + 1 or other.number != row.number:
            return
    tile = tile_at(thread.block, offset)
    if cast(u64, tile) == 0 or tile.rank != 2 or is_column(first, apart, tile, tile.swizzle, instruction):
        return
    for swizzle in range(SWIZZLES):
        if is_column(first, apart, tile, swizzle, instruction):
            report_read(thread, tile, swizzle, 0, MismatchReason.MATRIX, instruction)
            return


@native
def note_fragment(thread: Pointer[Thread], offset: u64, type: u32, instruction: u32) -> None:
    """A lane reads elements that are multiplied as a type, as a tensor map would have it."""
    tile = tile_at(thread.block, offset)
    if cast(u64, tile) != 0 and is_mistyped(type, tile):
        report_read(thread, tile, tile.swizzle, type, MismatchReason.FRAGMENT, instruction)


@native
def row_of(first: Pointer[Thread], lane: u32, instruction: u32) -> Pointer[MatrixRow]:
    """The row that a lane after the first one has read by an instruction, if its number is right."""
    thread = first + lane
    return cast(Pointer[MatrixRow], thread.order.latest_rows + instruction % REMEMBERED_ROWS)


@native
def report_read(
    thread: Pointer[Thread], tile: Pointer[WrittenTile], swizzle: u32, type: u32, reason: u32, instruction: u32
) -> None:
    """Note what eight lanes read, as if by a descriptor."""
    read = TileRead(descriptor=(u64(4) - u64(swizzle)) << 62, lines=ROWS, chunks=1, type=type)
    report_tile(thread, read, tile, reason, instruction)


@native
def is_column(
    first: Pointer[Thread], apart: u32, tile: Pointer[WrittenTile], swizzle: u32, instruction: u32
) -> boolean:
    """Whether the rows of eight lanes, all of one tile, are in the same column of it by a swizzle."""
    column: u64 = 0
    for index in range(ROWS):
        offset: u64 = row_of(first, index * apart, instruction).offset
        plain: u64 = offset ^ ((offset >> 7 & ((u64(1) << swizzle) - 1)) << 4)
        if plain < tile.offset or plain >= tile.offset + u64(tile.size):
            return False
        found: u64 = (plain - tile.offset) % u64(tile.pitch)
        if index != 0 and found != column:
            return False
        column = found
    return True


CALLED = (note_row, note_fragment)
