"""Tensor memory: its allocation in columns (PTX ISA 9.7.16.7).

Each block has all of it: that blocks share an SM, and its tensor memory, is not modelled.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import STORE
from ptxlab.emulate.abi.faults import BAD_ALLOCATION, NO_MEMORY, TENSOR_LEAK, AllocationReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import UNITS, TensorAccess, TensorMemoryState
from ptxlab.emulate.runtime.memory.memory import fail, fail_because
from ptxlab.emulate.runtime.order.tensor_happens_before import OTHER
from ptxlab.emulate.runtime.order.tensor_order import end_tensor_order, note_tensor
from ptxlab.emulate.runtime.order.unread_accumulators import check_unread
from ptxlab.emulate.runtime.tensor_memory.operations import free_operations
from ptxlab.isa.undefined import leave_undefined
from ptxlab.isa.units.tensor_memory import COLUMNS, LANES
from ptxlab.native import Pointer, calloc, cast, free, native, size_of, u8, u32, u64

TENSOR_SIZE = size_of(TensorMemoryState)
UNIT = 32


@native
def allocate_columns(thread: Pointer[Thread], columns: u32, instruction: u32) -> u32:
    """Allocate columns for the whole warp, as its first lane; the address."""
    if thread.lane != 0:
        return 0
    tensor = tensor_of(thread, instruction)
    if cast(u64, tensor) == 0:
        return 0
    if columns < UNIT or columns > COLUMNS or columns & (columns - 1) != 0:
        fail_allocation(thread, AllocationReason.BAD_COUNT, columns, 0, instruction)
        return 0
    if tensor.is_relinquished != 0:
        fail_allocation(thread, AllocationReason.RELINQUISHED, columns, 0, instruction)
        return 0
    if tensor.least != 0 and columns > tensor.least:
        fail_allocation(thread, AllocationReason.GROWING, columns, tensor.least, instruction)
        return 0
    units: u32 = columns // UNIT
    wanted: u32 = (u32(1) << units) - 1
    for first in range(UNITS - units + 1):
        if tensor.used & (wanted << first) == 0:
            tensor.used = tensor.used | wanted << first
            tensor.sizes[first] = columns
            tensor.allocated_at[first] = instruction
            for unit in range(first, first + units):
                tensor.freed_at[unit] = 0
            tensor.owners[first] = thread.number // 32
            tensor.least = columns
            worker = thread.worker
            worker.tensor_columns = max(worker.tensor_columns, allocated_columns(tensor))
            thread.block.schedule.moves += 1
            return first * UNIT
    fail_allocation(thread, AllocationReason.TOO_MANY, columns, allocated_columns(tensor), instruction)
    return 0


@native
def tensor_of(thread: Pointer[Thread], instruction: u32) -> Pointer[TensorMemoryState]:
    """The tensor memory of a block, which is allocated when it is first asked for."""
    block = thread.block
    if cast(u64, block.tensor) == 0:
        block.tensor = cast(Pointer[TensorMemoryState], calloc(1, TENSOR_SIZE))
        if cast(u64, block.tensor) != 0:
            block.tensor.cells = cast(Pointer[u32], calloc(LANES * COLUMNS, 4))
        if cast(u64, block.tensor) == 0 or cast(u64, block.tensor.cells) == 0:
            fail(thread, NO_MEMORY, instruction, 0)
            return cast(Pointer[TensorMemoryState], 0)
        leave_undefined(cast(Pointer[u8], block.tensor.cells), LANES * COLUMNS * 4)
    return block.tensor


@native
def allocated_columns(tensor: Pointer[TensorMemoryState]) -> u32:
    total: u32 = 0
    for unit in range(UNITS):
        total += tensor.sizes[unit]
    return total


@native
def free_columns(thread: Pointer[Thread], address: u32, columns: u32, instruction: u32) -> None:
    """Give columns back, as the first lane of a warp."""
    if thread.lane != 0:
        return
    tensor = thread.block.tensor
    unit: u32 = address // UNIT
    if cast(u64, tensor) == 0 or address % UNIT != 0 or unit >= UNITS or tensor.sizes[unit % UNITS] == 0:
        fail_deallocation(thread, AllocationReason.NOT_ALLOCATED, columns, address, 0, instruction)
        return
    if tensor.sizes[unit] != columns:
        fail_deallocation(thread, AllocationReason.OTHER_SIZE, columns, address, tensor.sizes[unit], instruction)
        return
    whole = TensorAccess(
        lane=0, column=address, lanes=LANES, columns=columns, kind=STORE, operation=OTHER, channel=0, number=0
    )
    check_unread(thread, thread.block, whole, instruction)
    note_tensor(thread, thread.block, whole, instruction)
    tensor.used = tensor.used & ~(((u32(1) << (columns // UNIT)) - 1) << unit)
    tensor.sizes[unit] = 0
    for freed in range(unit, unit + columns // UNIT):
        tensor.freed_at[freed] = instruction + 1
    thread.block.schedule.moves += 1


@native
def relinquish_columns(thread: Pointer[Thread]) -> None:
    """Allocate no more."""
    if cast(u64, thread.block.tensor) != 0:
        thread.block.tensor.is_relinquished = 1


@native
def fail_allocation(thread: Pointer[Thread], reason: u32, columns: u32, limit: u32, instruction: u32) -> None:
    """Note an allocation that cannot be."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.limit = u64(limit)
    fail_because(thread, BAD_ALLOCATION, reason, instruction, u64(columns))


@native
def fail_deallocation(
    thread: Pointer[Thread], reason: u32, columns: u32, address: u32, allocated: u32, instruction: u32
) -> None:
    """Note a deallocation that cannot be."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.address = u64(address)
    fail_allocation(thread, reason, columns, allocated, instruction)


@native
def check_allocations(thread: Pointer[Thread]) -> None:
    """The last thread of a block ends: all must have been given back (PTX ISA 9.7.16.1.2)."""
    tensor = thread.block.tensor
    if cast(u64, tensor) == 0:
        return
    for unit in range(UNITS):
        if tensor.sizes[unit] != 0:
            fail(thread, TENSOR_LEAK, tensor.allocated_at[unit], u64(allocated_columns(tensor)))
            return


@native
def end_tensor(block: Pointer[Block]) -> None:
    """Give the tensor memory of a block back."""
    tensor = block.tensor
    if cast(u64, tensor) == 0:
        return
    end_tensor_order(block)
    free(cast(Pointer[u8], tensor.cells))
    free_operations(tensor)
    free(cast(Pointer[u8], tensor))
    block.tensor = cast(Pointer[TensorMemoryState], 0)


CALLED = (
    allocate_columns,
    free_columns,
    relinquish_columns,
)
