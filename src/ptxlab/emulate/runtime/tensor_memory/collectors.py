"""What the collector buffers of a block hold, and whether an MMA may use it (see `isa.collector`)."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_COLLECTOR, CollectorReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import Collector
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.isa.collector import DISCARD, FILL, LAST_USE
from ptxlab.isa.instruction_descriptor import columns_of, rows_of
from ptxlab.isa.tensor_tile import TensorMma
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def use_collector(thread: Pointer[Thread], mma: Pointer[TensorMma], instruction: u32) -> boolean:
    """Fill, use or empty the buffer that an MMA names; a fault if it uses one that does not hold its matrix."""
    buffer: u32 = mma.collector // 4
    use: u32 = mma.collector % 4
    collector = address_of(thread.block.tensor.collectors[buffer])
    matrix: u64 = mma.a if buffer == 0 else mma.b
    shape: u32 = shape_in(mma, buffer)
    if use == FILL:
        collector.matrix = matrix
        collector.shape = shape
        collector.filled_at = instruction + 1
        return True
    if use != DISCARD:
        if collector.filled_at == 0:
            fail_collector(thread, collector, CollectorReason.EMPTY, instruction, u64(buffer))
            return False
        if collector.matrix != matrix or collector.shape != shape:
            fail_collector(thread, collector, CollectorReason.OTHER_MATRIX, instruction, u64(buffer))
            return False
        if use != LAST_USE:
            return True
    if collector.filled_at != 0:
        collector.filled_at = 0
        collector.emptied_at = instruction + 1
    return True


@native(inline=True)
def shape_in(mma: Pointer[TensorMma], buffer: u32) -> u32:
    """The kind, the size and the place of the matrix that a buffer is for, and how its descriptor is read."""
    bits: u32 = mma.instruction_descriptor
    size: u32 = rows_of(bits, mma.kind) if buffer == 0 else columns_of(bits)
    read: u32 = bits >> 7 & 7 | (bits >> 15 & 1) << 3 | (bits >> 13 & 1) << 4
    if buffer != 0:
        read = bits >> 10 & 7 | (bits >> 16 & 1) << 3 | (bits >> 14 & 1) << 4
    place: u32 = mma.a_in_tensor_memory if buffer == 0 else u32(0)
    return mma.kind | mma.is_sparse << 3 | place << 4 | read << 5 | size << 16


@native
def fail_collector(
    thread: Pointer[Thread], collector: Pointer[Collector], reason: u32, instruction: u32, buffer: u64
) -> None:
    """Note that a buffer does not hold what an MMA uses, and what filled or emptied it."""
    if thread.worker.fault.kind == 0:
        at: u32 = collector.emptied_at if reason == CollectorReason.EMPTY else collector.filled_at
        thread.worker.fault.other_instruction = at
    fail_because(thread, BAD_COLLECTOR, reason, instruction, buffer)
