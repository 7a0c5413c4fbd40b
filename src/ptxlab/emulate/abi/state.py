"""What a running kernel consists of, as machine code sees it: a worker runs blocks, a block has threads.

The code of a kernel and the runtime share these layouts. One `Worker` belongs to one core: it has its own hints and its
own record of what went wrong, and reads everything else without writing it.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Flags, History, Knowledge, Pages
from ptxlab.emulate.abi.faults import Fault
from ptxlab.emulate.abi.tensor_memory import Tensor
from ptxlab.native import Array, Growable, Pointer, struct, u8, u32, u64

# Where the windows of shared and local memory, parameters and functions begin in the generic address space. Global and
# constant memory lie below, at the addresses that the launch chose.
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 2 << 56
PARAMETER_WINDOW = 3 << 56
FUNCTION_WINDOW = 4 << 56
# An address in shared memory may name a block of the cluster: its rank plus 1 stands above the offset; 0 is the own.
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
NOBODY = 255
KNOWN_PHASES = 64  # mbarriers of a block of which an explanation can tell

# What a thread is doing.
READY = 0  # it can run
YIELDED = 1  # it can run, but let others go first: it may be waiting for what they write
DONE = 2
MEETING = 3  # it waits for lanes of its warp
ACTIVE = 4  # it waits for whatever lanes are there: `activemask`
AT_BARRIER = 5
AT_PHASE = 6  # it waits for an mbarrier
FAILED = 7
AT_CLUSTER = 8  # it waits at the barrier of its cluster
AT_PRODUCTS = 9  # it waits for products of matrices, and for all warps that begin them

# Where an access goes.
GENERIC_SPACE = 0
GLOBAL_SPACE = 1
CONSTANT_SPACE = 2
SHARED_SPACE = 3
LOCAL_SPACE = 4
PARAMETER_SPACE = 5
CLUSTER_SPACE = 6  # shared memory of any block of the cluster
TENSOR_SPACE = 7

# How an access is made.
LOAD = 0
STORE = 1
ATOMIC = 2


@struct
class Allocation:
    """Memory that a kernel may touch: `size` bytes at the address `base`, in truth at `data`."""

    base: u64
    size: u64
    data: Pointer[u8]
    kept: Pointer[u8]  # where pages are kept as they were before the launch; see `sharing`
    marks: Pointer[u32]  # and which are, for each page; null where nothing has to be kept
    writable: u32
    unused: u32


@struct
class Hint:
    """Where an instruction found memory last: `count` aligned pieces of its size, from the address `base` on."""

    base: u64
    count: u64
    data: Pointer[u8]


@struct
class Site:
    """An instruction at which the lanes of a warp meet: what they do there together, and which can meet at all."""

    code: Pointer[u8]
    key: u32
    instruction: u32
    aligned: u32
    orders: u32  # whether it orders what its lanes did to memory: only `bar.warp.sync` does


@struct
class Callee:
    """A function that can be called: its code, what it needs of both stacks, and the number of its signature."""

    code: Pointer[u8]
    frame_size: u32
    local_size: u32
    signature: u32
    unused: u32


@struct
class Barrier:
    """One of the sixteen barriers of a block."""

    expected: u32  # threads; 0: nobody has come yet
    arrived: u32
    waiting: u32
    everyone: u32  # whether the count was left out, so that exited threads are not waited for
    all: u32
    any: u32
    ones: u32
    instruction: u32
    known: Knowledge  # what those handed over who arrived and went on


@struct
class Phase:
    """What an explanation tells of an mbarrier: who initialised it, who arrived last, how many phases are over."""

    offset: u64
    completed: u64
    instruction: u32
    arrived_at: u32
    arrived_by: u32
    is_known: u32
    copied: u64  # bytes that copies brought in this phase
    copied_at: u32  # the last of them
    copies: u32
    arrived_from: u64
    expected_bytes: u64  # by `expect_tx` in this phase
    expected_at: u32  # the last `expect_tx`
    passed: u32  # how many waits have succeeded
    bits: u64  # what the last operation on it left in memory


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
    unused: u32


@struct
class TensorMap:
    """A tensor in global memory and a box to cut out of it, as the emulator encodes it; all from the innermost on."""

    mark: u32  # by which one is known
    rank: u32
    address: u64
    strides: Array[u64, 4]  # in bytes, of all dimensions but the innermost
    fill: u64  # what stands for an element outside of the tensor
    sizes: Array[u32, 5]
    box: Array[u32, 5]
    steps: Array[u32, 5]  # along each dimension, only every so many elements are copied
    width: u32  # of an element, in bytes
    swizzle: u32  # how many bits of an address it changes
    type: u32  # of an element, where it can be reduced; see `reductions`


@struct
class Transfer:
    """A bulk copy that has not been done yet: what it reads and writes, and who hears of its end."""

    destination: u64
    source: u64
    barrier: u64  # the mbarrier, in shared memory of the block `to`
    to: Pointer[Block]  # whose shared memory it writes; null: it writes global memory
    data: Pointer[u8]  # what it has read so far; null: nothing
    size: u32
    is_global: u32  # whether it reads global memory
    left: u32  # bytes at both ends that are not read
    right: u32
    mask: u32  # which bytes of every 16 are written
    reduction: u32  # what it makes of the values that it brings and finds; see `reductions`
    type: u32
    thread: u32
    group: u32
    instruction: u32
    number: u32  # among those of its block
    rank: u32  # of a box of a tensor; 0: it is a copy of bytes side by side
    coordinates: Array[u32, 5]
    about: u32  # what its accesses to global memory are to the detectors
    map: TensorMap


@struct
class Watch:
    """Whether a cluster goes anywhere: the state it was in some time ago, and what happened since; see `stillness`."""

    changes: u64  # of memory, by all blocks, up to now
    near: u64  # looks at memory and mbarriers when the state was noted
    far: u64  # those of them that other blocks can answer
    times: u64  # looks at a clock
    mark: u64  # of the state
    least: u64  # of all marks since then
    cycle: u64  # the least mark of the cycle in which time made no difference
    quiet: u32  # rounds without a change
    age: u32  # rounds since the state was noted
    span: u32  # and how many there may be until another is
    leaps: u32  # in time that made no difference
    is_still: u32  # whether the state has come again
    is_near: u32  # whether no other cluster can help
    is_timed: u32  # whether a clock may
    unused: u32


@struct
class Thread:
    """One thread: what it does, where it goes on, and its memory.

    The order of the fields matters for speed: a block has hundreds of threads, and a loop over all of them should touch
    few cache lines of each. Fields that are cleared when a block starts are neighbors: one store clears several.
    """

    # What the scheduler, barriers and collectives read of all threads in turn: 64 bytes.
    status: u32
    resume: u32
    code: Pointer[u8]
    block: Pointer[Block]
    worker: Pointer[Worker]
    barrier: u32
    instruction: u32  # where it stands, known only at meetings and when it yields
    members: u32
    site: u32
    answer: u64  # what a wait has found out
    fuel: u32
    ran: u32  # whether it has run since the block's state was noted
    # What the code of a kernel loads when it resumes and when it accesses memory: 128 bytes.
    frame: Pointer[u8]
    hints: Pointer[Hint]
    counters: Pointer[u64]
    mail: Pointer[u32]
    shared: Pointer[u8]
    shared_size: u64
    number: u32
    lane: u32
    until_preemption: u32  # preemption points that it may still pass
    look_cost: u32  # how many of them one counts that changes nothing
    x: u32
    y: u32
    z: u32
    at_point: u32  # whether it was preempted
    frame_limit: Pointer[u8]
    local: Pointer[u8]
    local_size: u64
    local_base: u64  # where the local memory of the running function begins
    local_top: u64  # where that of the next one would
    local_used: u64  # up to where any has reached
    # Calls, asynchronous operations, waits.
    call_depth: u32
    copy_group: u32
    product_group: u32  # how many groups of `wgmma` it has closed
    product_mark: u64  # of the descriptors that it gave so far
    closed_mark: u64  # and of those up to the last group it closed
    rank: u64  # among the threads with the lowest priorities; 0: it is not one
    bulk_group: u32  # of its bulk copies, which is still open
    arrival: u32  # 1 + the phase in which it came to the barrier of its cluster; 0 once it has waited there
    arrived_at: u32  # the instruction by which it did
    asked: u32  # 1 + the instruction that last asked for a phase, since the block's state was noted
    waits_at: u64  # the mbarrier it waits for
    waits_for: u64  # the phase
    copies: Growable[Copy]
    channel: u32  # of the asynchronous work that it is beginning, for the detectors
    work: u32  # and its number
    # For the detectors; see `clocks`.
    stamp: u32  # of what it does now
    warp_stamp: u32  # up to which it knows what its warp did
    met_stamp: u32  # up to which it would if warp collectives ordered memory
    fence: u32  # the stamp when it last passed a releasing fence
    close_fence: u32  # one for its cluster
    wide_fence: u32  # and one for all blocks
    init_fence: u32  # and one for mbarriers that it has initialised
    tensor_stamp: u32  # the stamp when it last started an operation on tensor memory
    unfenced: u32  # whether the fence that such operations need is known to be missing since it last passed one
    arrival_stamp: u32  # up to which it handed over what it did when it came to the barrier of its cluster
    came_stamp: u32  # the stamp when it last came there without a release
    left_stamp: u32  # of a thread that has exited: up to which all threads of the block know what it did
    copy_index: u32  # of the next copy in its group
    copies_done: u32  # up to which copy it knows its own are done
    copies_shared: u32  # and all threads of the block know it
    seen_version: u64  # of the flag that it last took something over from, at once or for its next fence
    acquired_version: u64  # of the flag that it last took something over from at once
    known: Knowledge  # of others, beyond what its whole warp or block knows
    pending: Knowledge  # what it has read from its block, and will know when it passes a fence
    close_pending: Knowledge  # from other blocks of its cluster
    far_pending: Knowledge  # and from other blocks
    fenced: Knowledge  # what it knew, and had done itself, when it last passed a releasing fence
    close_fenced: Knowledge  # one for its cluster
    wide_fenced: Knowledge  # and one for all blocks
    tensor_known: Knowledge  # of work on tensor memory, that which it has passed a fence for


@struct
class Block:
    """A block that has begun: its threads, barriers and shared memory."""

    threads: Pointer[Thread]
    count: u32
    live: u32
    x: u32
    y: u32
    z: u32
    warps: u32
    number: u64
    random: u64  # of its own, so that its schedule depends on nothing but the seed
    shared: Pointer[u8]
    shared_size: u64
    mail: Pointer[u32]
    frames: Pointer[u8]
    locals: Pointer[u8]
    worker: Pointer[Worker]
    cluster: Pointer[Cluster]
    rank: u32  # in its cluster
    transfers_begun: u32
    met: u32  # the phase of the cluster's barrier up to which all its threads know what the others did
    pages: Pages  # who accessed shared memory
    flags: Flags  # and synchronised through it
    known: Knowledge  # what all its threads know of other blocks
    local_marks: Pointer[u8]  # which bytes of local memory have been written, a bit for each
    tensor: Pointer[Tensor]  # null until it is first allocated
    moves: u64  # counts what only happens when somebody makes progress
    times: u64  # that its threads looked at a clock
    transfers: Growable[Transfer]
    asleep: u32  # with a seed, the warps of which no lane could run when it was last asked
    barrier_stamp: u32  # up to which all its threads know what all did that had not exited
    settled_stamp: u32  # and up to which they know what all did
    barriers_used: u32  # those to which any thread has come, a bit for each
    uses_mbarriers: u32  # whether `phases` tells of any
    unused: u32
    warp_order: Array[u8, 32]  # with a seed, in which they are asked whether they can run
    lane_order: Array[u8, 32]  # and lanes
    barriers: Array[Barrier, 16]
    phases: Array[Phase, 65]  # by offset: of two that collide, the later one; the last takes what is not kept


@struct
class Search:
    """The schedule of the clusters that take turns, with a seed; see `runtime.search`."""

    random: u64
    policy: u32  # how the next thread is chosen
    is_quiet: u32  # whether all of them run as without a seed, until memory changes
    changes: u64  # of memory, when it was last looked at
    moves: u64  # that were made before the cursor was set
    steps: u64  # preemption points passed since the first of these clusters began
    change_points: Array[u64, 2]  # at which a thread becomes the last one, in ascending order
    next_change: u32
    cursor: u32  # the cluster that has its turn
    slices: u32  # a walk passes less than 1, 2, 4, … points at a time; of so many numbers
    near_warp: u32  # that had the last turn
    near: Pointer[Block]  # its block; null if it is to be chosen anew
    near_moves: u64  # of the block, before that turn
    first_rank: u64  # of the threads with the lowest priorities
    last_rank: u64
    trace: u64  # a mark of all turns
    # Of all clusters that this worker has run.
    traces: u64  # the sum of their marks
    points: u64  # the most preemption points that any had
    threads: u64  # the most that took turns


@struct
class Event:
    """What a thread did in a run that the host directs; see `runtime.steps`."""

    thread: u32
    kind: u32
    address: u64
    size: u32
    extra: u32


@struct
class Directed:
    """A run in which the host chooses who takes the next step; see `runtime.directed`."""

    choose: Pointer[u8]  # a function of the host that returns the number of a thread
    states: Pointer[u8]  # by thread: whether it is at a preemption point
    marks: Pointer[u64]  # and of the state it is in there
    events: Pointer[Event]  # since the launch began; null unless the host directs it
    count: u32
    room: u32
    at_points: u32  # threads that are at one
    has_ended: u32  # whether all threads have exited


@struct
class Cluster:
    """Blocks that have begun together, take turns, and see each other's shared memory; most often it is one."""

    blocks: Array[Pointer[Block], 16]  # by rank
    worker: Pointer[Worker]
    count: u32
    unused: u32
    block_order: Array[u8, 16]  # with a seed, in which they are asked whether they can run
    arrived: u32  # threads that have come to its barrier, and not exited
    phase: u32  # how often that was completed
    gathered: Knowledge  # what those handed over who have come
    known: Knowledge  # what all did who came to the phase before
    watch: Watch


@struct
class Worker:
    """What one core works with."""

    stop: Pointer[u32]
    allocations: Pointer[Allocation]
    hints: Pointer[Hint]
    sites: Pointer[Site]
    callees: Pointer[Callee]
    parameters: Pointer[u8]
    counters: Pointer[u64]
    host: Pointer[u8]  # a function of the host, for what machine code cannot do
    history: Pointer[History]
    watched: u64  # the parameters that point to memory which the kernel may write
    allocation_count: u32
    callee_count: u32
    parameter_size: u64
    block_x: u32
    block_y: u32
    block_z: u32
    grid_x: u32
    grid_y: u32
    grid_z: u32
    cluster_x: u32
    cluster_y: u32
    cluster_z: u32
    cluster_size: u32
    is_explicit_cluster: u32  # whether the launch or the kernel said so
    unused: u32
    shared_size: u32
    dynamic_size: u32
    reserved_size: u32  # bytes at the beginning of shared memory that the system keeps
    user_shared_size: u32  # all but them
    workspace_low: u32  # the address of what the blocks of a cooperative launch meet at
    workspace_high: u32
    frame_size: u32
    local_size: u32
    mail_words: u32
    quantum: u32
    rounds: u32  # of all warps of a block that bring nothing new, until other blocks have a turn
    turn: u32  # rounds until others have one even so
    seed: u64
    clock: u64
    heap: u64  # where memory of `malloc` begins that this launch allocates
    checks: u32
    entry_local: u32
    entry: Pointer[u8]
    next: Pointer[u64]  # of all workers together: the next of `numbers`, which are `total`
    finished: Pointer[u64]  # blocks
    numbers: Pointer[u64]  # of clusters; null: all of the grid
    total: u64
    chunk: u64  # how many a worker takes at a time
    first: u64  # of those it has taken, which it has not begun
    past: u64
    stuck: Pointer[u64]  # of all workers together: how many can do nothing but spin, or nothing at all
    stuck_limit: u64  # and how many may be until the host looks at them
    profile: Pointer[u8]  # what is known of requests to memory; null where nobody asked
    residents: Pointer[Pointer[Cluster]]
    resident_room: u32  # how many there may be; while all of them wait for others, more begin
    resident_limit: u32  # up to as many as there is memory for
    waiting: u32  # clusters among `residents`
    is_alone: u32  # whether no other worker has any
    fault: Pointer[Fault]
    late: Pointer[Fault]  # the first access to shared memory of a block that had exited, which stops nothing
    deliveries: u64  # of copies, by all blocks
    changes: Pointer[u32]  # the counters of what changes memory
    looks: Pointer[u32]  # and of what looks at it: first at memory of all blocks, then at that of its own
    change_count: u32
    far_count: u32
    look_count: u32
    mark_size: u32  # bytes of the kernel's own frame
    largest_frame: u32  # of any function
    largest_local: u32
    marked: Pointer[u8]  # which words of them do; the others tell only the time
    broken: Pointer[Cluster]  # the cluster in which it was found, for those who explain it
    search: Search
    directed: Directed
