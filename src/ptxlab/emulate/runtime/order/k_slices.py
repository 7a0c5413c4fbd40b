"""Which k an MMA reads of boxes that were copied: the same of A and of B, and all of it.

A K slice is what one MMA reads: some bytes of each row of a K-major tile, some rows of an MN-major one. An MMA that
reads another slice of A than of B, from tiles of as many slices, multiplies what does not belong together: one of them
was not advanced, or by too much. If both were, a slice between others is never read, or the same slices are multiplied
twice while others are not read; that is known when the tile is overwritten, or the block ends. Slices of zeros are left
out on purpose, and what is read otherwise counts as read.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.findings import MismatchReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tiles import TILES, TileRead, WrittenTile
from ptxlab.emulate.runtime.order.early_waits import cell_at
from ptxlab.emulate.runtime.order.shadow import KIND
from ptxlab.emulate.runtime.order.tile_layouts import (
    is_zero,
    offset_in,
    report_mismatch,
    report_tile,
    swizzle_of,
    tile_at,
)
from ptxlab.emulate.runtime.schedule.quiescence import mixed
from ptxlab.isa.units.descriptor import CHUNK, MN_MAJOR
from ptxlab.native import Pointer, boolean, cast, copy_bytes, native, size_of, struct, u8, u32, u64

TILE_SIZE = size_of(WrittenTile)
MOST_SLICES = 32
NO_SLICE = 0xFFFFFFFF
DISAGREED = 0xFFFFFFFF  # as a number of slices: MMAs do not agree on what one is


@struct
@dataclass
class Slice:
    """A K slice of a tile."""

    number: u32 = 0
    count: u32 = 0  # how many the tile has
    lines: u32 = 0  # the first row of it that is read, of an MN-major tile the first byte of its rows
    unused: u32 = 0


@native
def note_tile(thread: Pointer[Thread], block: Pointer[Block], tile: WrittenTile) -> None:
    """A copy writes a box to shared memory: in place of what it overwrites, or else of the oldest."""
    tiles = block.order.tiles
    slot: u32 = tiles.count % TILES
    for index in range(min(tiles.count, u32(TILES))):
        if tiles.written[index].offset == tile.offset:
            slot = index
            check_slices(thread, block, cast(Pointer[WrittenTile], tiles.written + index))
    tiles.copies += 1
    tile.number = tiles.copies
    copy_bytes(cast(Pointer[u8], tiles.written + slot), cast(Pointer[u8], tile), TILE_SIZE)
    if slot == tiles.count % TILES:
        tiles.count += 1


@native
def note_operand(thread: Pointer[Thread], read: TileRead, instruction: u32) -> None:
    """Compare B of `wgmma` with A, which the thread has read before it."""
    tiles = thread.block.order.tiles
    if thread.worker.checks == 0:
        return
    note_slice(thread.block, read, instruction)
    if read.is_b == 0:
        tiles.a = read.descriptor
        tiles.a_thread = thread.number
        tiles.a_instruction = instruction
        tiles.a_major = read.major
        tiles.a_lines = read.lines
        tiles.a_chunks = read.chunks
    elif tiles.a_instruction == instruction and tiles.a_thread == thread.number and tiles.a != 0:
        a = TileRead(descriptor=tiles.a, major=tiles.a_major, lines=tiles.a_lines, chunks=tiles.a_chunks)
        compare_slices(thread, thread.block, a, read, instruction)


@native
def compare_slices(thread: Pointer[Thread], block: Pointer[Block], a: TileRead, b: TileRead, instruction: u32) -> None:
    """Report A and B that are not at the same slice of tiles with as many, and remember what was multiplied."""
    left = Slice()
    right = Slice()
    first = find_slice(block, a, left)
    second = find_slice(block, b, right)
    if cast(u64, first) == 0 or cast(u64, second) == 0:
        return
    lines: u64 = u64(left.lines) << 32 | u64(right.lines)
    note_product(first, second, left.number, mixed(lines, u64(second.number) << 32 | u64(thread.number)))
    if left.count != right.count or left.number == right.number:
        return
    found = report_mismatch(thread, b, MismatchReason.DEPTH, instruction)
    if cast(u64, found) != 0:
        found.mismatch.a_slice = left.number
        found.mismatch.b_slice = right.number


@native
def note_product(a: Pointer[WrittenTile], b: Pointer[WrittenTile], number: u32, partner: u64) -> None:
    """Remember whether one thread multiplies the same parts of two tiles again."""
    if a.partner != partner:
        a.partner = partner
        a.multiplied = 0
    elif a.multiplied >> number & 1 != 0:
        a.repeats = 1
        b.repeats = 1
    a.multiplied = a.multiplied | u32(1) << number


@native
def find_slice(block: Pointer[Block], read: TileRead, found: Slice) -> Pointer[WrittenTile]:
    """Which slice of its tile a matrix is; null if that cannot be known, as not all of a row of it is one of a box."""
    nothing = cast(Pointer[WrittenTile], 0)
    tile: Pointer[WrittenTile] = tile_at(block, offset_in(read, 0, 0))
    start: u64 = (read.descriptor & 0x3FFF) << 4
    if cast(u64, tile) == 0 or start < tile.offset or tile.rank != 2:
        return nothing
    if tile.swizzle == 0 or tile.swizzle != swizzle_of(read) or tile.pitch != u32(CHUNK) << tile.swizzle:
        return nothing
    inside: u32 = u32(start - tile.offset)
    width: u32 = read.chunks * CHUNK
    if read.major == MN_MAJOR:
        if read.lines == 0 or tile.size // tile.pitch % read.lines != 0:
            return nothing
        found.number = inside // tile.pitch // read.lines
        found.count = tile.size // tile.pitch // read.lines
        found.lines = inside % tile.pitch
    else:
        if width == 0 or tile.pitch % width != 0:
            return nothing
        found.number = inside % tile.pitch // width
        found.count = tile.pitch // width
        found.lines = inside // tile.pitch
    return tile if found.number < found.count and found.count <= MOST_SLICES else nothing


@native
def note_slice(block: Pointer[Block], read: TileRead, instruction: u32) -> None:
    """An MMA reads a slice of a tile."""
    slice = Slice()
    tile = find_slice(block, read, slice)
    if cast(u64, tile) == 0:
        return
    way: u32 = slice.count << 1 | read.major
    if tile.slices == 0:
        tile.slices = way
    elif tile.slices != way:
        tile.slices = DISAGREED
    tile.read = tile.read | u32(1) << slice.number
    tile.reader = instruction


@native
def check_slices(thread: Pointer[Thread], block: Pointer[Block], tile: Pointer[WrittenTile]) -> None:
    """A tile is over: report slices that no MMA has read, between others, or while others were multiplied twice."""
    if thread.worker.checks == 0 or tile.read == 0 or tile.slices == DISAGREED:
        return
    count: u32 = tile.slices >> 1
    last: u32 = NO_SLICE
    unread: u32 = NO_SLICE
    for number in range(count):
        if tile.read >> number & 1 != 0:
            last = number
            continue
        is_between: boolean = tile.read >> number != 0 and last != NO_SLICE
        if unread == NO_SLICE and (is_between or tile.repeats != 0):
            unread = number if is_left_out(thread, block, tile, number, count) else unread
    if unread == NO_SLICE:
        return
    whole = TileRead(descriptor=tile.offset >> 4, major=tile.slices & 1, lines=count)
    found = report_tile(thread, whole, tile, MismatchReason.UNREAD_SLICES, tile.reader)
    if cast(u64, found) != 0:
        found.mismatch.unread_slice = unread


@native
def is_left_out(
    thread: Pointer[Thread], block: Pointer[Block], tile: Pointer[WrittenTile], number: u32, count: u32
) -> boolean:
    """Whether a slice is as a copy wrote it, not all zeros, and nothing has read it."""
    is_mn: boolean = tile.slices & 1 == MN_MAJOR
    rows: u32 = tile.size // tile.pitch
    width: u32 = tile.pitch if is_mn else tile.pitch // count
    first: u32 = number * (rows // count) if is_mn else u32(0)
    lines: u32 = rows // count if is_mn else rows
    has_value: boolean = False
    for row in range(first, first + lines):
        for chunk in range(width // CHUNK):
            column: u32 = chunk if is_mn else number * (width // CHUNK) + chunk
            plain: u64 = tile.offset + u64(row) * u64(tile.pitch) + u64(column) * CHUNK
            offset: u64 = plain ^ ((plain >> 7 & ((u64(1) << tile.swizzle) - 1)) << 4)
            cell = cell_at(block, offset)
            if cast(u64, cell) == 0 or cell.instruction != tile.instruction:
                return False
            reader: u32 = cell.next
            while reader != 0:
                if thread.worker.history.chained.items[reader].flags & KIND == LOAD:
                    return False
                reader = thread.worker.history.chained.items[reader].next
            has_value = has_value or not is_zero(block, offset)
    return has_value


@native
def check_all_slices(thread: Pointer[Thread]) -> None:
    """The last thread of a block ends: all its tiles are over."""
    tiles = thread.block.order.tiles
    if thread.worker.checks == 0:
        return
    for index in range(min(tiles.count, u32(TILES))):
        check_slices(thread, thread.block, cast(Pointer[WrittenTile], tiles.written + index))
