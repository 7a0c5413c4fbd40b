"""Tensor maps: where the elements of a box are in global memory, and where in shared memory.

A box is cut into rows along the innermost dimension; the part of a row within the tensor is one piece of memory. In
shared memory rows are one after the other, each piece of 16 bytes where the swizzle puts it (PTX ISA 5.5).
"""

from __future__ import annotations

from ptxlab.device.tensor_maps import TENSOR_MAP_MARK
from ptxlab.emulate.abi.address_spaces import ATOMIC, GENERIC_SPACE, GLOBAL_SPACE, LOAD, STORE, Hint
from ptxlab.emulate.abi.bulk import TensorMap
from ptxlab.emulate.abi.faults import BAD_COORDINATE, BAD_TENSOR_MAP, CoordinateReason, TensorMapReason
from ptxlab.emulate.abi.state import Block, Thread, Transfer
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_global_work, note_shared_work
from ptxlab.emulate.runtime.asynchronous.reductions import reduce_bytes
from ptxlab.emulate.runtime.memory.memory import fail_because, find_memory
from ptxlab.native import Pointer, address_of, boolean, cast, copy_bytes, native, s32, s64, size_of, u8, u32, u64

MOST_BYTES = 1 << 20  # of a box: more than any shared memory has
CHUNK = 16  # bytes that a swizzle keeps together
MAP_SIZE = size_of(TensorMap)
MAP_ALIGNMENT = 64

MOST_ALONG = 256  # elements of a box along a dimension
MOST_STEP = 8

# What is done with the pieces of a box.
FIND = 0
NOTE = 1
READ = 2
WRITE = 3


@native
def take_map(
    thread: Pointer[Thread], transfer: Pointer[Transfer], address: u64, rank: u32, instruction: u32
) -> boolean:
    """Have a copy use the tensor map at an address; a fault if it is not a map, or one of another rank."""
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, address, MAP_SIZE, MAP_ALIGNMENT, GENERIC_SPACE, LOAD, instruction, nowhere)
    if cast(u64, place) == 0:
        return False
    map = address_of(transfer.map)
    copy_bytes(cast(Pointer[u8], map), place, MAP_SIZE)
    field: u32 = TensorMapReason.NO_MAP
    dimension: u32 = 0
    if map.mark == TENSOR_MAP_MARK:
        field, dimension = wrong_field(map)
    if field == 0 and map.rank != rank:
        field = TensorMapReason.OTHER_RANK
    if field != 0:
        if thread.worker.fault.kind == 0:
            thread.worker.fault.limit = u64(rank)
            thread.worker.fault.dimension = dimension
        fail_because(thread, BAD_TENSOR_MAP, field, instruction, value_of(map, field, dimension))
        return False
    # An H200 takes it for an illegal instruction where the address of the box is not aligned.
    start: u32 = u32(transfer.coordinates[0] * map.width)
    if start % CHUNK != 0:
        if thread.worker.fault.kind == 0:
            thread.worker.fault.limit = CHUNK
        fail_because(thread, BAD_COORDINATE, CoordinateReason.MISALIGNED, instruction, u64(s64(s32(start))))
        return False
    transfer.rank = rank
    transfer.size = u32(bytes_of_box(map))
    return True


@native
def wrong_field(map: Pointer[TensorMap]) -> tuple[u32, u32]:
    """The first field of a map that no host makes so, as a `TensorMapReason`, and its dimension; 0: there is none."""
    if map.rank == 0 or map.rank > 5:
        return TensorMapReason.RANK, 0
    if map.width == 0 or map.width > 8 or map.width & (map.width - 1) != 0:
        return TensorMapReason.WIDTH, 0
    if map.swizzle > 3:
        return TensorMapReason.SWIZZLE, 0
    if map.address % CHUNK != 0:
        return TensorMapReason.ADDRESS, 0
    for dimension in range(map.rank):
        if map.sizes[dimension] == 0:
            return TensorMapReason.SIZES, dimension
        if map.box[dimension] == 0 or map.box[dimension] > MOST_ALONG:
            return TensorMapReason.BOX, dimension
        if map.steps[dimension] == 0 or map.steps[dimension] > MOST_STEP:
            return TensorMapReason.STEPS, dimension
        if dimension != 0 and map.strides[dimension - 1] % CHUNK != 0:
            return TensorMapReason.STRIDES, dimension - 1
    row: u32 = bytes_of_row(map)
    if row % CHUNK != 0 or row > pitch_of(map):
        return TensorMapReason.ROW, 0
    if bytes_of_box(map) > MOST_BYTES:
        return TensorMapReason.TOTAL, 0
    return 0, 0


@native
def value_of(map: Pointer[TensorMap], field: u32, dimension: u32) -> u64:
    """What a field holds."""
    if field == TensorMapReason.NO_MAP:
        return 0
    if field == TensorMapReason.WIDTH:
        return u64(map.width)
    if field == TensorMapReason.SWIZZLE:
        return u64(map.swizzle)
    if field == TensorMapReason.ADDRESS:
        return map.address
    if field == TensorMapReason.SIZES:
        return u64(map.sizes[dimension])
    if field == TensorMapReason.BOX:
        return u64(map.box[dimension])
    if field == TensorMapReason.STEPS:
        return u64(map.steps[dimension])
    if field == TensorMapReason.STRIDES:
        return map.strides[dimension]
    if field == TensorMapReason.ROW:
        return u64(bytes_of_row(map))
    return bytes_of_box(map) if field == TensorMapReason.TOTAL else u64(map.rank)


@native
def bytes_of_box(map: Pointer[TensorMap]) -> u64:
    """The bytes of a box of a map that is right, or as much of one too large as shows that it is."""
    total: u64 = u64(map.width)
    for dimension in range(map.rank):
        if total <= MOST_BYTES:
            total = total * u64(count_along(map, dimension))
    return total


@native(inline=True)
def bytes_of_row(map: Pointer[TensorMap]) -> u32:
    """The bytes of a row of a box."""
    return count_along(map, 0) * map.width


@native
def pitch_of(map: Pointer[TensorMap]) -> u32:
    """From one row to the next in shared memory: with a swizzle, each has as many bytes as that spans."""
    return bytes_of_row(map) if map.swizzle == 0 else u32(CHUNK) << map.swizzle


@native
def extent_of_box(map: Pointer[TensorMap]) -> u32:
    """From the first byte of a box in shared memory to its last."""
    return u32(bytes_of_box(map)) // bytes_of_row(map) * pitch_of(map)


@native
def count_along(map: Pointer[TensorMap], dimension: u32) -> u32:
    """How many elements a box has along a dimension: every so many of them."""
    return (map.box[dimension] + map.steps[dimension] - 1) // map.steps[dimension]


@native
def visit_box(thread: Pointer[Thread], transfer: Pointer[Transfer], what: u32) -> None:
    """Do something with each piece of a box that is within the tensor."""
    map = address_of(transfer.map)
    width: u64 = u64(map.width)
    length: u32 = count_along(map, 0)
    rows: u32 = transfer.size // bytes_of_row(map)
    first: s64 = s64(s32(transfer.coordinates[0]))
    low: s64 = max(first, 0)
    high: s64 = min(first + s64(length), s64(map.sizes[0]))
    if low >= high:
        return
    for row in range(rows):
        rest: u32 = row
        address: u64 = map.address + u64(low) * width
        is_inside = True
        for dimension in range(1, map.rank):
            count: u32 = count_along(map, dimension)
            place: s64 = s64(s32(transfer.coordinates[dimension])) + s64(rest % count) * s64(map.steps[dimension])
            rest = rest // count
            if place < 0 or place >= s64(map.sizes[dimension]):
                is_inside = False
            else:
                address += u64(place) * map.strides[dimension - 1]
        if is_inside:
            offset: u64 = (u64(row) * u64(length) + u64(low - first)) * width
            visit_piece(thread, transfer, address, u32(u64(high - low) * width), offset, what)
            if thread.worker.fault.kind != 0:
                return


@native
def visit_piece(
    thread: Pointer[Thread], transfer: Pointer[Transfer], address: u64, bytes: u32, offset: u64, what: u32
) -> None:
    """Find a piece in global memory, check it, read it to where it belongs in the box, or write it from there."""
    access: u32 = LOAD
    if transfer.is_global == 0:
        access = ATOMIC if transfer.reduction != 0 else STORE
    nowhere = cast(Pointer[Hint], 0)
    place = find_memory(thread, address, bytes, 1, GLOBAL_SPACE, access, transfer.instruction, nowhere)
    if cast(u64, place) == 0:
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
        copy_bytes(transfer.data + offset, place, u64(bytes))
    elif what == WRITE and transfer.reduction != 0:
        reduce_bytes(place, transfer.data + offset, u64(bytes), transfer.reduction, transfer.type)
    elif what == WRITE:
        copy_bytes(place, transfer.data + offset, u64(bytes))


# Shared memory.


@native
def place_of_chunk(transfer: Pointer[Transfer], start: u64, at: u32) -> u64:
    """Where in shared memory a chunk of a box is: its number is XORed with bits of that of its 128 bytes."""
    map = address_of(transfer.map)
    row: u32 = bytes_of_row(map)
    offset: u64 = start + u64(at // row) * u64(pitch_of(map)) + u64(at % row)
    return offset ^ ((offset >> 7 & ((u64(1) << map.swizzle) - 1)) << 4)


@native
def note_box(
    thread: Pointer[Thread], block: Pointer[Block], transfer: Pointer[Transfer], start: u64, flags: u32, number: u32
) -> None:
    """Check the accesses of a copy to a box in shared memory."""
    channel: u32 = thread.starting.channel
    instruction: u32 = transfer.instruction
    if pitch_of(address_of(transfer.map)) == bytes_of_row(address_of(transfer.map)):
        note_shared_work(thread, block, start, transfer.size, flags, channel, number, instruction)
        return
    for chunk in range(transfer.size // CHUNK):
        place: u64 = place_of_chunk(transfer, start, chunk * CHUNK)
        note_shared_work(thread, block, place, CHUNK, flags, channel, number, instruction)


@native
def copy_box(block: Pointer[Block], transfer: Pointer[Transfer], start: u64, to_shared: boolean) -> None:
    """Copy a box to shared memory, or from there, chunk by chunk."""
    for chunk in range(transfer.size // CHUNK):
        at: u32 = chunk * CHUNK
        place = block.memory.shared + place_of_chunk(transfer, start, at)
        if to_shared:
            copy_bytes(place, transfer.data + at, CHUNK)
        else:
            copy_bytes(transfer.data + at, place, CHUNK)


@native
def fill_box(transfer: Pointer[Transfer]) -> None:
    """Fill a box with what a copy reads outside of the tensor."""
    width: u32 = transfer.map.width
    for element in range(transfer.size // width):
        for byte in range(width):
            transfer.data[element * width + byte] = u8(transfer.map.fill >> (8 * byte) & 255)
