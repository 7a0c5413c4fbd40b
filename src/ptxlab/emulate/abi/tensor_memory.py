"""The tensor memory of a block as machine code sees it, and the work of its tensor core that has not been done yet."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Knowledge, Pages
from ptxlab.native import Array, Growable, Pointer, struct, u32, u64

UNITS = 16  # of 32 columns each: what is allocated
RECENT = 1024  # pieces of work of which it is remembered what they accumulate to


@struct
class Operation:
    """A piece of work that has been begun: a product, a copy, or telling an mbarrier that those before it are done."""

    what: u32  # see `runtime.tensor_work`
    kind: u32  # of the product, or the shape of the copy
    thread: u32
    instruction: u32
    number: u32  # among those of its block
    d: u32  # addresses in tensor memory: of the result,
    scale_a: u32  # and of scale factors
    scale_b: u32
    factors: u32  # scale factors in a row
    description: u32  # the instruction descriptor
    a: u64  # a descriptor, or an address in tensor memory
    b: u64
    barrier: u64  # in the cluster
    masks: Array[u32, 8]  # the lanes that are not written, a bit for each, of one block or of two
    a_in_cells: u32
    adds: u32
    scale_d: u32
    blocks: u32  # of the cluster that hear of it, a bit for each; 0: the one of the mbarrier
    rows: u32  # of a copy: what it reads,
    chunks: u32
    step: u32  # lanes from 32 rows to the next 32,
    further: u32  # and from a row to its copy
    copies: u32
    form: u32  # of a product: plain, `.ws`, or of two blocks
    known: Knowledge  # of a commit: what its arrival hands over


@struct
class Tensor:
    """Tensor memory, its allocation, and what uses it."""

    cells: Pointer[u32]  # 512 for each of 128 lanes
    sizes: Array[u32, 16]  # the columns of the allocation that begins at each unit; 0: none does
    allocated_at: Array[u32, 16]  # the instructions that did it
    owners: Array[u32, 16]  # and their warps
    freed_at: Array[u32, 16]  # 1 + the instruction that last gave each unit back; 0: it has not been since it was taken
    used: u32  # units that are allocated, a bit for each
    least: u32  # columns of the last allocation; 0: there was none
    is_relinquished: u32
    begun: u32  # pieces of work
    pages: Pages  # who accessed it
    operations: Growable[Operation]
    stamps: Array[u32, 1024]  # of the threads that started recent operations, when they did, by their numbers
    accumulators: Array[u64, 1024]  # where recent pieces of work accumulate, and in which shape, by their numbers
