"""Tiles in shared memory: how a copy of a box wrote one, and how an MMA reads one."""

from __future__ import annotations

from ptxlab.native import Array, struct, u32, u64
from ptxlab.values import dataclass

TILES = 32  # that are remembered of a block
LAYOUTS = 16


@struct
@dataclass
class WrittenTile:
    """A box of a tensor in shared memory."""

    offset: u64
    size: u32  # its bytes
    swizzle: u32  # how many bits of an address it changes
    pitch: u32  # bytes from one row of the box to the next
    rank: u32
    instruction: u32  # the instruction of the copy
    type: u32  # of its elements, as the tensor map has it; see `isa.units.tensor_map`
    number: u32  # of the copies of boxes to this block
    slices: u32  # how many K slices it has for the MMAs that read it; 0: none has yet, or they do not agree
    read: u32  # the K slices that MMAs have read, a bit for each
    reader: u32  # the instruction of the last MMA
    repeats: u32  # whether the same slices of it and of another tile were multiplied twice
    multiplied: u32  # the slices that were multiplied with `partner` so far, a bit for each
    partner: u64  # a hash of the rows of the last other tile, its own rows, and the thread


@struct
@dataclass
class TileRead:
    """A matrix in shared memory as an MMA reads it: `lines` of chunks of 16 bytes."""

    descriptor: u64 = 0
    is_tensor: u32 = 0  # whether the descriptor is one of `tcgen05`
    major: u32 = 0
    first: u32 = 0  # the first line
    lines: u32 = 0
    chunks: u32 = 0  # how many chunks each line has
    is_b: u32 = 0
    type: u32 = 0  # of its elements, as a tensor map would have it, where only that is right; 0: any may be
    unused: u32 = 0


@struct
class Tiles:
    """What is known of the tiles of a block, for the detectors."""

    count: u32  # of tiles that copies wrote, those that are forgotten included
    checked: u32  # how many layouts were examined
    written: Array[WrittenTile, 32]
    layouts: Array[u64, 16]  # that were examined: hashes of them
    a: u64  # the descriptor of the last A of `wgmma`
    a_thread: u32  # that read it
    a_instruction: u32
    a_major: u32
    a_lines: u32
    a_chunks: u32  # how many chunks each of its lines has
    copies: u32  # of boxes, so far
