"""Whether an MMA reads the same k of A and of B, where both are K-major and rows of boxes that were copied.

Rows of the same width, with the same swizzle, have the same k at the same bytes. An MMA that reads A and B from
different bytes of such rows multiplies what does not belong together: one of them was not advanced, or by too much.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tiles import TileRead, WrittenTile
from ptxlab.emulate.runtime.order.tile_layouts import DEPTH, offset_in, report_mismatch, swizzle_of, tile_at
from ptxlab.isa.descriptor import CHUNK, MN_MAJOR
from ptxlab.native import Pointer, cast, native, u32, u64

NOWHERE = 1 << 32


@native
def note_operand(thread: Pointer[Thread], read: TileRead, instruction: u32) -> None:
    """Compare B of `wgmma` with A, which the thread has read before it."""
    tiles = thread.block.order.tiles
    if thread.worker.checks == 0 or read.major == MN_MAJOR:
        return
    if read.is_b == 0:
        tiles.a = read.descriptor
        tiles.a_thread = thread.number
        tiles.a_instruction = instruction
        tiles.a_chunks = read.chunks
    elif tiles.a_instruction == instruction and tiles.a_thread == thread.number and tiles.a != 0:
        a = TileRead(descriptor=tiles.a, is_tensor=0, major=read.major, first=0, lines=1, chunks=tiles.a_chunks, is_b=0)
        compare_depth(thread, thread.block, a, read, instruction)


@native
def compare_depth(thread: Pointer[Thread], block: Pointer[Block], a: TileRead, b: TileRead, instruction: u32) -> None:
    """Report A and B that start at different bytes of rows of the same width."""
    if a.major == MN_MAJOR or b.major == MN_MAJOR or a.chunks != b.chunks or swizzle_of(a) != swizzle_of(b):
        return
    left: u64 = depth_in(block, a)
    right: u64 = depth_in(block, b)
    if max(left, right) == NOWHERE or left == right:
        return
    found = report_mismatch(thread, b, DEPTH, instruction)
    if cast(u64, found) != 0:
        found.other_flags = u32(left)
        found.other_thread = u32(right)


@native
def depth_in(block: Pointer[Block], read: TileRead) -> u64:
    """At which byte of a row of its box a matrix starts, if all of a row of the swizzle is one of the box."""
    tile: Pointer[WrittenTile] = tile_at(block, offset_in(read, 0, 0))
    start: u64 = (read.descriptor & 0x3FFF) << 4
    if cast(u64, tile) == 0 or start < tile.offset or tile.rank != 2:
        return NOWHERE
    if tile.swizzle == 0 or tile.swizzle != swizzle_of(read) or tile.pitch != u32(CHUNK) << tile.swizzle:
        return NOWHERE
    return (start - tile.offset) % u64(tile.pitch)
