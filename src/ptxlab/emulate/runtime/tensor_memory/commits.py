"""`tcgen05.commit`: mbarriers hear when what a thread has started on tensor memory is done (PTX ISA 9.7.16.12).

Its arrival comes after the MMAs and copies that it tracks, so it hands over that they are done, and all that they come
after: what their thread did before it started the last of them, and what that thread knew. What it did itself since
then is not handed over, as with other arrivals that follow asynchronous operations (PTX ISA 8.9.1.1).
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import CLUSTER_SPACE, OFFSET_MASK
from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import TensorOperation
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_signal
from ptxlab.emulate.runtime.asynchronous.mbarrier_notes import notes_on
from ptxlab.emulate.runtime.asynchronous.mbarriers import arrive_at_phase, target_of
from ptxlab.emulate.runtime.memory.memory import in_block, owner_of
from ptxlab.emulate.runtime.order.mbarrier_order import MBARRIER
from ptxlab.emulate.runtime.order.release_acquire import hand_over, sync_variable_at
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_ISSUED, TENSOR_WORK, advance, join, key_of
from ptxlab.emulate.runtime.tensor_memory.accesses import next_number
from ptxlab.emulate.runtime.tensor_memory.allocation import tensor_of
from ptxlab.emulate.runtime.tensor_memory.operations import COMMIT, next_operation
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64


@native
def start_commit(thread: Pointer[Thread], barrier: u64, blocks: u32, instruction: u32) -> None:
    """Have an mbarrier of the cluster hear when this thread's work is done, or (SEVERAL) those of the `blocks`."""
    tensor = tensor_of(thread, instruction)
    if cast(u64, tensor) == 0:
        return
    number: u32 = next_number(thread)
    if blocks == 0 and not has_barrier(thread, barrier, number, instruction):
        return
    for rank in range(16):
        if blocks >> rank & 1 != 0 and not has_barrier(thread, in_block(barrier, rank), number, instruction):
            return
    operation = next_operation(thread, COMMIT, instruction)
    if cast(u64, operation) == 0:
        return
    operation.barrier = barrier
    operation.blocks = blocks
    if thread.worker.checks != 0:
        known = address_of(operation.known)
        hand_over(thread, known, thread.order.tensor_epoch)
        advance(known, key_of(thread.block.number, TENSOR_WORK + thread.number), u64(number))
        advance(known, key_of(thread.block.number, TENSOR_ISSUED + thread.number), u64(number))


@native
def has_barrier(thread: Pointer[Thread], barrier: u64, number: u32, instruction: u32) -> boolean:
    """Whether there is an mbarrier, for commit `number` to signal; a fault otherwise."""
    to = target_of(thread, barrier, barrier, CLUSTER_SPACE, instruction)
    if cast(u64, to) == 0:
        return False
    note_signal(thread, to, barrier & OFFSET_MASK, TENSOR_WORK + thread.number, number, instruction)
    notes = notes_on(to, barrier & OFFSET_MASK)
    notes.committed = number
    notes.committed_at = instruction
    notes.committed_by = thread.number
    notes.committed_from = thread.block.number
    return True


@native
def complete_barriers(thread: Pointer[Thread], operation: Pointer[TensorOperation]) -> None:
    """Arrive at an mbarrier, or at those of several blocks."""
    known = address_of(operation.known)
    if operation.blocks == 0:
        complete_barrier(thread, operation.barrier, known, operation.instruction)
        return
    for rank in range(16):
        if operation.blocks >> rank & 1 != 0:
            complete_barrier(thread, in_block(operation.barrier, rank), known, operation.instruction)


@native
def complete_barrier(thread: Pointer[Thread], barrier: u64, known: Pointer[VectorClock], instruction: u32) -> None:
    """Arrive at an mbarrier, and hand over what is known."""
    to = owner_of(thread, barrier)
    offset: u64 = barrier & OFFSET_MASK
    if thread.worker.checks != 0:
        variable = sync_variable_at(address_of(to.order.variables), offset + MBARRIER)
        if cast(u64, variable) != 0:
            join(address_of(variable.known), known)
    arrive_at_phase(thread, to, offset, 1, 0, instruction)


CALLED = (start_commit,)
