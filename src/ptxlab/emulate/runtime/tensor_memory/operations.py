"""What a thread has started on tensor memory and is not done yet: MMAs, copies, and commits of those before them."""

from __future__ import annotations

from ptxlab.emulate.abi.state import NO_MEMORY, Thread
from ptxlab.emulate.abi.tensor_memory import Operation, Tensor
from ptxlab.emulate.runtime.memory.memory import fail, free, realloc
from ptxlab.emulate.runtime.order.vector_clocks import forget
from ptxlab.native import Pointer, address_of, cast, copy_bytes, fill_bytes, native, size_of, u8, u32, u64

OPERATION_SIZE = size_of(Operation)
ROOM = 16

# What an operation is.
MULTIPLY = 1
COMMIT = 2
COPY = 3


@native
def next_operation(thread: Pointer[Thread], what: u32, instruction: u32) -> Pointer[Operation]:
    """One more operation, all zeros but for who starts it; null if there is no memory for it."""
    tensor = thread.block.tensor
    if tensor.operation_count == tensor.operation_room:
        room: u32 = tensor.operation_room * 2 + ROOM
        memory = realloc(cast(Pointer[u8], tensor.operations), u64(room) * OPERATION_SIZE)
        if cast(u64, memory) == 0:
            fail(thread, NO_MEMORY, instruction, 0)
            return cast(Pointer[Operation], 0)
        tensor.operations = cast(Pointer[Operation], memory)
        tensor.operation_room = room
    operation = tensor.operations + tensor.operation_count
    tensor.operation_count += 1
    fill_bytes(cast(Pointer[u8], operation), 0, OPERATION_SIZE)
    operation.what = what
    operation.thread = thread.number
    operation.instruction = instruction
    return operation


@native
def note_start(thread: Pointer[Thread]) -> None:
    """An operation of a thread comes after all that the thread did before it; see `tensor_commits`."""
    if thread.worker.checks != 0:
        thread.tensor_stamp = thread.stamp
        thread.stamp += 1


@native
def drop_operation(tensor: Pointer[Tensor]) -> None:
    """Take the oldest operation, which is done, off the list."""
    forget(address_of(tensor.operations.known))
    tensor.operation_count -= 1
    for index in range(tensor.operation_count):
        copy_bytes(
            cast(Pointer[u8], tensor.operations + index),
            cast(Pointer[u8], tensor.operations + (index + 1)),
            OPERATION_SIZE,
        )


@native
def free_operations(tensor: Pointer[Tensor]) -> None:
    """Give back the list, and what is not done."""
    for index in range(tensor.operation_count):
        forget(address_of(tensor.operations[index].known))
    free(cast(Pointer[u8], tensor.operations))
