"""Tensor memory: its allocation in columns, and the cells that warps load and store (PTX ISA 9.7.16.7 and 9.7.16.8).

Each block has all of it: that blocks share a multiprocessor, and its tensor memory, is not told apart here.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import BAD_ALLOCATION, BAD_TENSOR_ADDRESS, NO_MEMORY, STORE, TENSOR_LEAK, Block, Thread
from ptxlab.emulate.abi.tensor_memory import RECENT, UNITS, Tensor
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.order.tensor_happens_before import OTHER
from ptxlab.emulate.runtime.order.tensor_order import end_tensor_order, note_tensor
from ptxlab.emulate.runtime.tensor_memory.operations import free_operations
from ptxlab.isa.tensor_memory import BAND, COLUMNS, LANES
from ptxlab.native import Pointer, boolean, calloc, cast, free, native, size_of, u8, u32, u64

TENSOR_SIZE = size_of(Tensor)
UNIT = 32
CELL = (LANES * COLUMNS) - 1

# What is wrong with an allocation; told in `faults`.
BAD_COUNT = 1
TOO_MANY = 2
GROWING = 3
RELINQUISHED = 4
NOT_ALLOCATED = 5
OTHER_SIZE = 6

# What is wrong with an address.
NO_COLUMNS = 1
OTHER_LANES = 2
NOT_UNIFORM = 3
OUTSIDE = 4
FREED = 5


@native
def allocate_columns(thread: Pointer[Thread], columns: u32, instruction: u32) -> u32:
    """Allocate columns for the whole warp, as its first lane; the address."""
    if thread.lane != 0:
        return 0
    tensor = tensor_of(thread, instruction)
    if cast(u64, tensor) == 0:
        return 0
    if columns < UNIT or columns > COLUMNS or columns & (columns - 1) != 0:
        fail_allocation(thread, BAD_COUNT, columns, 0, instruction)
        return 0
    if tensor.is_relinquished != 0:
        fail_allocation(thread, RELINQUISHED, columns, 0, instruction)
        return 0
    if tensor.least != 0 and columns > tensor.least:
        fail_allocation(thread, GROWING, columns, tensor.least, instruction)
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
            thread.block.moves += 1
            return first * UNIT
    fail_allocation(thread, TOO_MANY, columns, allocated_columns(tensor), instruction)
    return 0


@native
def tensor_of(thread: Pointer[Thread], instruction: u32) -> Pointer[Tensor]:
    """The tensor memory of a block, which begins to be there when it is first asked for."""
    block = thread.block
    if cast(u64, block.tensor) == 0:
        block.tensor = cast(Pointer[Tensor], calloc(1, TENSOR_SIZE))
        if cast(u64, block.tensor) != 0:
            block.tensor.cells = cast(Pointer[u32], calloc(LANES * COLUMNS, 4))
        if cast(u64, block.tensor) == 0 or cast(u64, block.tensor.cells) == 0:
            fail(thread, NO_MEMORY, instruction, 0)
            return cast(Pointer[Tensor], 0)
    return block.tensor


@native
def allocated_columns(tensor: Pointer[Tensor]) -> u32:
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
        fail_allocation(thread, NOT_ALLOCATED, columns, address, instruction)
        return
    if tensor.sizes[unit] != columns:
        thread.worker.fault.size = u64(tensor.sizes[unit])
        fail_allocation(thread, OTHER_SIZE, columns, address, instruction)
        return
    note_tensor(thread, thread.block, 0, address, LANES, columns, STORE, OTHER, 0, 0, instruction)
    tensor.used = tensor.used & ~(((u32(1) << (columns // UNIT)) - 1) << unit)
    tensor.sizes[unit] = 0
    for freed in range(unit, unit + columns // UNIT):
        tensor.freed_at[freed] = instruction + 1
    thread.block.moves += 1


@native
def relinquish_columns(thread: Pointer[Thread]) -> None:
    """Allocate no more."""
    if cast(u64, thread.block.tensor) != 0:
        thread.block.tensor.is_relinquished = 1


@native
def fail_allocation(thread: Pointer[Thread], reason: u32, columns: u32, other: u32, instruction: u32) -> None:
    thread.worker.fault.address = u64(other)
    fail(thread, BAD_ALLOCATION, instruction, u64(reason) | u64(columns) << 32)


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
    block.tensor = cast(Pointer[Tensor], 0)


# Accesses.


@native
def is_allocated(
    thread: Pointer[Thread],
    block: Pointer[Block],
    lane: u32,
    column: u32,
    lanes: u32,
    columns: u32,
    kind: u32,
    instruction: u32,
) -> boolean:
    """Whether these cells are there and allocated; a fault otherwise."""
    tensor = block.tensor
    if lane + lanes > LANES or column + columns > COLUMNS:
        fail_address(thread, OUTSIDE, lane, column, lanes, columns, kind, instruction)
        return False
    for unit in range(column // UNIT, (column + columns + UNIT - 1) // UNIT):
        if cast(u64, tensor) == 0 or tensor.used >> unit & 1 == 0:
            reason: u64 = NO_COLUMNS
            if cast(u64, tensor) != 0 and tensor.freed_at[unit] != 0:
                reason = u64(FREED) | (u64(tensor.freed_at[unit]) - 1) << 32
            fail_address(thread, reason, lane, column, lanes, columns, kind, instruction)
            return False
    return True


@native
def fail_address(
    thread: Pointer[Thread], reason: u64, lane: u32, column: u32, lanes: u32, columns: u32, kind: u32, instruction: u32
) -> None:
    """Note a bad address: the reason and, for `FREED`, the instruction that freed it in the upper half."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.address = u64(lane) << 16 | u64(column)
        fault.size = u64(lanes) | u64(columns) << 32
        fault.access = kind
    fail(thread, BAD_TENSOR_ADDRESS, instruction, reason)


@native
def route_lanes(thread: Pointer[Thread], address: u32) -> u32:
    """The address that a warp accesses by one that names no lane, or one of the first 32: the same of its own lanes.

    The manual wants the lanes of the warp in the address. Kernels in production leave them out (DeepGEMM, FlashMLA) and
    are right: the hardware adds them, unless the debugger has it check (DeepGEMM's pull request 341).
    """
    if address >> 16 >= BAND:
        return address
    return address + (thread.number // 32 % 4 * BAND << 16)


@native
def access_cells(
    thread: Pointer[Thread],
    address: u32,
    is_uniform: u32,
    lanes: u32,
    columns: u32,
    split: u32,
    kind: u32,
    operation: u32,
    channel: u32,
    instruction: u32,
) -> None:
    """Look at what a warp is about to load or store, as its first lane; with a `split`, the same again further right.

    The address has to be the same in all lanes, and the lanes of tensor memory those of the warp (PTX ISA 9.7.16.8.1).
    """
    if thread.lane != 0:
        return
    lane: u32 = address >> 16
    column: u32 = address & 0xFFFF
    if is_uniform == 0:
        fail_address(thread, NOT_UNIFORM, lane, column, lanes, columns, kind, instruction)
        return
    band: u32 = thread.number // 32 % 4 * BAND
    if lane < band or lane + lanes > band + BAND:
        fail_address(thread, OTHER_LANES, lane, column, lanes, columns, kind, instruction)
        return
    if not is_allocated(thread, thread.block, lane, column, lanes, columns, kind, instruction):
        return
    number: u32 = next_number(thread)
    channel += thread.number // 32
    note_tensor(thread, thread.block, lane, column, lanes, columns, kind, operation, channel, number, instruction)
    column += split
    if split != 0 and is_allocated(thread, thread.block, lane, column, lanes, columns, kind, instruction):
        note_tensor(thread, thread.block, lane, column, lanes, columns, kind, operation, channel, number, instruction)


@native
def next_number(thread: Pointer[Thread]) -> u32:
    """The number of one more operation, which this thread starts."""
    tensor = thread.block.tensor
    tensor.begun += 1
    tensor.accumulators[tensor.begun % RECENT] = 0
    tensor.stamps[tensor.begun % RECENT] = thread.stamp
    return tensor.begun


@native
def read_cell(thread: Pointer[Thread], cell: u32) -> u32:
    """A cell by its number; whether the kernel may read it has been looked at."""
    tensor = thread.block.tensor
    if cast(u64, tensor) == 0:
        return 0
    return tensor.cells[cell & CELL]


@native
def write_cell(thread: Pointer[Thread], cell: u32, value: u32, mask: u32) -> None:
    """Write those bits of a cell that a mask has."""
    tensor = thread.block.tensor
    if cast(u64, tensor) != 0:
        tensor.cells[cell & CELL] = tensor.cells[cell & CELL] & ~mask | value & mask
