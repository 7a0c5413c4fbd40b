"""What a thread has started on tensor memory and is not done yet: MMAs, copies, and commits of those before them."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import NO_MEMORY
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.tensor_memory import TensorMemoryState, TensorOperation
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.vector_clocks import forget
from ptxlab.native import (
    Pointer,
    address_of,
    append,
    cast,
    copy_bytes,
    free_items,
    native,
    size_of,
    u8,
    u32,
    u64,
)

OPERATION_SIZE = size_of(TensorOperation)

# What an operation is.
MULTIPLY = 1
COMMIT = 2
COPY = 3
SHIFT = 4


@native
def next_operation(thread: Pointer[Thread], what: u32, instruction: u32) -> Pointer[TensorOperation]:
    """One more operation, all zeros but for the thread that starts it; null if there is no memory for it."""
    tensor = thread.block.tensor
    operation: Pointer[TensorOperation] = append(tensor.operations)
    if cast(u64, operation) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        return operation
    operation.what = what
    operation.thread = thread.number
    operation.instruction = instruction
    return operation


@native
def note_start(thread: Pointer[Thread]) -> None:
    """An operation of a thread comes after all that the thread did before it; see `tensor_commits`."""
    if thread.worker.checks != 0:
        thread.order.tensor_epoch = thread.order.epoch
        thread.order.epoch += 1


@native
def drop_operation(tensor: Pointer[TensorMemoryState]) -> None:
    """Take the oldest operation, which is done, off the list."""
    forget(address_of(tensor.operations.items.known))
    tensor.operations.count -= 1
    for index in range(tensor.operations.count):
        copy_bytes(
            cast(Pointer[u8], tensor.operations.items + index),
            cast(Pointer[u8], tensor.operations.items + (index + 1)),
            OPERATION_SIZE,
        )


@native
def free_operations(tensor: Pointer[TensorMemoryState]) -> None:
    """Give back the list, and what is not done."""
    for index in range(tensor.operations.count):
        forget(address_of(tensor.operations.items[index].known))
    free_items(tensor.operations)
