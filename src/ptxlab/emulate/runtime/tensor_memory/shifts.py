"""`tcgen05.shift`: rows of tensor memory move down by one (PTX ISA 9.7.16.9.3).

The manual's shape is 31x256b: of the 32 lanes of a warp, each but the last gets the eight columns of the lane after it.
The last one keeps its own, which `tcgen05.cp.4x256b` then replaces (CUTLASS: it refreshes the last lane of each warp's
lanes). That is how the manual, CUTLASS and a convolution that goes along a row fit together; it was not measured.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import ATOMIC
from ptxlab.emulate.abi.faults import DescriptorReason, TensorAddressReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess
from ptxlab.emulate.runtime.order.tensor_happens_before import COPY_IN
from ptxlab.emulate.runtime.order.tensor_order import note_tensor
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_WORK
from ptxlab.emulate.runtime.tensor_memory.accesses import fail_address, is_allocated, next_number
from ptxlab.emulate.runtime.tensor_memory.operands import fail_description
from ptxlab.emulate.runtime.tensor_memory.operations import SHIFT, next_operation, note_start
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS
from ptxlab.native import Pointer, cast, native, u32, u64

WIDTH = 8  # columns that are shifted: 32 bytes


@native
def start_shift(thread: Pointer[Thread], address: u32, is_pair: u32, instruction: u32) -> None:
    """Start a shift in the tensor memory of a block, or of both blocks of a pair."""
    moved = TensorAccess(
        lane=address >> 16,
        column=address & 0xFFFF,
        lanes=BAND,
        columns=WIDTH,
        kind=ATOMIC,
        operation=COPY_IN,
        channel=TENSOR_WORK + thread.number,
        number=0,
    )
    if moved.lane % BAND != 0:
        fail_address(thread, TensorAddressReason.NOT_A_BAND, moved, instruction)
        return
    first: u32 = thread.block.rank & 0xFFFFFFFE if is_pair != 0 else thread.block.rank
    last: u32 = first + 1 if is_pair != 0 else first
    if last >= thread.block.cluster.count:
        fail_description(thread, DescriptorReason.NO_PEER, 0, 0, instruction)
        return
    for rank in range(first, last + 1):
        if not is_allocated(thread, thread.block.cluster.blocks[rank], moved, instruction):
            return
    moved.number = next_number(thread)
    for rank in range(first, last + 1):
        note_tensor(thread, thread.block.cluster.blocks[rank], moved, instruction)
    operation = next_operation(thread, SHIFT, instruction)
    if cast(u64, operation) == 0:
        return
    operation.copy.address = address
    operation.copy.copies = last - first + 1
    note_start(thread)


@native
def shift_rows(block: Pointer[Block], address: u32, blocks: u32) -> None:
    """Move the rows down."""
    first: u32 = block.rank & 0xFFFFFFFE if blocks == 2 else block.rank
    for rank in range(first, first + blocks):
        cells = block.cluster.blocks[rank].tensor.cells + ((address >> 16) * COLUMNS + (address & 0xFFFF))
        for lane in range(BAND - 1):
            for column in range(WIDTH):
                cells[lane * COLUMNS + column] = cells[(lane + 1) * COLUMNS + column]


CALLED = (start_shift,)
