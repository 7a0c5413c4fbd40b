"""The parts of a thread, by subject; `state.Thread` holds them."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import FenceOrder, VectorClock
from ptxlab.native import Array, Growable, Pointer, struct, u8, u32, u64

OBSERVATIONS = 8  # that are remembered of a thread
ROWS = 8  # of matrices that are remembered of a thread

# What a thread is doing: its status.
READY = 0  # it can run
YIELDED = 1  # it can run after others: it may be waiting for what they write
DONE = 2
AT_COLLECTIVE = 3  # it waits for lanes of its warp
ACTIVE = 4  # it waits for whatever lanes are there: `activemask`
AT_BARRIER = 5
AT_PHASE = 6  # it waits for an mbarrier
FAILED = 7
AT_CLUSTER = 8  # it waits at the barrier of its cluster
AT_PRODUCTS = 9  # it waits for MMAs by `wgmma`, and for all warps that start them
AT_PEER = 10  # it waits for the other block of its pair to execute the same operation on tensor memory
AT_REGISTERS = 11  # it waits for registers of the pool of its block
AT_TURN = 12  # it is at a volatile access, where lanes of its warp take turns as if they ran in step


@struct
class Index:
    """Three extents or coordinates."""

    x: u32
    y: u32
    z: u32


@struct
class Waiting:
    """Where a thread waits: at a barrier, or at a warp collective."""

    barrier: u32  # the number of the barrier
    instruction: u32  # known only while it waits, and when it yields
    members: u32  # the lanes of the warp collective, a bit for each
    site: u32  # of the warp collective
    passed: u32  # 1 + the last instruction by which it arrived at a barrier with its warp, and did not wait
    answer: u64  # what the wait has found out


@struct
class WaitTarget:
    """What a thread waits for asynchronously: a phase of an mbarrier, or groups of `wgmma`."""

    offset: u64  # the offset of the mbarrier
    number: u64  # the parity of the phase and the order of the wait, or the groups
    asked: u32  # 1 + the instruction that last polled a phase, since the state of the block was noted


@struct
class ThreadMemory:
    """The memory of a thread."""

    frame: Pointer[u8]  # of the running function: registers across waits
    frame_limit: Pointer[u8]  # the end of all its frames
    exchange: Pointer[u32]  # its words of the lane exchange buffer
    shared: Pointer[u8]
    shared_size: u64
    local: Pointer[u8]
    local_size: u64
    local_base: u64  # where the local memory of the running function starts
    local_top: u64  # where the local memory of the next function would start
    local_used: u64  # how far any function has reached


@struct
class Preemption:
    """When a thread lets others run first; see `runtime.schedule.search`."""

    points_left: u32  # preemption points that it may still pass
    read_cost: u32  # how many of them an access counts that changes nothing
    at_point: u32  # whether it was preempted


@struct
class Copy:
    """A `cp.async` that has not been done yet, or (size 0) an arrival that follows those before it."""

    destination: u64
    source: u64
    size: u32
    source_size: u32
    group: u32
    instruction: u32
    serial: u32  # of the last copy that an arrival follows
    number: u32  # among those of its block that are recorded


@struct
class ThreadCopies:
    """The asynchronous copies that a thread has started."""

    group: u32  # of `cp.async`, that is still open
    bulk_group: u32  # of bulk copies, that is still open
    index: u32  # of the next copy in its group
    done: u32  # the last copy of its own that it knows to be done
    shared: u32  # the last copy of its own that all threads of the block know to be done
    pending: Growable[Copy]


@struct
class ThreadWgmma:
    """The MMAs by `wgmma` that a thread has started."""

    mark: u64  # a hash of the descriptors that it gave so far
    closed_mark: u64  # a hash of those up to the last group that it closed
    group: u32  # how many groups it has closed


@struct
class ClusterArrival:
    """The last arrival of a thread at the barrier of its cluster."""

    phase: u32  # 1 + the phase in which it arrived; 0 once it has waited
    instruction: u32
    released: u32  # the epoch up to which it handed over what it did
    arrived: u32  # the epoch of the last arrival without a release; 0: there was none
    relaxed_at: u32  # the instruction of that arrival


@struct
class Starting:
    """The asynchronous operation that a thread is starting, for the detectors."""

    channel: u32
    number: u32


@struct
class StampByScope:
    """An epoch for each scope."""

    block: u32
    cluster: u32
    gpu: u32
    system: u32  # where several GPUs run; otherwise the whole GPU is the widest scope


@struct
class KnowledgeByScope:
    """Vector clocks for each scope."""

    block: VectorClock
    cluster: VectorClock
    gpu: VectorClock
    system: VectorClock


@struct
class Observation:
    """A write to a synchronization variable that a thread has observed by a strong read, and that is not ordered."""

    address: u64
    epoch: u32  # up to which the accesses of the thread that wrote come before that write
    block: u32  # of the thread that wrote
    lanes: u32  # of its warp: the lane that wrote
    warp: u32
    side: u32  # which of both sides synchronizes; see `runtime.order.one_sided`
    read: u32  # the instruction of the read
    write: u32  # the instruction of the write


@struct
class MatrixRow:
    """A row of a matrix in shared memory, of which a thread has read a part for an MMA by its warp."""

    offset: u64
    instruction: u32  # 1 + the one that read it
    number: u32  # of those that the thread has read


@struct
class ThreadOrder:
    """What happened before what a thread does now, for the detectors; see `clocks`."""

    epoch: u32  # of what it does now
    warp_epoch: u32  # up to which it knows what its warp did
    converged_epoch: u32  # up to which it would know what its warp did, if all warp collectives ordered memory
    fence: StampByScope  # when it last passed a releasing fence
    init_fence: u32  # the epoch when it last passed a fence for mbarriers that it has initialized
    tensor_epoch: u32  # the epoch when it last started an operation on tensor memory
    unfenced: u32  # whether a `tcgen05.fence` is known to be missing since it last passed one
    early_wait: u32  # the instruction of its last wait that no phase had to complete for
    wait_at: u32  # the instruction of its last wait on an mbarrier that is over
    wait_order: u32  # of that wait, as `isa.chapters.mbarrier` has it
    weak: u32  # why its last wait on an mbarrier that handed nothing over did not; see `last_waits`
    weak_at: u32  # the instruction of that wait, or of the arrival that it saw
    copies_wait: u32  # 1 + the instruction of its last wait for groups of `cp.async`
    bulk_wait: u32  # 1 + the instruction of its last wait for groups of bulk copies
    products_wait: u32  # 1 + the instruction of its last wait for groups of `wgmma`
    wait: u64  # 1 + the offset of that mbarrier; 0: there was none
    wait_phases: u64  # how many phases of it were complete then
    early: u64  # 1 + the offset of the mbarrier of that wait; 0: there was none, or it has seen a phase complete since
    observed: u32  # how many observations there were; the latest are in `observations`
    observations: Array[Observation, 8]
    rows: u32  # how many rows of matrices it has read for MMAs by its warp
    latest_rows: Array[MatrixRow, 8]  # by their instructions
    lockstep_store: u32  # 1 + the instruction of its last volatile store; see `runtime.order.lockstep`
    lockstep_offset: u64  # where that store was to
    lockstep_epoch: u32  # its epoch then
    lockstep_stores: u64  # a bit for each volatile store in that epoch, by the number of the instruction modulo 64
    exchanged: u64  # of the first lane: what `changes_of_lanes` was when all lanes had exchanged what they know
    exchanged_members: u32  # the lanes that did
    exchanged_doubt: u64  # in what doubt that was
    exit_epoch: u32  # of a thread that has exited: up to which all threads of the block know what it did
    seen_version: u64  # of the synchronization variable that it last acquired from, at once or for its next fence
    acquired_version: u64  # of the synchronization variable that it last acquired from at once
    known: VectorClock  # what it knows of others, beyond what its whole warp or block knows
    pending: KnowledgeByScope  # what it has read, and will know when it passes a fence
    fenced: KnowledgeByScope  # what it knew, and had done itself, when it last passed a releasing fence
    tensor_known: VectorClock  # of operations on tensor memory, what it has passed a fence for
    fences: FenceOrder
