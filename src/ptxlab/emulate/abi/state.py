"""A running kernel as machine code sees it: a worker runs clusters, a cluster has blocks, a block has threads.

The code of a kernel and the runtime share these layouts; their parts are in the other files of this folder. One
`Worker` belongs to one core: it has its own hints and its own record of what went wrong, and reads everything else
without writing it. The order of fields matters for speed: a loop over all threads reads the first bytes of each.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import Hint
from ptxlab.emulate.abi.barriers import BlockBarriers
from ptxlab.emulate.abi.bulk import TensorMap
from ptxlab.emulate.abi.clocks import FenceOrder, History, MapAcquire, MapUse, Pages, SyncVariables, VectorClock
from ptxlab.emulate.abi.code import Program
from ptxlab.emulate.abi.faults import Fault
from ptxlab.emulate.abi.quiescence import Watch
from ptxlab.emulate.abi.recording import Recorder
from ptxlab.emulate.abi.tensor_memory import TensorMemoryState
from ptxlab.emulate.abi.thread_parts import (
    ClusterArrival,
    Index,
    Observation,
    Preemption,
    Starting,
    ThreadCopies,
    ThreadMemory,
    ThreadOrder,
    ThreadWgmma,
    Waiting,
    WaitTarget,
)
from ptxlab.emulate.abi.tiles import Tiles
from ptxlab.emulate.abi.worker_parts import Directed, LaunchShape, SharedMemorySizes, Turns, WorkerMemory
from ptxlab.native import Array, Growable, Pointer, struct, u8, u32, u64


@struct
class Thread:
    """One thread: what it does, where it continues, its memory, and what it knows of others."""

    # What the scheduler, barriers and warp collectives read of all threads in turn: 64 bytes.
    status: u32  # READY, YIELDED, …; see `thread_parts`
    resume: u32  # where its code continues
    code: Pointer[u8]
    block: Pointer[Block]
    worker: Pointer[Worker]
    waiting: Waiting
    fuel: u32  # backward jumps until it yields
    ran: u32  # whether it has run since the state of the block was noted
    # What the code of a kernel loads when it resumes and when it accesses memory: 128 bytes.
    memory: ThreadMemory
    hints: Pointer[Hint]
    counters: Pointer[u64]
    number: u32
    lane: u32
    preemption: Preemption
    index: Index  # the index of the thread in its block
    # Fields that are cleared when a block starts are neighbors: one store clears several.
    call_depth: u32
    arrival: ClusterArrival
    copies: ThreadCopies
    wgmma: ThreadWgmma
    rank: u64  # among the threads with the lowest priorities; 0: it is not one
    target: WaitTarget
    starting: Starting
    order: ThreadOrder
    is_recorded: u32


@struct
class BlockMemory:
    """The memory of a block and of its threads."""

    shared: Pointer[u8]
    shared_size: u64
    exchange: Pointer[u32]  # the lane exchange buffers of all warps
    frames: Pointer[u8]  # the frames of all threads
    locals: Pointer[u8]  # local memory of all threads
    local_marks: Pointer[u8]  # which bytes of local memory have been written, a bit for each


@struct
class BlockSchedule:
    """Which threads of a block run next, and whether any makes progress."""

    random: u64  # of its own, so that its schedule depends on nothing but the seed
    moves: u64  # counts what only happens when a thread makes progress
    times: u64  # how often its threads read a clock
    asleep: u32  # with a seed, the warps of which no lane could run when it was last asked, a bit for each
    warp_order: Array[u8, 32]  # with a seed, the order in which warps are asked whether they can run
    lane_order: Array[u8, 32]  # with a seed, the order in which lanes are asked whether they can run
    known_moves: u64  # the moves of the block when this was known:
    least: Array[u64, 32]  # by warp, the lowest rank of a lane that can run; 0: not known; see `search.first_of_last`
    idle: u32  # the warps of which it is known that no lane can run, but those that were put last, a bit for each


@struct
class BlockOrder:
    """What all threads of a block know, and what was done to its shared memory, for the detectors."""

    phase: u32  # of the cluster's barrier: up to which all its threads know what the others did
    barrier_epoch: u32  # up to which all its threads know what all did that had not exited
    settled_epoch: u32  # up to which all its threads know what all did
    pages: Pages  # accesses to shared memory
    variables: SyncVariables  # synchronization variables in shared memory
    known: VectorClock  # what all its threads know of other blocks
    fences: FenceOrder
    tiles: Tiles
    acquires: Growable[MapAcquire]  # of tensor maps, by its threads
    uses: Growable[MapUse]  # of tensor maps, by copies of its threads
    releases_maps: u32  # whether one of its threads has released tensor maps
    has_observed: u32  # whether one of its threads has observed a write since the last barrier
    observed: u32  # how many of its threads' observations came before a barrier; the latest are in `observations`
    observations: Array[Observation, 8]  # see `runtime.order.one_sided`


@struct
class Transfer:
    """A bulk copy that has not been done yet: what it reads and writes, and what it signals."""

    destination: u64
    source: u64
    barrier: u64  # the mbarrier that it signals, in shared memory of the block `signals`, or `to` if that is null
    to: Pointer[Block]  # whose shared memory it writes; null: it writes global memory
    signals: Pointer[Block]  # the other block of a pair, if that has the mbarrier
    data: Pointer[u8]  # what it has read so far; null: nothing
    size: u32
    is_global: u32  # whether it reads global memory
    left: u32  # bytes at the start that are not read
    right: u32  # bytes at the end that are not read
    mask: u32  # which bytes of every 16 are written
    reduction: u32  # how it combines the values that it brings and finds; see `runtime.asynchronous.reductions`
    type: u32  # of the values that it reduces
    thread: u32
    group: u32
    instruction: u32
    number: u32  # among those of its block
    rank: u32  # of a box of a tensor: its dimensions; 0: it is a copy of bytes
    coordinates: Array[u32, 6]  # of a box of a tensor: where it starts, by the dimensions of its map
    offsets: Array[u32, 3]  # of im2col: what is added to the coordinates of pixels
    mode: u32  # of a box of a tensor: how it is cut out
    rows: u32  # of a box of a tensor
    flags: u32  # its accesses to global memory, for the detectors; see `runtime.order.shadow`
    map: TensorMap  # of a box of a tensor


@struct
class StartedStore:
    """A store of a box that a thread has started, by which the same store of another lane is recognized."""

    address: u64  # of the tensor
    source: u64
    instruction: u32
    thread: u32
    group: u32
    coordinates: Array[u32, 6]


@struct
class BlockTransfers:
    """The bulk copies that the threads of a block have started."""

    pending: Growable[Transfer]
    started: u32  # how many so far
    stored: u32  # stores of boxes so far
    stores: Array[StartedStore, 8]  # the last stores of boxes, by their numbers


@struct
class BlockRegisters:
    """The registers of a block, counted for one thread of a warp; see `runtime.schedule.registers`."""

    pool: u32  # what warps have given back
    is_used: u32
    owned: Array[u32, 32]  # by warp; 0: as many as at the start
    changes: Array[u64, 32]  # by warp: a hash of all `setmaxnreg` that it executed
    changed_at: Array[u32, 32]  # by warp: 1 + the instruction of its last `setmaxnreg`


@struct
class Block:
    """A block that has started: its threads, barriers and memory."""

    threads: Pointer[Thread]
    count: u32  # how many threads it has
    live: u32  # threads that have not exited
    warps: u32
    rank: u32  # its rank in the cluster
    number: u64  # its number in the grid
    worker: Pointer[Worker]
    cluster: Pointer[Cluster]
    memory: BlockMemory
    schedule: BlockSchedule
    index: Index  # its index in the grid
    order: BlockOrder
    bulk: BlockTransfers
    tensor: Pointer[TensorMemoryState]  # null until tensor memory is first allocated
    barriers: BlockBarriers
    registers: BlockRegisters
    is_recorded: u32
    copies_started: u32  # `cp.async` that were recorded
    is_fresh: u32  # whether no thread has run by itself since all were put at the start of the kernel
    is_quick: u32  # whether all threads are at the start, and lanes together run to the end: nothing else is noted
    network: u32  # 1 + its position among those that have started operations of the network


@struct
class Cluster:
    """Blocks that have started together, take turns, and access each other's shared memory; most often it is one."""

    blocks: Array[Pointer[Block], 16]  # the blocks by rank
    worker: Pointer[Worker]
    count: u32  # how many blocks it has
    unused: u32
    turn: u64  # how many clusters of its launch start before it
    block_order: Array[u8, 16]  # with a seed, the order in which blocks are asked whether they can run
    arrived: u32  # threads that have arrived at its barrier, and not exited
    phase: u32  # how often its barrier was completed
    gathered: VectorClock  # what the threads that have arrived handed over
    known: VectorClock  # what all threads did that arrived in the phase before
    watch: Watch


@struct
class Search:
    """The schedule of the clusters that take turns, with a seed; see `runtime.schedule.search`."""

    random: u64
    policy: u32  # how the next thread is chosen
    is_quiet: u32  # whether all of them run as without a seed, until memory changes
    changes: u64  # of memory, when it was last inspected
    moves: u64  # that were made before the cursor was set
    steps: u64  # preemption points passed since the first of these clusters started
    change_points: Array[u64, 2]  # at which a thread becomes the last one, in ascending order
    next_change: u32
    cursor: u32  # the cluster that has its turn
    slices: u32  # a walk passes less than 1, 2, 4, … points at a time; of so many numbers
    near_warp: u32  # the warp that had the last turn
    near: Pointer[Block]  # the block of the last turn; null if it is to be chosen anew
    near_moves: u64  # of the block, before that turn
    first_rank: u64  # the first of the threads with the lowest priorities
    last_rank: u64  # the last of the threads with the lowest priorities
    trace: u64  # a hash of all turns
    traces: u64  # of all clusters that this worker has run: the sum of their hashes
    points: u64  # of all clusters that this worker has run: the most preemption points that any had
    threads: u64  # of all clusters that this worker has run: the most that took turns


@struct
class WorkerClusters:
    """The clusters that a worker runs, and those that it may take."""

    next: Pointer[u64]  # of all workers together: the next of `numbers` that none has taken
    finished: Pointer[u64]  # of all workers together: blocks
    numbers: Pointer[u64]  # of clusters, `total` of them; null: all of the grid
    total: u64
    chunk: u64  # how many a worker takes at a time
    first: u64  # of those that it has taken and not started
    past: u64  # the end of those that it has taken
    stuck: Pointer[u64]  # of all workers together: how many can do nothing but spin, or nothing at all
    stuck_limit: u64  # how many workers may be stuck until the host inspects them
    residents: Pointer[Pointer[Cluster]]
    capacity: u32  # how many residents there may be; while all of them wait for others, more start
    limit: u32  # how many residents there is memory for
    waiting: u32  # how many residents there are
    is_alone: u32  # whether no other worker has residents


@struct
class Progress:
    """How a worker sees whether its clusters make progress; see `runtime.schedule.quiescence`."""

    deliveries: u64  # of copies, by all blocks
    changes: Pointer[u32]  # the counters of what changes memory
    looks: Pointer[u32]  # the counters of what polls memory: first that of all blocks, then that of its own
    change_count: u32
    far_count: u32  # the counters of what polls memory of all blocks
    look_count: u32
    mark_size: u32  # bytes of the kernel's own frame
    marked: Pointer[u8]  # which words of the frame matter; the others depend on clocks only
    broken: Pointer[Cluster]  # the cluster in which a fault was found, for explanations


@struct
class Team:
    """Grids that run at the same time, each with a worker of its own, the first of which schedules all of them.

    Each grid has a range of the numbers of blocks for itself; see `runtime.order.devices`.
    """

    workers: Pointer[Pointer[Worker]]
    grids: Pointer[u32]  # by the upper bits of the number of a block: its grid
    devices: Pointer[u32]  # by grid: the GPU that it runs on
    room: Pointer[u64]  # by GPU: what is left of its SMs, in parts of all of them
    launches: Pointer[u32]  # by grid: the same for all that one line of the host launches of one kernel
    count: u32  # how many grids there are
    chosen: u32  # the grid of which a cluster starts next
    started: u64  # how many clusters have started
    time: u64  # how many turns warps and threads have had
    network: Pointer[u8]  # a `Network`; null until a kernel uses it


@struct
class GridInTeam:
    """One grid of a team, and the grids that are complete before it starts."""

    team: Pointer[Team]  # null: the launch runs by itself
    before: Pointer[u32]  # the grids that it follows directly
    cost: u64  # what a cluster takes of the SMs
    before_count: u32
    is_ordered: u32  # whether `known` is complete
    overlaps: u32  # whether it may start while those before it run, once they let it
    triggers: u32  # how often a thread of it let the next grid start
    early_triggers: u32  # by threads that had not waited for the grids before
    has_started: u32
    first_turn: u64  # by the time of the team: when its first cluster started
    last_turn: u64  # when the last one ended
    known: VectorClock  # what its threads know when they start: what the grids before it did, and knew
    awaited: VectorClock  # what they know after `griddepcontrol.wait`
    left: VectorClock  # what its threads knew when they exited


@struct
class Worker:
    """What one core works with."""

    stop: Pointer[u32]
    host: Pointer[u8]  # a function of the host, for what machine code cannot do
    history: Pointer[History]
    fault: Pointer[Fault]
    late: Pointer[Fault]  # the first access to shared memory of a block that had exited, which stops nothing
    profile: Pointer[u8]  # requests to memory; null where they are not profiled
    recorder: Pointer[Recorder]  # null where nothing is recorded
    checks: u32  # whether the detectors are on
    tensor_columns: u32  # the most columns of tensor memory that one of its blocks had allocated
    seed: u64
    clock: u64  # what a thread last read of it
    leapt: u64  # what it was advanced by besides
    memory: WorkerMemory
    code: Program
    turns: Turns
    shape: LaunchShape
    shared: SharedMemorySizes
    clusters: WorkerClusters
    progress: Progress
    search: Search
    directed: Directed
    together: GridInTeam
