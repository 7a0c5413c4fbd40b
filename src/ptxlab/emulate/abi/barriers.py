"""The barriers of a block: the sixteen that are numbered, and what is known of mbarriers in shared memory."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import FenceOrder, VectorClock
from ptxlab.native import Array, struct, u32, u64

KNOWN_PHASES = 64  # mbarriers of a block that an explanation can describe
RECENT_PHASES = 4  # of an mbarrier that it describes
EARLY_READS = 4  # that are remembered of an mbarrier
SOURCES = 4  # instructions of a phase whose arrivals it describes
# How threads come to a barrier: to stay, and as a whole warp.
WAITS = 1
ALIGNED = 2


@struct
class Barrier:
    """One of the sixteen barriers of a block."""

    expected: u32  # threads; 0: none has arrived yet
    arrived: u32
    waiting: u32
    everyone: u32  # whether the count was left out, so that exited threads are not waited for
    all: u32
    any: u32
    ones: u32
    instruction: u32
    known: VectorClock  # what the threads that arrived and continued have handed over
    fences: FenceOrder  # of the threads that have arrived


@struct
class Arrivals:
    """The arrivals at an mbarrier in one phase by one instruction and one block."""

    instruction: u32
    count: u32  # of arrivals; 0: there is none
    thread: u32  # the first that arrived
    warps: u32  # a bit for each warp of its block that arrived
    block: u64


@struct
class PhaseRecord:
    """What arrived at an mbarrier in one phase."""

    number: u64
    arrived: u32  # all arrivals of the phase
    passed: u32  # waits that have seen the phase complete
    expected_bytes: u64
    bytes: u64  # the bytes that arrived
    sources: Array[Arrivals, 4]


@struct
class EarlyRead:
    """A read of shared memory after a wait that no phase had to complete for; see `runtime.order.early_waits`."""

    offset: u64  # of what was read
    generation: u32  # of the last write to it
    instruction: u32  # of the read
    wait: u32  # the instruction of the wait
    thread: u32
    filled_at: u32  # 1 + the instruction of the next write, if the mbarrier hands it over; 0: it is not known
    unused: u32


@struct
class Phase:
    """What an explanation says of an mbarrier: its initialization, its arrivals, its bytes, its completed phases."""

    offset: u64
    completed: u64  # how many phases have completed
    instruction: u32  # the one that initialized it
    arrived_at: u32  # the instruction of the last arrival
    arrived_by: u32  # the thread of the last arrival
    is_known: u32
    copied: u64  # bytes that copies brought in this phase
    copied_at: u32  # the instruction of the last copy that brought some
    copies: u32  # how many copies brought bytes in this phase
    arrived_from: u64  # the block of the last arrival
    expected_bytes: u64  # by `expect_tx` in this phase
    expected_at: u32  # the instruction of the last `expect_tx`
    passed: u32  # how many waits have succeeded
    bits: u64  # what the last operation on it left in memory
    arrived_order: u32  # of the last arrival, as `isa.chapters.mbarrier` has it
    passed_at: u32  # 1 + the instruction of the last wait that has succeeded; 0: there was none
    passed_phases: u64  # how many phases were complete then
    early_count: u32  # how many of `early` there are
    skipped: u32  # phases that no wait saw complete before the next one did
    committed: u32  # the number of the last commit that signals it; 0: there was none
    committed_at: u32  # the instruction of that commit
    committed_by: u32  # the thread of that commit
    copied_first: u32  # the instruction of the first copy that brought bytes in this phase
    committed_from: u64  # the block of that commit
    early: Array[EarlyRead, 4]
    recent: Array[PhaseRecord, 4]  # the phase it is in and those before, by their numbers


@struct
class BlockBarriers:
    """All barriers of a block."""

    used: u32  # numbered barriers that any thread has arrived at, a bit for each
    uses_mbarriers: u32  # whether `phases` describes any
    numbered: Array[Barrier, 16]
    phases: Array[Phase, 65]  # see `runtime.asynchronous.mbarrier_notes`; the last takes what is not kept
