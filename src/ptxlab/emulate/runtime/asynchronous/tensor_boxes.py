"""Boxes of tensors: where their elements are in global memory, and where in shared memory.

A box is cut into rows along the innermost dimension; the part of a row within the tensor is one piece of memory. Of
im2col, a row is the channels of a pixel. In shared memory rows are one after the other, each piece of 16 bytes where
the swizzle puts it (PTX ISA 5.5).
"""

from __future__ import annotations

from ptxlab.device.trace_format import NO_BLOCK
from ptxlab.emulate.abi.address_spaces import ATOMIC, GLOBAL_SPACE, LOAD, STORE, Hint
from ptxlab.emulate.abi.bulk import GATHER, IM2COL, IM2COL_W, IM2COL_W_128, TILE, TensorMap
from ptxlab.emulate.abi.state import Block, Thread, Transfer
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_global_work, note_shared_work
from ptxlab.emulate.runtime.asynchronous.recorded_copies import record_read, record_written
from ptxlab.emulate.runtime.asynchronous.reductions import reduce_bytes
from ptxlab.emulate.runtime.memory.memory import find_allocation, find_memory
from ptxlab.isa.units.tensor_map import NAN
from ptxlab.native import Pointer, address_of, array, boolean, cast, copy_bytes, native, s32, s64, u8, u16, u32, u64

CHUNK = 16  # bytes of shared memory that a copy keeps together
ROWS_GATHERED = 4
HALO_EVERY = 32  # pixels, in `.im2col::w::128`
PIXELS_128 = 128

# f32 and tf32.
SIGN = 1 << 31
INFINITY = 0x7F800000
TF32_SHIFT = 13
TF32_HALF = 0xFFF
TF32_NAN = 0x7FFFE000

# What is done with the pieces of a box.
FIND = 0
NOTE = 1
READ = 2
WRITE = 3


@native(inline=True)
def count_along(map: Pointer[TensorMap], dimension: u32) -> u32:
    """How many elements a tiled box has along a dimension: every so many of them."""
    return (map.box[dimension] + map.steps[dimension] - 1) // map.steps[dimension]


@native(inline=True)
def bytes_of_row(map: Pointer[TensorMap]) -> u32:
    """The bytes of a row of a box in global memory."""
    return count_along(map, 0) * map.bits // 8


@native(inline=True)
def shared_bytes_of_row(map: Pointer[TensorMap]) -> u32:
    """The bytes of a row of a box in shared memory."""
    return bytes_of_row(map) // map.unit * CHUNK


@native
def has_usual_swizzle(map: Pointer[TensorMap]) -> boolean:
    """Whether a box is laid out without a swizzle, or with one that keeps 16 bytes together in rows of its span."""
    return map.atom == 4 and (map.swizzle == 0 or map.pitch == u32(CHUNK) << map.swizzle)


@native
def rows_of(map: Pointer[TensorMap], mode: u32, halo: u32) -> u64:
    """The rows of a box."""
    if mode == GATHER:
        return ROWS_GATHERED
    if mode == IM2COL:
        return u64(map.pixels)
    if mode == IM2COL_W:
        return u64(map.pixels) + u64(halo)
    if mode == IM2COL_W_128:
        return PIXELS_128 + u64(halo) * (PIXELS_128 // HALO_EVERY)
    rows: u64 = 1
    for dimension in range(1, map.dimensions):
        rows = rows * u64(count_along(map, dimension))
    return rows


@native
def bytes_of_box(transfer: Pointer[Transfer]) -> u64:
    """The bytes of a box in shared memory."""
    return u64(transfer.rows) * u64(shared_bytes_of_row(address_of(transfer.map)))


@native
def extent_of_box(transfer: Pointer[Transfer]) -> u32:
    """From the first byte of a box in shared memory to its last."""
    return transfer.rows * transfer.map.pitch


# Rows, one after the other: `position` is where the current one starts, innermost dimension first.


@native
def enter_row(transfer: Pointer[Transfer], position: Pointer[s64], row: u32) -> None:
    """Go to a row, from the one before it."""
    map = address_of(transfer.map)
    mode: u32 = transfer.mode
    if mode == TILE:
        rest: u32 = row
        for dimension in range(1, map.dimensions):
            count: u32 = count_along(map, dimension)
            first: s64 = s64(s32(transfer.coordinates[dimension]))
            position[dimension] = first + s64(rest % count) * s64(map.steps[dimension])
            rest = rest // count
    elif mode == GATHER:
        position[1] = s64(s32(transfer.coordinates[row + 1]))
    elif row == 0:
        for dimension in range(1, map.dimensions):
            position[dimension] = s64(s32(transfer.coordinates[dimension]))
    elif mode == IM2COL:
        next_pixel(map, position, map.rank - 2)
    else:
        enter_pixel_along_w(transfer, position, row)


@native
def next_pixel(map: Pointer[TensorMap], position: Pointer[s64], dimensions: u32) -> None:
    """Go to the next pixel: along as many dimensions of an image, then to the next image."""
    for number in range(dimensions):
        position[number + 1] += s64(map.steps[number + 1])
        if position[number + 1] < s64(map.sizes[number + 1]) + s64(s32(map.upper[number])):
            return
        position[number + 1] = s64(s32(map.lower[number]))
    position[map.dimensions - 1] += s64(map.steps[map.dimensions - 1])


@native
def enter_pixel_along_w(transfer: Pointer[Transfer], position: Pointer[s64], row: u32) -> None:
    """Go to the next pixel of `.im2col::w`: a halo follows the last pixel along W, whatever the corners say.

    With `::128`, one follows every 32 pixels, and the pixels after it continue where they were.
    """
    map = address_of(transfer.map)
    halo: u32 = transfer.offsets[0]
    every: u32 = HALO_EVERY if transfer.mode == IM2COL_W_128 else map.pixels
    at: u32 = row % (every + halo)
    if at >= every:
        position[1] += s64(map.steps[1])
        return
    if at == 0:
        position[1] -= s64(halo) * s64(map.steps[1])
    next_pixel(map, position, 1)


@native
def find_row(transfer: Pointer[Transfer], position: Pointer[s64]) -> u64:
    """The address of the first element of the current row, were it at coordinate 0; 0 if it is out of bounds."""
    map = address_of(transfer.map)
    address: u64 = map.address
    for dimension in range(1, map.dimensions):
        coordinate: s64 = position[dimension]
        if transfer.mode == IM2COL and dimension < map.rank - 1:
            coordinate += s64(transfer.offsets[dimension - 1])
        elif transfer.mode >= IM2COL_W and dimension == 1:
            coordinate += s64(transfer.offsets[1])
        if coordinate < 0 or coordinate >= s64(map.sizes[dimension]):
            return 0
        address += u64(coordinate) * map.strides[dimension - 1]
    return address


@native
def visit_box(thread: Pointer[Thread], transfer: Pointer[Transfer], what: u32) -> u64:
    """Do something with each piece of a box that is within the tensor; their bytes."""
    map = address_of(transfer.map)
    length: u32 = count_along(map, 0)
    first: s64 = s64(s32(transfer.coordinates[0]))
    low: s64 = max(first, 0)
    high: s64 = min(first + s64(length), s64(map.sizes[0]))
    if low >= high:
        return 0
    total: u64 = 0
    bits: u64 = u64(map.bits)
    bytes: u32 = u32(u64(high - low) * bits // 8)
    skipped: u64 = u64(low - first) * bits // 8
    position = array(s64, 6)
    for row in range(transfer.rows):
        enter_row(transfer, position, row)
        start: u64 = find_row(transfer, position)
        if start != 0:
            offset: u64 = u64(row) * u64(bytes_of_row(map)) + skipped
            address: u64 = start + u64(low) * bits // 8
            count: u32 = bytes if transfer.is_global != 0 else whole_bytes(thread, address, bytes)
            visit_piece(thread, transfer, address, count, offset, what)
            if thread.worker.fault.kind != 0:
                return total
            total += u64(count)
    return total


@native
def whole_bytes(thread: Pointer[Thread], address: u64, bytes: u32) -> u32:
    """How much a store writes of a piece: an H200 writes whole chunks, also those that the tensor ends in.

    What is beyond the memory of an array is left out: it is never an array's.
    """
    whole: u32 = (bytes + CHUNK - 1) // CHUNK * CHUNK
    found = find_allocation(thread, address)
    if whole == bytes or cast(u64, found) == 0 or address - found.base + u64(whole) > found.size:
        return bytes
    return whole


@native
def visit_piece(
    thread: Pointer[Thread], transfer: Pointer[Transfer], address: u64, bytes: u32, offset: u64, what: u32
) -> None:
    """Find a piece in global memory, check it, read it to where it belongs in the box, or write it from there."""
    access: u32 = LOAD
    if transfer.is_global == 0:
        access = ATOMIC if transfer.reduction != 0 else STORE
    nowhere = cast(Pointer[Hint], 0)
    found = find_memory(thread, address, bytes, 1, GLOBAL_SPACE, access, transfer.instruction, nowhere)
    if cast(u64, found) == 0:
        return
    if what == NOTE:
        note_global_work(
            thread,
            address,
            bytes,
            transfer.flags,
            thread.starting.channel,
            thread.starting.number,
            transfer.instruction,
        )
    elif what == READ:
        copy_bytes(transfer.data + offset, found, u64(bytes))
        if transfer.map.rounds != 0:
            round_elements(transfer.data + offset, bytes)
        record_read(thread, transfer, NO_BLOCK, address, bytes, u32(offset))
    elif what == WRITE and transfer.reduction != 0:
        reduce_bytes(found, transfer.data + offset, u64(bytes), transfer.reduction, transfer.type)
    elif what == WRITE:
        copy_bytes(found, transfer.data + offset, u64(bytes))
    if what == WRITE:
        record_written(thread, transfer, NO_BLOCK, address, found, bytes, u32(offset))


@native
def round_elements(data: Pointer[u8], bytes: u32) -> None:
    """Round elements of f32 to tf32, to the nearest even, as an H200 does; all NaNs become one."""
    words = cast(Pointer[u32], data)
    for index in range(bytes // 4):
        word: u32 = words[index]
        if word & ~u32(SIGN) > INFINITY:
            words[index] = TF32_NAN
        elif word & INFINITY != INFINITY:
            words[index] = u32(word + TF32_HALF + (word >> TF32_SHIFT & 1)) >> TF32_SHIFT << TF32_SHIFT


# Shared memory.


@native(inline=True)
def swizzled(map: Pointer[TensorMap], offset: u64) -> u64:
    """Where in shared memory a chunk of a box is: bits of its number are XORed with those of its 128 bytes."""
    return offset ^ ((offset >> 7 & ((u64(1) << map.swizzle) - 1)) << map.atom)


@native
def note_box(
    thread: Pointer[Thread], block: Pointer[Block], transfer: Pointer[Transfer], start: u64, flags: u32, number: u32
) -> None:
    """Check the accesses of a copy to a box in shared memory."""
    channel: u32 = thread.starting.channel
    instruction: u32 = transfer.instruction
    map = address_of(transfer.map)
    bytes: u32 = shared_bytes_of_row(map)
    if map.pitch == bytes:
        note_shared_work(thread, block, start, extent_of_box(transfer), flags, channel, number, instruction)
        return
    for row in range(transfer.rows):
        for chunk in range(bytes // CHUNK):
            offset: u64 = swizzled(map, start + u64(row) * u64(map.pitch) + u64(chunk) * CHUNK)
            note_shared_work(thread, block, offset, CHUNK, flags, channel, number, instruction)


@native
def copy_box(
    thread: Pointer[Thread], block: Pointer[Block], transfer: Pointer[Transfer], start: u64, to_shared: boolean
) -> None:
    """Copy a box to shared memory of a block, or from there, chunk by chunk."""
    map = address_of(transfer.map)
    chunks: u32 = shared_bytes_of_row(map) // CHUNK
    data = transfer.data
    for row in range(transfer.rows):
        at: u64 = start + u64(row) * u64(map.pitch)
        for _ in range(chunks):
            chunk: u64 = swizzled(map, at)
            copy_chunk(map, data, block.memory.shared, chunk, to_shared)
            if to_shared:
                record_written(
                    thread, transfer, block.number, chunk, block.memory.shared + chunk, CHUNK, u32(data - transfer.data)
                )
            else:
                record_read(thread, transfer, block.number, chunk, CHUNK, u32(data - transfer.data))
            data = data + map.unit
            at += CHUNK


@native(inline=True)
def copy_chunk(
    map: Pointer[TensorMap], data: Pointer[u8], shared: Pointer[u8], offset: u64, to_shared: boolean
) -> None:
    """Copy a chunk to shared memory, or from there."""
    chunk = shared + offset
    if to_shared and map.flip != 0 and offset >> 7 & 1 != 0:
        copy_bytes(chunk, data + 8, 8)
        copy_bytes(chunk + 8, data, 8)
    elif to_shared:
        copy_bytes(chunk, data, u64(map.unit))
    elif map.unit == 12:
        pack_elements(data, chunk)
    else:
        copy_bytes(data, chunk, u64(map.unit))


@native
def pack_elements(to: Pointer[u8], source: Pointer[u8]) -> None:
    """Pack 16 elements of 6 bits, each in a byte of its own, into 12 bytes (`.b6p2x16`)."""
    for group in range(4):
        bits: u32 = 0
        for element in range(4):
            bits = bits | (u32(source[group * 4 + element]) & 63) << (6 * element)
        for byte in range(3):
            to[group * 3 + byte] = u8(bits >> (8 * byte) & 255)


@native
def fill_box(transfer: Pointer[Transfer]) -> None:
    """Fill a box with the NaNs that a copy reads outside of the tensor: the same 16 bits over and over."""
    halves = cast(Pointer[u16], transfer.data)
    for half in range(transfer.size // 2):
        halves[half] = NAN
