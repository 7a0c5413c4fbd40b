"""What goes wrong in a thread: the kinds of faults, the reasons of those that have several, and the record of one."""

from __future__ import annotations

from enum import IntEnum

from ptxlab.native import struct, u32, u64
from ptxlab.values import dataclass

# The kinds.
OUT_OF_BOUNDS = 1
MISALIGNED = 2
READ_ONLY = 3
STACK_OVERFLOW = 4
TRAP = 5
BAD_CALL = 6
BARRIER_COUNT = 7
BARRIER_DIVERGENCE = 8
HANG = 9
BAD_BRANCH = 10
NO_MEMORY = 11
ASSERTION = 12
BAD_BARRIER = 13
BAD_MEMBERMASK = 14
BAD_FREE = 15
BAD_SIZE = 16
EXITED_BLOCK = 17
BAD_DESCRIPTOR = 18
NO_WARPGROUP = 19
BAD_TENSOR_ADDRESS = 20
BAD_ALLOCATION = 21
TENSOR_LEAK = 22
BAD_TENSOR_MAP = 23
BAD_COORDINATE = 24
BAD_INSTRUCTION_DESCRIPTOR = 25
BAD_COPY_SIZE = 26
BAD_PRINTF = 27
DIVERGENT_DESCRIPTOR = 30
BAD_SCALE_FACTORS = 32
BAD_TEXTURE = 33
BAD_SURFACE_COORDINATE = 34
BAD_METADATA = 35  # `value`: the chunk of four bits, `limit`: the row
BAD_MULTICAST = 36
DIVERGENT_REGISTERS = 37  # `value`: the warp that executed other `setmaxnreg` than that of the thread
APART = 38  # no fault: lanes that execute the kernel together have found something that threads are to report


class CallReason(IntEnum):
    """Why a call is a BAD_CALL."""

    NOT_A_FUNCTION = 1
    OTHER_SIGNATURE = 2  # `value`: the number of the function
    NO_NETWORK = 3  # it is an operation of the network between GPUs, and there is one GPU


class BarrierReason(IntEnum):
    """Why the use of a barrier, of the block, of the cluster or in shared memory, is a BAD_BARRIER."""

    NO_SUCH_BARRIER = 1  # `value`: its number
    BAD_ARRIVAL_COUNT = 2  # `value`: what `mbarrier.init` says
    UNINITIALIZED = 3
    TOO_MANY_ARRIVALS = 4  # `value`: how many come at once
    TOO_MANY_BYTES = 5  # `value`: those pending, negative if more came than were expected
    REINITIALIZED = 6  # `value`: threads that wait on it
    OVERWRITTEN = 7  # the other access is the one that did it
    OTHER_BLOCK = 8  # the mbarrier is in another block than the bytes
    ARRIVED_TWICE = 9  # at the barrier of the cluster
    NEVER_ARRIVED = 10  # at the barrier of the cluster
    COMPLETED = 11  # by an arrival that must not; `value`: how many come at once


class AllocationReason(IntEnum):
    """Why `tcgen05.alloc` or `tcgen05.dealloc` of `value` columns is a BAD_ALLOCATION."""

    BAD_COUNT = 1
    TOO_MANY = 2  # `limit`: columns that are allocated already
    GROWING = 3  # `limit`: columns of the allocation before
    RELINQUISHED = 4
    NOT_ALLOCATED = 5  # `address` is where no allocation starts
    OTHER_SIZE = 6  # `limit`: columns that are allocated at `address`
    NO_PEER = 7  # the cluster has no second block
    OTHER_IN_PEER = 8  # the other block of the pair executes another operation; `limit`: its columns


class TensorAddressReason(IntEnum):
    """Why an access to `cells` is a BAD_TENSOR_ADDRESS."""

    NOT_ALLOCATED = 1
    OTHER_LANES = 2  # a warp does not reach these lanes
    NOT_UNIFORM = 3  # the lanes of the warp give different addresses
    OUTSIDE = 4
    FREED = 5  # the other access is the instruction that freed it
    NOT_A_BAND = 6  # a shift starts at a lane that is not a multiple of 32


class FactorReason(IntEnum):
    """Why the scale factors of an MMA are BAD_SCALE_FACTORS."""

    OVERLAP = 1  # those of A and of B; `value`: both spans of columns, 16 bits a number
    A_IN_D = 2  # those of A and the accumulators; `value` likewise
    B_IN_D = 3
    UNEQUAL_A = 4  # `cells`, in one sub-partition and in that of `limit`; `value`: both words
    UNEQUAL_B = 5


class DescriptorReason(IntEnum):
    """Why `value` is a BAD_INSTRUCTION_DESCRIPTOR, besides what `isa.units.instruction_descriptor` refuses."""

    ABSOLUTE = 65  # the leading dimension is an absolute address
    NO_MODE = 66  # `value`: the swizzle mode
    COARSE_MODE = 67  # 32-byte atoms, where they are not allowed
    BAD_FACTORS = 68  # scale factors reach beyond a word, or start at a byte where none do
    NO_PEER = 70  # the cluster has no second block
    ODD_METADATA = 71  # the column of metadata, of which the selector chooses one of two
    OTHER_HALF = 72  # D has 16 of each 32 lanes, and A or its metadata the other 16
    SHIFTED_ROWS = 73  # `.ashift` with fewer rows than fill the lanes
    LONG_ROWS = 75  # K is 96, and the target does not have it
    LONG_IN_TENSOR_MEMORY = 76  # K is 96, and A is in tensor memory
    FAR_SHIFT = 74  # the shift of a zero-column mask is more than the instruction descriptor says


class TensorMapReason(IntEnum):
    """Why a copy has a BAD_TENSOR_MAP: it is not a map, does not fit the copy, or a field (`value`) is wrong."""

    NO_MAP = 1
    OTHER_RANK = 2  # `value`: its rank, `limit`: that of the copy
    NO_REDUCTION = 3
    RANK = 4
    TYPE = 5
    SWIZZLE = 6
    ADDRESS = 7
    STRIDES = 8  # of `dimension`
    ROW = 9  # `value`: bytes of a row of the box
    TOTAL = 10
    OTHER_MODE = 11  # `value`: that of the map, `limit`: that of the copy
    IN_SHARED = 12
    INTERLEAVE = 13
    ATOMICITY = 14
    CORNERS = 15  # of `dimension`
    FILL = 16
    PADDED_ROW = 17  # `value`: elements of a row of the box
    GATHERED_ROWS = 18  # `value`: rows of the box
    NO_INTERLEAVE = 19
    NEEDS_SWIZZLE = 20
    NO_STORE = 21
    STORE_CORNERS = 22  # of `dimension`


class TextureReason(IntEnum):
    """Why what a handle (`address`) refers to is a BAD_TEXTURE."""

    NOT_A_HANDLE = 1  # `limit`: the kind that is wanted
    UNBOUND = 2  # a variable of the module that the host has set to nothing
    OTHER_KIND = 3  # `value`: its kind, `limit`: the one that is wanted
    OTHER_GEOMETRY = 4  # `value`: that of the texture, `limit`: that of the instruction
    NOT_SAMPLED = 5  # linear memory is fetched by integer coordinates


class SurfaceReason(IntEnum):
    """Why the coordinates of a surface are a BAD_SURFACE_COORDINATE."""

    OUTSIDE = 1  # `value`, of `dimension`, with `limit` bytes, rows, slices or layers
    MISALIGNED = 2  # `value`: bytes from the start of a row, `limit`: what that must be a multiple of


class CoordinateReason(IntEnum):
    """Why the coordinates of a box are a BAD_COORDINATE."""

    NEGATIVE = 1  # `value`, of `dimension`, in a store
    MISALIGNED = 2  # `value`: where the box starts in a row, in bytes; `limit`: what that must be a multiple of
    MISALIGNED_ELEMENT = 3  # the same in elements
    OUT_OF_CORNERS = 4  # `value`, of `dimension`: the first pixel of im2col
    HALO = 5  # `value`: of `.im2col::w`; `limit`: it is below that
    OFFSET = 6  # the same of its offset


@struct
@dataclass
class FaultyChunk:
    """A part of a matrix in shared memory that is outside of it."""

    descriptor: u64  # the matrix descriptor
    row: u32
    chunk: u32  # of 16 bytes in the row
    major: u32  # K_MAJOR or MN_MAJOR
    is_b: u32  # whether the matrix is B, and not A
    bits: u32  # the width of an element


@struct
class FaultyCells:
    """A part of tensor memory."""

    lane: u32  # the first lane
    column: u32  # the first column
    lanes: u32
    columns: u32


@struct
class Fault:
    """What went wrong first: where, in which thread, and with what. What does not belong to its kind is 0."""

    kind: u32
    reason: u32  # why, where a kind has several reasons: of the enumeration of that kind
    instruction: u32
    thread: u32
    block: u64
    address: u64  # the address that is wrong
    size: u64  # of an access, in bytes
    access: u32  # of an access: LOAD, STORE or ATOMIC
    space: u32  # of an access: its state space
    alignment: u32  # of a MISALIGNED access: what its address must be a multiple of
    dimension: u32  # of a tensor map or of coordinates: the one that is wrong
    value: u64  # the number that is wrong: threads, arrivals, bytes, columns, an index, a mask
    limit: u64  # what `value` may be at most, or must agree with
    mma_kind: u32  # of a BAD_INSTRUCTION_DESCRIPTOR: the kind of MMA
    other_instruction: u32  # 1 + that of another access that has to do with it; 0: none is known
    other_thread: u32  # of the other access
    unused: u32
    other_block: u64  # of the other access
    chunk: FaultyChunk  # of a BAD_DESCRIPTOR
    cells: FaultyCells  # of a BAD_TENSOR_ADDRESS
