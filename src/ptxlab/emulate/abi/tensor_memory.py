"""The tensor memory of a block as machine code sees it, and the asynchronous operations on it."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Pages, VectorClock
from ptxlab.isa.units.tensor_tile import TensorMma
from ptxlab.native import Array, Growable, Pointer, struct, u32, u64
from ptxlab.values import dataclass

UNITS = 16  # of 32 columns each: what is allocated
RECENT = 1024  # operations whose accumulators are remembered
RECENT_JOINS = 8  # operations of a pair that are remembered

# What a warp of each block of a pair executes together.
ALLOCATE = 1
FREE = 2
RELINQUISH = 3

SEVERAL = 1 << 31  # of the blocks that a `tcgen05.commit` names: a bit that says that it names them


@struct
@dataclass
class TensorAccess:
    """An access to a rectangle of tensor memory."""

    lane: u32  # the first lane
    column: u32  # the first column
    lanes: u32
    columns: u32
    kind: u32  # LOAD, STORE or ATOMIC
    operation: u32  # what makes it, see `runtime.order.tensor_happens_before`
    channel: u32  # of the asynchronous operation that makes it; 0: the thread does it at once
    number: u32  # of that operation among those of its block


@struct
class TensorMove:
    """A `tcgen05.ld` or `tcgen05.st` of a warp."""

    address: u32
    is_uniform: u32  # whether all lanes give the same address
    lanes: u32
    columns: u32
    split: u32  # columns from the first half to a second one; 0: there is none
    kind: u32  # LOAD or STORE
    channel: u32  # the first of those of its kind, one for each warp


@struct
class TensorCopy:
    """A `tcgen05.cp`: rows of chunks of 16 bytes from shared memory, each row to one lane or to several."""

    descriptor: u64  # of the matrix in shared memory
    address: u32  # the address in tensor memory
    rows: u32
    chunks: u32  # how many chunks each row has
    group: u32  # rows in consecutive lanes
    step: u32  # lanes from a group of rows to the next
    stride: u32  # lanes from a row to its next copy
    copies: u32  # how many copies of each row are written
    bits: u32  # of an element that becomes a byte; 8: nothing is expanded
    is_pair: u32  # whether both blocks of a pair copy, each from its own shared memory


@struct
class TensorOperation:
    """An asynchronous operation on tensor memory that is not done yet: an MMA, a copy, a shift, or a commit."""

    what: u32  # MULTIPLY, COPY, SHIFT or COMMIT, see `runtime.tensor_memory.operations`
    thread: u32
    instruction: u32
    blocks: u32  # of a commit: the blocks of the cluster that it signals, a bit for each; 0: that of the mbarrier
    barrier: u64  # of a commit: the mbarrier, in shared memory of the cluster
    known: VectorClock  # of a commit: what its arrival hands over
    mma: TensorMma
    copy: TensorCopy  # of a shift: only where, and in how many blocks


@struct
class Collector:
    """What a collector buffer holds: A, or with `.ws` B, of the MMA that filled it."""

    matrix: u64  # its descriptor, or its address in tensor memory
    shape: u32  # see `runtime.tensor_memory.collectors`
    filled_at: u32  # 1 + the instruction that filled it; 0: it is empty
    emptied_at: u32  # 1 + the instruction that last emptied it; 0: it never was full
    unused: u32
    contents: u64  # a mark of the elements that the matrix had then


@struct
class TensorMemoryState:
    """Tensor memory, its allocation, and what uses it."""

    cells: Pointer[u32]  # the TMEM words: 512 for each of 128 lanes
    sizes: Array[u32, 16]  # the columns of the allocation that starts at each unit; 0: none does
    allocated_at: Array[u32, 16]  # the instruction of the allocation that starts at each unit
    owners: Array[u32, 16]  # the warp of the allocation that starts at each unit
    freed_at: Array[u32, 16]  # 1 + the instruction that last freed each unit; 0: it is allocated, or never was
    used: u32  # units that are allocated, a bit for each
    least: u32  # columns of the last allocation; 0: there was none
    is_relinquished: u32
    joined: u32  # operations that its warps have executed with the other block of the pair
    started: u32  # operations that have started
    is_read: u32  # whether a warp has loaded from it
    is_masked: u32  # whether an MMA left lanes of its accumulators as they were
    collectors: Array[Collector, 5]  # one for A and four for B
    pages: Pages  # accesses to it
    operations: Growable[TensorOperation]  # that are not done yet, oldest first
    epochs: Array[
        u32, 1024
    ]  # of recent operations, by their numbers: the epoch of the thread that started it, when it did
    joins: Array[u64, 8]  # of recent operations with the other block, by their numbers: which, and how many columns
    accumulators: Array[u64, 1024]  # of recent operations, by their numbers: where they accumulate, and in which shape
