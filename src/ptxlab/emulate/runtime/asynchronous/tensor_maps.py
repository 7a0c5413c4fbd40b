"""Reading tensor maps: 128 bytes that the host, a driver or the kernel itself has made (see `isa.units.tensor_map`).

Any bytes may be there: a field that no copy can use is a fault that names it.
"""

from __future__ import annotations

from ptxlab.device.element_types import (
    BFLOAT16,
    BITS32,
    BITS64,
    FLOAT16,
    FLOAT32,
    FLOAT32_FTZ,
    FLOAT64,
    NO_TYPE,
    SIGNED32,
    SIGNED64,
)
from ptxlab.emulate.abi.address_spaces import GENERIC_SPACE, LOAD, LOCAL_WINDOW, SHARED_WINDOW, Hint
from ptxlab.emulate.abi.bulk import GATHER, IM2COL, IM2COL_W, TensorMap
from ptxlab.emulate.abi.faults import BAD_COORDINATE, BAD_TENSOR_MAP, CoordinateReason, TensorMapReason
from ptxlab.emulate.abi.state import Thread, Transfer
from ptxlab.emulate.runtime.asynchronous.tensor_boxes import CHUNK, bytes_of_row, rows_of, shared_bytes_of_row
from ptxlab.emulate.runtime.memory.memory import fail_because, find_memory
from ptxlab.isa.units import tensor_map as layout
from ptxlab.native import Pointer, address_of, boolean, cast, native, s32, s64, u32, u64

MAP_SIZE = layout.BYTES
MAP_ALIGNMENT = layout.ALIGNMENT
MOST_BYTES = 1 << 20  # of a box: more than any shared memory has

# Words of a map, and fields of one of them.
FLAGS = layout.FLAGS // 4
FLAGS_MASK = layout.FLAGS_MASK
STRIDES = layout.STRIDES // 4
HIGH_STRIDES = layout.HIGH_STRIDES // 4
SIZES = layout.SIZES // 4
STEPS = layout.STEPS // 4
BOX = layout.BOX // 4
BOX_SHIFT = layout.BOX_SHIFT
STRIDE_UNIT = layout.STRIDE_UNIT
CORNER_SHIFT = layout.CORNER_SHIFT
ADDRESS_BITS = layout.ADDRESS_BITS
PIXELS = layout.PIXELS // 4
RANK = layout.RANK.shift
TYPE = layout.TYPE.shift
INTERLEAVE = layout.INTERLEAVE.shift
SWIZZLE = layout.SWIZZLE.shift
FILL = layout.FILL.shift
TENSOR_FLOAT = layout.TENSOR_FLOAT.shift
ATOMICITY = layout.ATOMICITY.shift
SWIZZLE_96 = layout.SWIZZLE_96.shift
F16 = layout.F16
BF16 = layout.BF16
B4X16_P64 = layout.B4X16_P64
TYPES = len(layout.ELEMENT_BITS)
BITS = layout.ELEMENT_BITS
UNITS = layout.ELEMENT_UNITS
CORNER_BITS = layout.CORNER_BITS
PADDED_ROW = 128  # elements of a row of the types with padding, all that they can have
MOST_HALO = 512  # pixels of `.im2col::w`, less 1
MOST_HALO_128 = 32  # of `.im2col::w::128`
MOST_OFFSET = 32
REDUCED = (
    NO_TYPE, NO_TYPE, BITS32, SIGNED32, BITS64, SIGNED64, FLOAT16, FLOAT32, FLOAT32_FTZ, FLOAT64, BFLOAT16, NO_TYPE,
    NO_TYPE, NO_TYPE,
)  # fmt: skip


@native
def take_map(thread: Pointer[Thread], transfer: Pointer[Transfer], address: u64, instruction: u32) -> boolean:
    """Have a copy use the tensor map at an address; a fault if it is not a map, or does not fit the copy."""
    nowhere = cast(Pointer[Hint], 0)
    if address >= SHARED_WINDOW and address < LOCAL_WINDOW:
        return refuse_map(thread, transfer, TensorMapReason.IN_SHARED, 0, instruction)
    found = find_memory(thread, address, MAP_SIZE, MAP_ALIGNMENT, GENERIC_SPACE, LOAD, instruction, nowhere)
    if cast(u64, found) == 0:
        return False
    map = address_of(transfer.map)
    field: u32 = read_map(map, cast(Pointer[u32], found))
    dimension: u32 = 0
    if field == 0:
        field, dimension = wrong_field(map, 0)
    if field == 0:
        field, dimension = unfit_field(transfer)
    if field != 0:
        return refuse_map(thread, transfer, field, dimension, instruction)
    if map.dimensions != map.rank:
        for number in range(map.rank):
            transfer.coordinates[map.rank - number] = transfer.coordinates[map.rank - number - 1]
        transfer.coordinates[0] = 0
    transfer.rows = u32(rows_of(map, transfer.mode, transfer.offsets[0]))
    transfer.size = transfer.rows * bytes_of_row(map)
    return has_legal_start(thread, transfer, instruction)


@native
def refuse_map(
    thread: Pointer[Thread], transfer: Pointer[Transfer], field: u32, dimension: u32, instruction: u32
) -> boolean:
    """A fault: a map has a field that a copy cannot use."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.limit = u64(transfer.mode if field == TensorMapReason.OTHER_MODE else transfer.rank)
        thread.worker.fault.dimension = dimension
    value: u64 = value_of(address_of(transfer.map), field, dimension)
    fail_because(thread, BAD_TENSOR_MAP, field, instruction, value)
    return False


# Reading.


@native
def read_map(map: Pointer[TensorMap], words: Pointer[u32]) -> u32:
    """Read the fields of a map; a `TensorMapReason` if some bits are set that no map has, or none at all."""
    flags: u32 = words[FLAGS]
    is_im2col: boolean = flags & 1 != 0
    map.address = u64(words[0]) | u64(words[1]) << 32
    map.rank = (flags >> RANK & 7) + 1
    map.type = flags >> TYPE & 15
    map.interleave = flags >> INTERLEAVE & 3
    map.mode = IM2COL if is_im2col else 0
    if (map.address == 0 and flags == 0) or flags & ~u32(FLAGS_MASK) != 0 or words[HIGH_STRIDES] >> 16 != 0:
        return TensorMapReason.NO_MAP
    if words[STEPS] >> 15 & 0x1FF != 0 or (is_im2col and words[PIXELS] >> 10 != 0):
        return TensorMapReason.NO_MAP
    for dimension in range(5):
        map.sizes[dimension] = u64(words[SIZES + dimension]) + 1
        map.steps[dimension] = (words[STEPS] >> (3 * dimension) & 7) + 1
        if dimension != 0:
            high: u32 = words[HIGH_STRIDES] >> (4 * (dimension - 1)) & 15
            low: u32 = words[STRIDES + dimension - 1]
            map.strides[dimension - 1] = (u64(low) | u64(high) << 32) << STRIDE_UNIT
            map.box[dimension] = (words[BOX] >> (8 * (dimension - 1)) & 255) + 1
    map.box[0] = (words[STEPS] >> BOX_SHIFT) + 1
    if is_im2col and map.rank >= 3 and map.rank <= 5:
        map.pixels = words[PIXELS] + 1
        read_corners(map, words[BOX])
    if map.type < TYPES:
        read_type(map, flags)
        read_interleave(map)
        read_swizzle(map, flags)
    return 0


@native
def read_interleave(map: Pointer[TensorMap]) -> None:
    """What interleaving says of dimensions: of slices, a box has one, in the dimension before the last."""
    map.dimensions = map.rank
    if map.interleave == 0 or map.rank > 5 or map.rank < 3:
        map.steps[0] = 1  # copies ignore it
        return
    slice: u32 = u32(CHUNK) << (map.interleave - 1)
    map.box[map.rank - 2] = 1
    for number in range(map.rank):
        to: u32 = map.rank - number
        map.sizes[to] = map.sizes[to - 1]
        map.steps[to] = map.steps[to - 1]
        map.box[to] = map.box[to - 1]
        map.strides[to - 1] = map.strides[to - 2] if to != 1 else u64(slice)
    map.dimensions = map.rank + 1
    map.sizes[0] = 1
    map.steps[0] = 1
    map.box[0] = 1
    map.bits = slice * 8


@native
def read_corners(map: Pointer[TensorMap], word: u32) -> None:
    """Read the corners of im2col, which are signed."""
    bits: u32 = CORNER_BITS[map.rank - 3]
    unused: u32 = 32 - bits
    for dimension in range(map.rank - 2):
        map.lower[dimension] = u32(s32(word >> (bits * dimension) << unused) >> unused)
        map.upper[dimension] = u32(s32(word >> (CORNER_SHIFT + bits * dimension) << unused) >> unused)


@native
def read_type(map: Pointer[TensorMap], flags: u32) -> None:
    """What the type of elements says of a box."""
    map.bits = BITS[map.type]
    map.unit = UNITS[map.type]
    map.fills = flags >> FILL & 1
    map.rounds = flags >> TENSOR_FLOAT & 1


@native
def read_swizzle(map: Pointer[TensorMap], flags: u32) -> None:
    """What the swizzle says of a box in shared memory; 5: no copy has it."""
    mode: u32 = flags >> SWIZZLE & 3
    atomicity: u32 = flags >> ATOMICITY & 7
    map.atomicity = atomicity
    map.swizzle = mode
    map.atom = 4
    map.flip = 0
    map.pitch = shared_bytes_of_row(map)
    if mode != 0:
        map.pitch = u32(CHUNK) << mode
    if flags >> SWIZZLE_96 & 1 != 0:
        map.swizzle = 1 if mode == 0 else u32(5)
        map.pitch = 96
    if mode == 3 and atomicity == 3:
        map.swizzle = 1
        map.atom = 6
    elif mode == 3 and atomicity != 0:
        map.swizzle = 2
        map.atom = 5
        map.flip = u32(atomicity == 2)


# What a map can be.


@native(inline=True)
def is_new(known: u32, reason: u32) -> boolean:
    """Whether a reason is not among those of `known`, a bit for each."""
    return known >> reason & 1 == 0


@native
def wrong_field(map: Pointer[TensorMap], known: u32) -> tuple[u32, u32]:
    """The first field of a map that no copy can use, as a `TensorMapReason`, and its dimension; 0: there is none.

    Reasons that are `known` already, a bit for each, are passed over; but with a wrong rank or type, nothing else can
    be asked.
    """
    if map.rank > 5 or (map.mode != 0 and map.rank < 3):
        return TensorMapReason.RANK, 0
    if map.type >= TYPES:
        return TensorMapReason.TYPE, 0
    is_interleaved: boolean = map.interleave != 0
    if (map.interleave > 2 or (is_interleaved and map.rank < 3)) and is_new(known, TensorMapReason.INTERLEAVE):
        return TensorMapReason.INTERLEAVE, 0
    if map.swizzle == 5 and is_new(known, TensorMapReason.SWIZZLE):
        return TensorMapReason.SWIZZLE, 0
    if (map.atomicity > 3 or (map.atomicity != 0 and map.atom == 4)) and is_new(known, TensorMapReason.ATOMICITY):
        return TensorMapReason.ATOMICITY, 0
    if map.fills != 0 and (map.type < F16 or map.type > BF16) and is_new(known, TensorMapReason.FILL):
        return TensorMapReason.FILL, 0
    unit: u64 = 32 if map.interleave == 2 or map.type >= B4X16_P64 else u64(CHUNK)
    if (map.address % unit != 0 or map.address >> ADDRESS_BITS != 0) and is_new(known, TensorMapReason.ADDRESS):
        return TensorMapReason.ADDRESS, 0
    for dimension in range(1, map.dimensions):
        if map.strides[dimension - 1] % unit != 0 and is_new(known, TensorMapReason.STRIDES):
            return TensorMapReason.STRIDES, dimension - 1
    for dimension in range(map.rank - 2 if map.mode != 0 else u32(0)):
        end: s64 = s64(map.sizes[dimension + 1]) + s64(s32(map.upper[dimension]))
        if end <= s64(s32(map.lower[dimension])) and is_new(known, TensorMapReason.CORNERS):
            return TensorMapReason.CORNERS, dimension
    return wrong_row(map, known), 0


@native
def wrong_row(map: Pointer[TensorMap], known: u32) -> u32:
    """Whether a row of a box is wrong; see `wrong_field`."""
    row: u32 = bytes_of_row(map)
    is_part: boolean = map.type >= B4X16_P64 and (map.box[0] != PADDED_ROW or map.sizes[0] % PADDED_ROW != 0)
    if is_part and is_new(known, TensorMapReason.PADDED_ROW):
        return TensorMapReason.PADDED_ROW
    is_odd: boolean = map.interleave == 0 and (row % map.unit != 0 or shared_bytes_of_row(map) > map.pitch)
    if is_odd and not is_part and is_new(known, TensorMapReason.ROW):
        return TensorMapReason.ROW
    if rows_of(map, map.mode, 0) * u64(row) > MOST_BYTES and is_new(known, TensorMapReason.TOTAL):
        return TensorMapReason.TOTAL
    return 0


@native
def unfit_field(transfer: Pointer[Transfer]) -> tuple[u32, u32]:
    """The first field of a map that its copy cannot use, though others could; see `wrong_field`."""
    map = address_of(transfer.map)
    is_wide: boolean = transfer.mode >= IM2COL_W
    if (transfer.mode >= IM2COL) != (map.mode != 0):
        return TensorMapReason.OTHER_MODE, 0
    if map.rank != transfer.rank:
        return TensorMapReason.OTHER_RANK, 0
    if transfer.mode == GATHER and map.box[1] != 1:
        return TensorMapReason.GATHERED_ROWS, 0
    if map.interleave != 0 and (transfer.mode == GATHER or is_wide):
        return TensorMapReason.NO_INTERLEAVE, 0
    if is_wide and (map.swizzle == 0 or map.flip != 0):
        return TensorMapReason.NEEDS_SWIZZLE, 0
    if rows_of(map, transfer.mode, transfer.offsets[0]) * u64(bytes_of_row(map)) > MOST_BYTES:
        return TensorMapReason.TOTAL, 0
    return 0, 0


@native
def value_of(map: Pointer[TensorMap], field: u32, dimension: u32) -> u64:
    """What a field holds."""
    if field == TensorMapReason.TYPE:
        return u64(map.type)
    if field == TensorMapReason.ADDRESS:
        return map.address
    if field == TensorMapReason.STRIDES:
        return map.strides[dimension]
    if field == TensorMapReason.INTERLEAVE:
        return u64(map.interleave)
    if field == TensorMapReason.ATOMICITY:
        return u64(map.atomicity)
    if field == TensorMapReason.ROW:
        return u64(bytes_of_row(map))
    if field == TensorMapReason.PADDED_ROW:
        return u64(map.box[0])
    if field == TensorMapReason.GATHERED_ROWS:
        return u64(map.box[1])
    if field == TensorMapReason.OTHER_MODE:
        return u64(map.mode)
    if field == TensorMapReason.OTHER_RANK or field == TensorMapReason.RANK:
        return u64(map.rank)
    return 0


# Where a box can be.


@native
def has_legal_start(thread: Pointer[Thread], transfer: Pointer[Transfer], instruction: u32) -> boolean:
    """Whether a box starts where its copy can have it; a fault otherwise, as on an H200: an illegal instruction."""
    reason, dimension, value, limit = illegal_start(transfer)
    if reason == 0:
        return True
    if thread.worker.fault.kind == 0:
        thread.worker.fault.limit = limit
        thread.worker.fault.dimension = dimension
    fail_because(thread, BAD_COORDINATE, reason, instruction, value)
    return False


@native
def illegal_start(transfer: Pointer[Transfer]) -> tuple[u32, u32, u64, u64]:
    """Why a box cannot start where it does, a `CoordinateReason` (0: it can), with its dimension, value and limit."""
    map = address_of(transfer.map)
    start: u32 = transfer.coordinates[0]
    unit: u32 = PADDED_ROW
    if map.type < B4X16_P64:
        start = u32(u64(s64(s32(start)) * s64(map.bits)) // 8)
        unit = CHUNK
    if start % unit != 0:
        reason: u32 = CoordinateReason.MISALIGNED if unit == CHUNK else u32(CoordinateReason.MISALIGNED_ELEMENT)
        return reason, 0, u64(s64(s32(start))), u64(unit)
    if transfer.mode < IM2COL:
        return 0, 0, 0, 0
    if transfer.mode >= IM2COL_W:
        most: u32 = MOST_HALO if transfer.mode == IM2COL_W else u32(MOST_HALO_128)
        if transfer.offsets[0] >= most:
            return CoordinateReason.HALO, 0, u64(transfer.offsets[0]), u64(most)
        if transfer.offsets[1] >= MOST_OFFSET:
            return CoordinateReason.OFFSET, 0, u64(transfer.offsets[1]), MOST_OFFSET
    for dimension in range(1 if transfer.mode >= IM2COL_W else map.rank - 2):
        coordinate: s64 = s64(s32(transfer.coordinates[dimension + 1]))
        end: s64 = s64(map.sizes[dimension + 1]) + s64(s32(map.upper[dimension]))
        if (coordinate < s64(s32(map.lower[dimension])) and transfer.mode == IM2COL) or coordinate >= end:
            return CoordinateReason.OUT_OF_CORNERS, dimension + 1, u64(coordinate), 0
    return 0, 0, 0, 0
