"""What the detectors find: the kinds of findings, and the record of one, with a part for each kind that needs it."""

from __future__ import annotations

from enum import IntEnum

from ptxlab.emulate.abi.tiles import TileRead, WrittenTile
from ptxlab.native import struct, u32, u64
from ptxlab.values import dataclass

# The kinds.
RACE = 1
UNWRITTEN = 2
UNFENCED = 3
UNSTARTED = 4
EXITED = 5
UNFENCED_TENSOR = 6
COLLECTIVE_ONLY = 7  # ordered only if a warp collective orders memory
FAILED_ONLY = 8  # ordered only if a `cas` that fails is a write
NOT_INVALIDATED = 20
STALE_PHASE = 21  # a read before the phase that brings the data
UNREAD = 22  # accumulators that nothing read
MISMATCHED = 23  # a matrix that is not read as it was written
STALE_MAP = 24  # a copy by a tensor map of which it may see an older version
COLLECTOR = 26  # a collector buffer that does not hold the matrix of an MMA that uses it
ONE_SIDED = 27  # a value that may be older than what was observed; see `one_sided`
SHUFFLED = 28  # a value that `shfl` took from a lane that takes no part
UNCHANGED_MAP = 30  # a tensor map that is released and acquired again with the same bytes
LOCKSTEP = 31  # lanes of a warp that rely on running in step; see `lockstep`


class MismatchReason(IntEnum):
    """Why a matrix is MISMATCHED."""

    SWIZZLE = 1
    STRIDE = 2  # from eight lines to the next eight
    LEADING = 3  # from the chunks of one row of the swizzle to the next
    OVERLAP = 4  # parts of one matrix have the same bytes
    SHARED = 5  # parts of A and B have the same bytes
    GAP = 6  # between two parts there are `gap` bytes that the same instruction wrote, fewer than a part has
    UNALIGNED = 7  # rows of the swizzle do not start at multiples of its width
    ROWS = 8  # eight lines of a chunk are of more matrices that `stmatrix` wrote than they should be
    SLICE = 9  # it starts in the middle of the bytes of a row that one MMA reads
    DEPTH = 10  # A and B start at different k: at `a_slice` and `b_slice`; see `k_slices`
    TYPE = 11  # its elements are multiplied as another type than they were copied as
    UNREAD_SLICES = 12  # no MMA reads `unread_slice` of the k that was copied; see `k_slices`
    MATRIX = 13  # threads read it with another swizzle, for MMAs by their warp; see `matrix_rows`
    FRAGMENT = 14  # threads read its elements for MMAs of another type; see `matrix_rows`


@struct
@dataclass
class FoundAccess:
    """An access that a finding is about; of an instruction that accesses nothing, where it is."""

    instruction: u32
    thread: u32
    block: u64
    flags: u32  # see `runtime.order.shadow`
    unused: u32


@struct
@dataclass
class FoundWait:
    """The waits that should have ordered the accesses of a race. Instructions are 1 + their number; 0: there is none.

    Of STALE_PHASE: the wait that was over at once.
    """

    at: u32  # the last wait on an mbarrier, or the arrival that hands nothing over
    weak: u32  # why that hands nothing over; see `runtime.order.last_waits`
    groups: u32  # the last wait for groups of the thread that started the other operation
    commit: u32  # the `tcgen05.commit` that signals the end of the other operation, at the mbarrier


@struct
@dataclass
class FoundMbarrier:
    """The mbarrier of a wait, or of a finding that is about one, and the last of its phases that a wait has seen."""

    offset: u64
    phases: u64  # how many phases were complete
    initialized: u32  # 1 + the instruction that initialized it; 0: it is not known
    completed_by: u32  # 1 + the first instruction that arrived in the phase
    bytes: u64  # that were expected in the phase
    arrivals: u32  # of the phase
    unused: u32


@struct
@dataclass
class FoundObservation:
    """The write that was observed before a read that may be too old, and the read that observed it."""

    read: u32
    write: u32
    side: u32  # of the two threads the one that synchronizes; see `runtime.order.one_sided`
    unused: u32


@struct
@dataclass
class FoundMismatch:
    """A matrix as it is read, and the tile that it should be; fields that do not belong to the reason are 0."""

    read: TileRead
    tile: WrittenTile
    reason: u32  # of `MismatchReason`
    swizzle: u32  # by which it is read
    gap: u32
    a_slice: u32
    b_slice: u32
    unread_slice: u32


@struct
@dataclass
class Finding:
    """A finding: of which kind, where, and what else is known of it. What does not belong to its kind is 0."""

    kind: u32
    space: u32  # the state space of the bytes
    address: u64  # the first of the bytes
    bytes: u32  # how many
    is_near: u32  # of a race: whether both accesses are by lanes of one warp
    access: FoundAccess  # the one that was found, of a race the later one
    other: FoundAccess  # of a race the earlier one; what wrote, freed, filled, initialized or released before
    is_started: u32  # of a race: whether the other is known to be started, and only not known to be done
    missing: u32  # of UNFENCED_TENSOR and STALE_MAP: what is missing between the two
    used_at: u32  # of UNWRITTEN and SHUFFLED: 1 + the instruction that uses the value; 0: it is the read itself
    bands: u32  # of UNREAD: the sub-partitions of tensor memory that nothing read, a bit for each
    collector: u32  # of COLLECTOR: the buffer and what it holds; see `runtime.tensor_memory.collectors`
    unused: u32
    turn: u64  # of the cluster that it was found in: how many start before it
    wait: FoundWait  # of a race, and of STALE_PHASE
    mbarrier: FoundMbarrier  # of such a wait, and of NOT_INVALIDATED
    observation: FoundObservation  # of ONE_SIDED
    mismatch: FoundMismatch  # of MISMATCHED
