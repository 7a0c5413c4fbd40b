"""Whether a matrix is read from shared memory as it was written there.

Of a tile that a copy of a box wrote, the tensor map says how: its swizzle, and how far its rows are apart. What threads
or copies of bytes wrote has no layout that could be known, nor have rows of a box that is not a matrix. There a matrix
is compared with itself, and A with B: parts that share bytes by halves are not where they should be, and neither are
parts with less than a part between them that was written with them. Strides of 0 are left alone, they repeat a part on
purpose. The eight rows of a matrix that `stmatrix` wrote are eight lines of one chunk, where they are not interleaved
with those of another one: more than two matrices are not where they should be, either. A K-major matrix with a swizzle
starts at a multiple of the bytes that an MMA reads of a row.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, SHARED_SPACE
from ptxlab.emulate.abi.findings import MISMATCHED, Finding, MismatchReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tiles import LAYOUTS, TILES, TileRead, WrittenTile
from ptxlab.emulate.runtime.order.early_waits import cell_at
from ptxlab.emulate.runtime.order.reports import add_first
from ptxlab.emulate.runtime.order.shadow import ASYNC, MATRIX_ROW, SCATTER, SIZE, WARP_SHIFT
from ptxlab.isa.units.descriptor import CHUNK, COARSE, MN_MAJOR, chunk_offset, tensor_chunk_offset
from ptxlab.isa.units.tensor_map import BF16, F16, F32, F32_FTZ, F64
from ptxlab.native import (
    Pointer,
    address_of,
    boolean,
    calloc,
    cast,
    copy_bytes,
    count_ones,
    free,
    native,
    size_of,
    trailing_zeros,
    u8,
    u32,
    u64,
)

UNITS = 1 << 14  # chunks that a descriptor can name
READ_SIZE, TILE_SIZE = size_of(TileRead), size_of(WrittenTile)


@native
def tile_at(block: Pointer[Block], offset: u64) -> Pointer[WrittenTile]:
    """The tile that a byte of shared memory belongs to; null if a copy of a box was not the last to write it."""
    nothing = cast(Pointer[WrittenTile], 0)
    tiles = block.order.tiles
    for index in range(min(tiles.count, u32(TILES))):
        tile = cast(Pointer[WrittenTile], tiles.written + index)
        if offset >= tile.offset and offset < tile.offset + u64(tile.size):
            cell = cell_at(block, offset)
            if cast(u64, cell) == 0 or cell.flags & ASYNC == 0 or cell.instruction != tile.instruction:
                continue
            return tile
    return nothing


@native
def offset_in(read: TileRead, line: u32, chunk: u32) -> u64:
    """Where a chunk of a matrix is."""
    if read.is_tensor != 0:
        return tensor_chunk_offset(read.descriptor, line, chunk, read.major)
    return chunk_offset(read.descriptor, line, chunk, read.major)


@native
def swizzle_of(read: TileRead) -> u32:
    """How many bits of an address the swizzle of a descriptor changes."""
    mode: u32 = u32(read.descriptor >> 61)
    if read.is_tensor == 0:
        mode = mode >> 1
        return 0 if mode == 0 else 4 - mode
    return 3 if mode == COARSE else (8 - mode) // 2 & 3


@native
def check_layout(thread: Pointer[Thread], block: Pointer[Block], read: TileRead, instruction: u32) -> None:
    """Compare how a matrix is read with how it was written, and with itself."""
    if thread.worker.checks == 0:
        return
    if read.is_tensor != 0 and u32(read.descriptor >> 61) == COARSE:
        return
    start: u64 = (read.descriptor & 0x3FFF) << 4
    tile = tile_at(block, offset_in(read, read.first, 0))
    if cast(u64, tile) == 0:
        check_overlap(thread, block, read, instruction)
        return
    swizzle: u32 = swizzle_of(read)
    span: u32 = u32(CHUNK) << swizzle
    reason: u32 = 0
    if swizzle != tile.swizzle:
        if tile.swizzle != 0 or (tile.rank > 1 and tile.pitch == span):
            reason = MismatchReason.SWIZZLE
    elif tile.rank == 2 and tile.pitch == span and start >= tile.offset:
        reason = wrong_stride(block, read, tile, start)
    if reason != 0:
        report_tile(thread, read, tile, reason, instruction)
    elif tile.rank != 2 or tile.pitch != span:
        check_overlap(thread, block, read, instruction)
    elif is_between_slices(read) or is_between_rows(read, tile, start) or is_astray(block, read, tile, start):
        report_tile(thread, read, tile, MismatchReason.SLICE, instruction)
    if reason == 0 and is_mistyped(read.type, tile):
        report_tile(thread, read, tile, MismatchReason.TYPE, instruction)


@native
def is_mistyped(type: u32, tile: Pointer[WrittenTile]) -> boolean:
    """Whether a copy was of floats, and an MMA takes them for floats of another type; integers may be any bytes."""
    copied: u32 = F32 if tile.type == F32_FTZ else tile.type
    is_float: boolean = copied == BF16 or (copied >= F16 and copied <= F64)
    return type != 0 and is_float and copied != type


@native
def is_astray(block: Pointer[Block], read: TileRead, tile: Pointer[WrittenTile], start: u64) -> boolean:
    """Whether an MN-major matrix starts in the middle of the rows of k that each MMA reads, or leaves its columns."""
    if read.major != MN_MAJOR or start < tile.offset:
        return False
    pitch: u64 = u64(tile.pitch)
    width: u64 = min(u64(read.chunks) * CHUNK, pitch)
    if (start - tile.offset) % pitch + width > pitch:
        return True
    if has_parts_of_slices(read, tile) and block.order.tiles.count > TILES:
        return False  # the box before it may be forgotten
    return (start - first_row(block, read, tile)) // pitch % u64(read.lines) != 0


@native
def has_parts_of_slices(read: TileRead, tile: Pointer[WrittenTile]) -> boolean:
    """Whether the rows of a box are not a whole number of K slices of an MN-major matrix: it is a part of one."""
    return tile.size // tile.pitch % read.lines != 0


@native
def first_row(block: Pointer[Block], read: TileRead, tile: Pointer[WrittenTile]) -> u64:
    """Where the rows of k start: boxes with parts of K slices, as a multicast by several blocks makes them, adjoin."""
    first: u64 = tile.offset
    part: Pointer[WrittenTile] = tile
    while has_parts_of_slices(read, part) and first != 0:
        before = tile_at(block, first - 1)
        if cast(u64, before) == 0 or before.offset + u64(before.size) != first:
            break
        if before.pitch != tile.pitch or before.swizzle != tile.swizzle or not has_parts_of_slices(read, before):
            break
        part = before
        first = before.offset
    return first


@native
def is_between_slices(read: TileRead) -> boolean:
    """Whether a K-major matrix with a swizzle starts where no MMA should: not at a multiple of what each one reads.

    MMAs with a k of 96 read 48 bytes of a row: they may start at every chunk, and end in the next row of the swizzle.
    """
    width: u64 = u64(read.chunks) * CHUNK
    span: u64 = u64(CHUNK) << swizzle_of(read)
    return read.major != MN_MAJOR and span % width == 0 and ((read.descriptor & 0x3FFF) << 4) % width != 0


@native
def is_between_rows(read: TileRead, tile: Pointer[WrittenTile], start: u64) -> boolean:
    """Whether it starts between groups of eight rows of a box and continues past its end: a step of k left the row."""
    row: u64 = (start - tile.offset) // u64(tile.pitch)
    end: u64 = (row + u64(read.first) + u64(read.lines)) * u64(tile.pitch)
    return read.major != MN_MAJOR and row % 8 != 0 and end > u64(tile.size)


@native
def wrong_stride(block: Pointer[Block], read: TileRead, tile: Pointer[WrittenTile], start: u64) -> u32:
    """Which stride of a descriptor does not lead to the next lines of the tile, or to its neighbour; 0: both do."""
    leading: u64 = ((read.descriptor >> 16) & 0x3FFF) << 4
    stride: u64 = ((read.descriptor >> 32) & 0x3FFF) << 4
    if tile.swizzle == 0 and read.major == MN_MAJOR:
        leading, stride = stride, leading
    inside: u64 = start - tile.offset
    after: u64 = inside // u64(tile.pitch) + 16  # the row after the 16 that it starts with
    if read.lines > 8 and after * u64(tile.pitch) <= u64(tile.size) and stride != 8 * u64(tile.pitch):
        return MismatchReason.STRIDE
    if read.chunks * CHUNK <= tile.pitch or inside % u64(tile.pitch) != 0:
        return 0
    next = tile_at(block, start + leading)
    if cast(u64, next) == 0:
        return 0
    return MismatchReason.LEADING if next == tile or start + leading - next.offset != inside else u32(0)


@native
def check_overlap(thread: Pointer[Thread], block: Pointer[Block], read: TileRead, instruction: u32) -> None:
    """Whether parts of a matrix have bytes in common, by strides that are not 0, or some between them."""
    if is_examined(block, layout_of(read, instruction)):
        return
    fields: u64 = read.descriptor & 0xFFFF_3FFF_3FFF_0000
    shared: u32 = 0
    if (fields >> 16 & 0x3FFF) != 0 and (fields >> 32 & 0x3FFF) != 0:
        marks = calloc(UNITS, 1)
        if cast(u64, marks) != 0:
            shared = mark(marks, read)
            free(marks)
    if shared != 0:
        report_mismatch(thread, read, MismatchReason.OVERLAP, instruction)
    elif is_unaligned(read):
        report_mismatch(thread, read, MismatchReason.UNALIGNED, instruction)
    elif is_between_slices(read):
        report_mismatch(thread, read, MismatchReason.SLICE, instruction)
    elif not has_other_rows(thread, block, read, instruction):
        check_gaps(thread, block, read, instruction)


@native
def is_unaligned(read: TileRead) -> boolean:
    """Whether a stride leads from the start of a row of the swizzle into the middle of another."""
    span: u64 = u64(CHUNK) << swizzle_of(read)
    leading: u64 = ((read.descriptor >> 16) & 0x3FFF) << 4
    stride: u64 = ((read.descriptor >> 32) & 0x3FFF) << 4
    is_wide: boolean = u64(read.chunks) * CHUNK > span
    return (read.lines > 8 and stride % span != 0) or (is_wide and leading % span != 0)


@native
def has_other_rows(thread: Pointer[Thread], block: Pointer[Block], read: TileRead, instruction: u32) -> boolean:
    """Whether eight lines are of more than two matrices that `stmatrix` wrote: then it is reported."""
    for line in range(read.first, read.first + read.lines, 8):
        for chunk in range(read.chunks):
            matrices: u64 = 0  # a bit for each
            for next in range(8):
                cell = cell_at(block, offset_in(read, line + next, chunk))
                if cast(u64, cell) == 0 or cell.epoch == 0 or cell.flags & (SIZE | ASYNC) != MATRIX_ROW:
                    break
                by: u32 = (cell.flags >> WARP_SHIFT) * 4 + trailing_zeros(u32, cell.lanes) // 8
                matrices = matrices | u64(1) << (u64((u64(cell.instruction) << 12 | u64(by)) * SCATTER) >> 58)
                if next == 7 and count_ones(matrices) > 2:
                    found = report_mismatch(thread, read, MismatchReason.ROWS, instruction)
                    if cast(u64, found) != 0:
                        found.other.instruction = cell.instruction
                    return True
    return False


@native
def layout_of(read: TileRead, instruction: u32) -> u64:
    """A hash of how an instruction reads a matrix, wherever it is."""
    fields: u64 = read.descriptor & 0xFFFF_3FFF_3FFF_0000
    return fields ^ (u64(read.lines) << 48 | u64(read.chunks) << 56 | u64(instruction) << 1 | u64(read.major))


@native
def is_examined(block: Pointer[Block], layout: u64) -> boolean:
    """Whether a layout was examined before; from now on it was."""
    tiles = block.order.tiles
    for index in range(LAYOUTS):
        if tiles.layouts[index] == layout:
            return True
    tiles.layouts[tiles.checked % LAYOUTS] = layout
    tiles.checked += 1
    return False


@native
def check_gaps(thread: Pointer[Thread], block: Pointer[Block], read: TileRead, instruction: u32) -> None:
    """Whether bytes between two parts of a matrix, too few for a part, were written with one of them.

    A part is eight rows of the swizzle, without one eight chunks. Zeros do not count: they fill what nothing uses.
    """
    whole = TileRead(
        descriptor=read.descriptor,
        is_tensor=read.is_tensor,
        major=read.major,
        first=read.first,
        lines=read.lines,
        chunks=read.chunks,
        is_b=read.is_b,
        type=read.type,
    )
    if read.is_tensor == 0 and read.is_b == 0 and read.major != MN_MAJOR:
        whole.first = 0  # each warp of a warpgroup reads 16 rows of 64
        whole.lines = 64
    size: u64 = u64(8 * CHUNK) << swizzle_of(read)
    wide: u32 = u32(1) << swizzle_of(read)
    for line in range(whole.first, whole.first + whole.lines, 8):
        for chunk in range(0, whole.chunks, wide):
            end: u64 = part_at(whole, line, chunk) + size
            next: u64 = next_part(whole, end - size)
            if next <= end or next >= end + size or next > block.memory.shared_size:
                continue
            writer: u32 = writer_at(block, end)
            if writer == 0 or is_zero(block, end):
                continue
            if writer == writer_at(block, end - CHUNK) or writer == writer_at(block, next):
                found = report_mismatch(thread, read, MismatchReason.GAP, instruction)
                if cast(u64, found) != 0:
                    found.other.instruction = writer - 1
                    found.mismatch.gap = u32(next - end)
                return


@native
def part_at(read: TileRead, line: u32, chunk: u32) -> u64:
    """Where the eight rows start that a chunk is in."""
    span: u64 = u64(CHUNK) << swizzle_of(read)
    return offset_in(read, line, chunk) // span * span


@native
def next_part(read: TileRead, start: u64) -> u64:
    """Where the first part after one that starts here starts; 0 if there is none."""
    found: u64 = 0
    wide: u32 = u32(1) << swizzle_of(read)
    for line in range(read.first, read.first + read.lines, 8):
        for chunk in range(0, read.chunks, wide):
            other: u64 = part_at(read, line, chunk)
            if other > start and (found == 0 or other < found):
                found = other
    return found


@native
def writer_at(block: Pointer[Block], offset: u64) -> u32:
    """The instruction that wrote a byte of shared memory last, plus 1; 0 if none did."""
    cell = cell_at(block, offset)
    if cast(u64, cell) == 0 or cell.epoch == 0:
        return 0
    return cell.instruction + 1


@native
def is_zero(block: Pointer[Block], offset: u64) -> boolean:
    """Whether a chunk of shared memory has zeros only."""
    words = cast(Pointer[u64], block.memory.shared + offset)
    return words[0] == 0 and words[1] == 0


@native
def mark(marks: Pointer[u8], read: TileRead) -> u32:
    """Mark all chunks of a matrix; how many had a mark before."""
    shared: u32 = 0
    for line in range(read.first, read.first + read.lines):
        for chunk in range(read.chunks):
            unit: u32 = u32(offset_in(read, line, chunk) // CHUNK) % UNITS
            shared += u32(marks[unit])
            marks[unit] = 1
    return shared


@native
def check_shared(thread: Pointer[Thread], a: TileRead, b: TileRead, instruction: u32) -> None:
    """Whether A and B have some bytes in common, but neither has all of the other's."""
    if thread.worker.checks == 0 or not is_near(a, b):
        return
    apart: u64 = (b.descriptor - a.descriptor) & 0x3FFF
    both: u64 = layout_of(a, instruction) ^ layout_of(b, instruction) * SCATTER ^ apart
    if is_examined(thread.block, both):
        return
    marks = calloc(UNITS, 1)
    if cast(u64, marks) == 0:
        return
    mark(marks, a)
    shared: u32 = mark(marks, b)
    free(marks)
    if shared != 0 and shared < a.lines * a.chunks and shared < b.lines * b.chunks:
        report_mismatch(thread, a, MismatchReason.SHARED, instruction)


@native
def is_near(a: TileRead, b: TileRead) -> boolean:
    """Whether the stretches of shared memory from the first to the last line of A and B overlap."""
    first: u64 = offset_in(a, a.first, 0)
    last: u64 = offset_in(a, a.first + a.lines - 1, a.chunks - 1)
    other: u64 = offset_in(b, b.first, 0)
    other_last: u64 = offset_in(b, b.first + b.lines - 1, b.chunks - 1)
    return last >= other and other_last >= first


@native
def report_tile(
    thread: Pointer[Thread], read: TileRead, tile: Pointer[WrittenTile], reason: u32, instruction: u32
) -> Pointer[Finding]:
    """Note a matrix that is not read as a copy wrote it, unless its instruction has had one; null if it has."""
    found = report_mismatch(thread, read, reason, instruction)
    if cast(u64, found) != 0:
        found.other.instruction = tile.instruction
        copy_bytes(cast(Pointer[u8], address_of(found.mismatch.tile)), cast(Pointer[u8], tile), TILE_SIZE)
    return found


@native
def report_mismatch(thread: Pointer[Thread], read: TileRead, reason: u32, instruction: u32) -> Pointer[Finding]:
    """Note a matrix that is not read as it was written, unless its instruction has had one; null if it has."""
    found = add_first(thread, MISMATCHED, 0, 0, LOAD, instruction, SHARED_SPACE)
    if cast(u64, found) != 0:
        found.other.instruction = instruction
        found.mismatch.reason = reason
        found.mismatch.swizzle = swizzle_of(read)
        copy_bytes(cast(Pointer[u8], address_of(found.mismatch.read)), cast(Pointer[u8], read), READ_SIZE)
    return found
