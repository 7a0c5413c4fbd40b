"""What warps load and store in tensor memory, and whether it is allocated (PTX ISA 9.7.16.8)."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.faults import BAD_TENSOR_ADDRESS, TensorAddressReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import RECENT, TensorAccess, TensorMove
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.emulate.runtime.order.tensor_happens_before import MOVE
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.tensor_memory.allocation import UNIT
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS, LANES
from ptxlab.native import Pointer, boolean, cast, native, u32, u64

CELL = (LANES * COLUMNS) - 1


@native
def is_allocated(thread: Pointer[Thread], block: Pointer[Block], access: TensorAccess, instruction: u32) -> boolean:
    """Whether these cells are there and allocated; a fault otherwise."""
    tensor = block.tensor
    if access.lane + access.lanes > LANES or access.column + access.columns > COLUMNS:
        fail_address(thread, TensorAddressReason.OUTSIDE, access, instruction)
        return False
    for unit in range(access.column // UNIT, (access.column + access.columns + UNIT - 1) // UNIT):
        if cast(u64, tensor) == 0 or tensor.used >> unit & 1 == 0:
            reason: u32 = TensorAddressReason.NOT_ALLOCATED
            if cast(u64, tensor) != 0 and tensor.freed_at[unit] != 0:
                reason = TensorAddressReason.FREED
                if thread.worker.fault.kind == 0:
                    thread.worker.fault.other_instruction = tensor.freed_at[unit]
            fail_address(thread, reason, access, instruction)
            return False
    return True


@native
def fail_address(thread: Pointer[Thread], reason: u32, access: TensorAccess, instruction: u32) -> None:
    """Note a bad address."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.cells.lane = access.lane
        fault.cells.column = access.column
        fault.cells.lanes = access.lanes
        fault.cells.columns = access.columns
        fault.access = access.kind
    fail_because(thread, BAD_TENSOR_ADDRESS, reason, instruction, 0)


@native
def route_lanes(thread: Pointer[Thread], address: u32) -> u32:
    """The address that a warp accesses by one that names no lane, or one of the first 32: the same of its own lanes.

    The manual wants the lanes of the warp in the address. Kernels in production leave them out (DeepGEMM, FlashMLA) and
    are right: the hardware adds them, unless the debugger has it check (DeepGEMM's pull request 341). In the second
    block of a pair lanes from 128 on are its own, too: rows of D count through both (gau-nernst's kernels do so).
    """
    if thread.block.rank & 1 != 0 and LANES <= address >> 16 < 2 * LANES:
        address -= LANES << 16
    if address >> 16 >= BAND:
        return address
    return address + (thread.number // 32 % 4 * BAND << 16)


@native
def access_cells(thread: Pointer[Thread], move: Pointer[TensorMove], instruction: u32) -> None:
    """Inspect what a warp is about to load or store, as its first lane; with a `split`, the same again further right.

    The address has to be the same in all lanes, and the lanes of tensor memory those of the warp (PTX ISA 9.7.16.8.1).
    """
    if thread.lane != 0:
        return
    access = TensorAccess(
        lane=move.address >> 16,
        column=move.address & 0xFFFF,
        lanes=move.lanes,
        columns=move.columns,
        kind=move.kind,
        operation=MOVE,
        channel=move.channel + thread.number // 32,
        number=0,
    )
    if move.is_uniform == 0:
        fail_address(thread, TensorAddressReason.NOT_UNIFORM, access, instruction)
        return
    band: u32 = thread.number // 32 % 4 * BAND
    if access.lane < band or access.lane + access.lanes > band + BAND:
        fail_address(thread, TensorAddressReason.OTHER_LANES, access, instruction)
        return
    if not is_allocated(thread, thread.block, access, instruction):
        return
    access.number = next_number(thread)
    if move.kind == LOAD:
        thread.block.tensor.is_read = 1
    note_tensor(thread, thread.block, access, instruction)
    access.column += move.split
    if move.split != 0 and is_allocated(thread, thread.block, access, instruction):
        note_tensor(thread, thread.block, access, instruction)


@native
def next_number(thread: Pointer[Thread]) -> u32:
    """The number of one more operation, which this thread starts."""
    tensor = thread.block.tensor
    tensor.started += 1
    tensor.accumulators[tensor.started % RECENT] = 0
    tensor.epochs[tensor.started % RECENT] = thread.order.epoch
    return tensor.started


@native
def read_cell(thread: Pointer[Thread], cell: u32) -> u32:
    """A cell by its number; whether the kernel may read it has been checked."""
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


CALLED = (
    route_lanes,
    access_cells,
    read_cell,
    write_cell,
)
