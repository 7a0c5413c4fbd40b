"""What the collector buffers of a block hold, and whether an MMA may use it (see `isa.units.collector`).

A use of a buffer that is empty is a warning: public kernels have `lastuse` on every MMA, and the hardware reads the
matrix from memory then. A use of a buffer that holds another matrix is an error, and so is one of a matrix of which
memory has other elements than when the buffer was filled.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, TENSOR_SPACE
from ptxlab.emulate.abi.findings import COLLECTOR
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import Collector
from ptxlab.emulate.runtime.order.reports import add_first
from ptxlab.emulate.runtime.tensor_memory.operands import MatrixRead, contents_of
from ptxlab.isa.units.collector import DISCARD, FILL, LAST_USE
from ptxlab.isa.units.instruction_descriptor import PAIR, columns_of, depth_of, rows_of, stored_depth_of
from ptxlab.isa.units.tensor_tile import TensorMma
from ptxlab.isa.units.zero_column_mask import shift_of
from ptxlab.native import Pointer, address_of, cast, native, u32, u64

# In the flags of a finding, beside the number of the buffer: it holds another matrix, or one that has since changed.
FULL, CHANGED = 8, 16


@native
def use_collector(thread: Pointer[Thread], mma: Pointer[TensorMma], instruction: u32) -> None:
    """Fill, use or empty the buffer that an MMA names; a finding if it uses one that does not hold its matrix."""
    buffer: u32 = mma.collector // 4
    use: u32 = mma.collector % 4
    collector = address_of(thread.block.tensor.collectors[buffer])
    matrix: u64 = mma.a if buffer == 0 else mma.b
    shape: u32 = shape_in(mma, buffer)
    contents: u64 = 0
    if use != DISCARD and thread.worker.checks != 0:
        contents = contents_in(thread, mma, buffer)
    if use == FILL:
        collector.matrix = matrix
        collector.shape = shape
        collector.contents = contents
        collector.filled_at = instruction + 1
        return
    if use != DISCARD:
        if collector.filled_at == 0:
            report_collector(thread, collector, buffer, instruction)
        elif collector.matrix != matrix or collector.shape != shape:
            report_collector(thread, collector, buffer | FULL, instruction)
        elif collector.contents != contents:
            report_collector(thread, collector, buffer | CHANGED, instruction)
        if use != LAST_USE:
            return
    if collector.filled_at != 0:
        collector.filled_at = 0
        collector.emptied_at = instruction + 1


@native
def contents_in(thread: Pointer[Thread], mma: Pointer[TensorMma], buffer: u32) -> u64:
    """A mark of the elements of the matrix that a buffer is for; 0 if that is in tensor memory."""
    bits: u32 = mma.instruction_descriptor
    kind: u32 = mma.kind
    if buffer != 0:
        columns: u32 = columns_of(bits) + shift_of(mma.zero_columns)
        depth: u32 = depth_of(bits, kind, mma.is_sparse)
        b = MatrixRead(descriptor=mma.b, major=bits >> 16 & 1, rows=columns, depth=depth, kind=kind, is_b=1)
        return contents_of(thread.block, b)
    if mma.a_in_tensor_memory != 0:
        return 0
    rows: u32 = rows_of(bits, kind) // 2 if mma.form == PAIR else rows_of(bits, kind)
    a = MatrixRead(descriptor=mma.a, major=bits >> 15 & 1, rows=rows, depth=stored_depth_of(bits, kind), kind=kind)
    return contents_of(thread.block, a)


@native(inline=True)
def shape_in(mma: Pointer[TensorMma], buffer: u32) -> u32:
    """The kind, the size and the memory of the matrix that a buffer is for, and how its descriptor is read."""
    bits: u32 = mma.instruction_descriptor
    size: u32 = rows_of(bits, mma.kind) if buffer == 0 else columns_of(bits)
    read: u32 = bits >> 7 & 7 | (bits >> 15 & 1) << 3 | (bits >> 13 & 1) << 4
    if buffer != 0:
        read = bits >> 10 & 7 | (bits >> 16 & 1) << 3 | (bits >> 14 & 1) << 4
    from_tensor_memory: u32 = mma.a_in_tensor_memory if buffer == 0 else u32(0)
    return mma.kind | mma.is_sparse << 3 | from_tensor_memory << 4 | read << 5 | size << 16


@native
def report_collector(thread: Pointer[Thread], collector: Pointer[Collector], flags: u32, instruction: u32) -> None:
    """Note that a buffer does not hold what an MMA uses, and what filled or emptied it."""
    if thread.worker.checks == 0:
        return
    at: u32 = collector.filled_at if collector.filled_at != 0 else collector.emptied_at
    found = add_first(thread, COLLECTOR, 0, 0, LOAD, instruction, TENSOR_SPACE)
    if cast(u64, found) != 0:
        found.other.instruction = at - 1 if at != 0 else instruction
        found.collector = flags
