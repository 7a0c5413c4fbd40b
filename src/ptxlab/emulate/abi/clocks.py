"""What the detectors of order remember while a kernel runs: vector clocks, and the accesses to each byte.

Each thread has an epoch, a number that grows whenever it makes known what it did: at a barrier, at a release. An access
is remembered with the epoch its thread then had. A clock entry says that everything that a thread, a warp or a block
did up to an epoch has happened before. What a thread knows is a vector clock: an access happened before if an entry
covers it.
"""

from __future__ import annotations

from ptxlab.emulate.abi.findings import Finding
from ptxlab.native import Array, Growable, Pointer, struct, u8, u32, u64

WITH_COPIES = 2  # of a proxy fence: the kernel also writes shared memory by copies that go through the generic proxy


@struct
class ClockEntry:
    """Everything that `key` did up to `epoch` has happened before; see `vector_clocks` for keys."""

    key: u64
    epoch: u64


@struct
class VectorClock:
    """Entries, by rising key: as `Growable`, and how often they were changed."""

    items: Pointer[ClockEntry]
    count: u32
    capacity: u32
    changes: u64


@struct
class Access:
    """An access to some bytes by lanes of one warp, all with the same epoch; epoch 0: there was none.

    The one for some bytes is their last write. `next` numbers the first of a chain of others that still matter: reads
    since then, and earlier accesses that were not ordered with it because both are strong.
    """

    epoch: u32
    block: u32
    lanes: u32
    instruction: u32
    flags: u32  # see `shadow`
    next: u32
    link: u32  # which write it is, or which one it observed; see `chains`


@struct
class Run:
    """Accesses to elements of a page that are side by side, by threads of a block that are: one to each element."""

    start: u32  # the first element
    end: u32  # past the last element; the same: there are none
    thread: u32  # the number of the thread that accessed the first one
    block: u32
    epoch: u32
    instruction: u32
    flags: u32  # as those of an access, without the warp


MOST_RUNS = 16  # of a page: as many as it has pieces that lanes access together


@struct
class Runs:
    """The runs of a page, none of which overlap."""

    count: u32
    items: Array[Run, 16]


@struct
class Page:
    """The accesses to a stretch of memory: one for as many bytes as all accesses there so far have touched together.

    Where lanes together do nothing but stream through memory there are runs instead; see `runtime.order.runs`.
    """

    number: u64  # the address over the size of a page, plus 1; 0: unused
    accesses: Pointer[Access]
    runs: Pointer[Runs]  # null: there are accesses
    shift: u32  # how many bytes that is, as an exponent of two; of a page of runs with `RUNS`
    written: u32  # whether any of the accesses writes


@struct
class Pages:
    """A table of pages by their number; `capacity` is a power of two."""

    slots: Pointer[Page]
    count: u32
    capacity: u32


@struct
class FenceOrder:
    """What comes before each `fence.sc` of the whole GPU, for a thread or a block; see `runtime.order.fence_order`."""

    passed: VectorClock  # before a fence that comes before what is done now
    observed: VectorClock  # before a fence that a write came after which was observed before what is done now
    passed_system: VectorClock  # the same of `fence.sc.sys`, which also orders with other GPUs
    observed_system: VectorClock


@struct
class SyncVariable:
    """Memory through which threads synchronize: by release and acquire, or an mbarrier.

    `known` is what its last write hands over, `near` what it hands over only to the block `near_block`, `close` only to
    the cluster that starts with `close_block`. Where several GPUs run, `known` is for the GPU `device` only, and
    `system` for all of them. Of an mbarrier, `known` is what came with the arrivals of this phase,
    `near` with those of the phases before.
    """

    address: u64
    writer: u64  # the key of the thread that wrote last
    version: u64  # another one with each write to any variable
    last: u32  # the scope and the size of the last write; see `shadow`
    near_block: u32
    close_block: u32
    is_released: u32  # whether the last write has `.release` itself
    device: u64
    known: VectorClock
    near: VectorClock
    close: VectorClock
    system: VectorClock
    fenced: VectorClock  # what came before each `fence.sc` that the writes came after; see `runtime.order.fence_order`
    fenced_system: VectorClock  # the same of `fence.sc.sys`


@struct
class SyncVariables:
    """SyncVariables, and a table of their positions (plus 1) by address; their capacity is a power of two."""

    entries: Growable[SyncVariable]
    slots: Pointer[u32]


@struct
class MapAcquire:
    """A thread of a block has acquired a tensor map that threads wrote; see `runtime.order.tensor_map_order`."""

    address: u64
    digest: u64  # of the writes that it found there
    latest: u64  # the digest that a thread of the block found last
    content: u64  # a number for the bytes of the map at that time
    thread: u32
    epoch: u32


@struct
class MapUse:
    """A copy by a tensor map in global memory, which it reads until one of two channels says that it is over."""

    address: u64
    thread: u32
    instruction: u32
    group: u32  # of the thread's bulk copies
    channel: u32  # of the mbarrier that the copy signals; 0: it signals none
    number: u32  # of the copy, there
    unused: u32


@struct
class WatchedMemory:
    """Memory of which the host asks what each grid has read, before any other thing orders it with the grid."""

    start: u64
    size: u64
    marks: Pointer[Pointer[u8]]  # by grid: a bit for each byte; null where it is not asked
    first: Pointer[u64]  # by grid: the first byte that it has read
    past: Pointer[u64]  # by grid: past the last one; 0: it has read none


SOURCES = 32  # bits of instructions that give undefined values; if there are more, some share one
STORES = 32  # instructions by which undefined values are stored; if there are more, some share what is known


@struct
class UndefinedValue:
    """The last undefined value that a lane got from an instruction; see `runtime.order.undefined`."""

    instruction: u32  # 1 + the instruction; 0: there was none
    thread: u32
    block: u64
    address: u64
    bytes: u32  # 0: it is not from memory
    space: u32


@struct
class GridOrder:
    """How a grid is ordered with the one before and the one after; see `earlier_grids`."""

    triggers: u32  # how often threads let the next grid start
    early_triggers: u32  # how often by threads that had not waited for the grids before
    keeps_older: u32  # whether grids before the one before may still run
    unused: u32
    shared_from: u64  # the addresses that mean the same in the grid before
    shared_up_to: u64  # the end of these addresses


@struct
class History:
    """What is remembered during a launch."""

    pages: Pages  # of global memory
    variables: SyncVariables
    chained: Growable[Access]  # the accesses of all chains; the first is never used
    chained_free: u32
    unwatched: u32  # accesses that were not checked, since there was no memory left to remember them
    bytes: u64
    limit: u64
    findings: Pointer[Finding]
    finding_count: u32
    finding_capacity: u32
    scratch: VectorClock
    versions: u64  # of variables so far
    is_trial: u32  # whether other cores run blocks at the same time, each with a history of its own
    is_serial: u32  # whether what was found may depend on the order of blocks, so that one core has to find it
    is_together: u32  # whether lanes execute the kernel together, and what is found ends the trial
    unused: u32
    grids: GridOrder
    undefined: Pointer[UndefinedValue]  # by bits of sources and by lanes
