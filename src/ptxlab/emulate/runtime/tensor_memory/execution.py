"""Asynchronous operations on tensor memory, done as late as the rules allow (PTX ISA 9.7.16.6).

They are done in the order in which they were started, up to the next `tcgen05.commit`, when no thread of the block can
continue without them, or when the block ends. What they read and write is inspected when they start.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block
from ptxlab.emulate.abi.tensor_memory import TensorOperation
from ptxlab.emulate.runtime.tensor_memory.commits import complete_barriers
from ptxlab.emulate.runtime.tensor_memory.copies import copy_in
from ptxlab.emulate.runtime.tensor_memory.metadata import judge_metadata
from ptxlab.emulate.runtime.tensor_memory.operations import COMMIT, COPY, MULTIPLY, SHIFT, drop_operation
from ptxlab.emulate.runtime.tensor_memory.scale_factors import check_copies
from ptxlab.emulate.runtime.tensor_memory.shifts import shift_rows
from ptxlab.isa.units.instruction_descriptor import PAIR
from ptxlab.isa.units.tensor_mma import multiply_in_tensor_memory
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64


@native
def multiply(block: Pointer[Block], operation: Pointer[TensorOperation]) -> None:
    """Do an MMA: in its block, or the parts of both blocks of a pair, which have half of B each."""
    mma = address_of(operation.mma)
    thread = block.threads + operation.thread
    disabled = cast(Pointer[u32], operation.mma.disabled_lanes)
    if mma.form != PAIR:
        shared = block.memory.shared
        check_copies(thread, block, mma, operation.instruction)
        found: u32 = multiply_in_tensor_memory(mma, block.tensor.cells, shared, shared, shared, disabled)
        judge_metadata(thread, mma, found, operation.instruction)
        return
    rank: u32 = block.rank & 0xFFFFFFFE
    first = block.cluster.blocks[rank]
    second = block.cluster.blocks[rank + 1]
    check_copies(thread, first, mma, operation.instruction)
    check_copies(thread, second, mma, operation.instruction)
    own: u32 = multiply_in_tensor_memory(
        mma, first.tensor.cells, first.memory.shared, first.memory.shared, second.memory.shared, disabled
    )
    other: u32 = multiply_in_tensor_memory(
        mma, second.tensor.cells, second.memory.shared, first.memory.shared, second.memory.shared, disabled + 4
    )
    judge_metadata(thread, mma, own if own != 0 else other, operation.instruction)


@native
def finish_operation(block: Pointer[Block]) -> u32:
    """Do the oldest operation; what it was."""
    operation = block.tensor.operations.items
    what: u32 = operation.what
    if what == MULTIPLY:
        multiply(block, operation)
    elif what == COPY:
        copy_in(block, address_of(operation.copy))
    elif what == SHIFT:
        shift_rows(block, operation.copy.address, operation.copy.copies)
    else:
        complete_barriers(block.threads + operation.thread, operation)
    drop_operation(block.tensor)
    block.schedule.moves += 1
    block.worker.progress.deliveries += 1
    return what


@native
def finish_operations(block: Pointer[Block], is_all: u32) -> boolean:
    """Do operations up to a commit, or all."""
    if cast(u64, block.tensor) == 0 or block.tensor.operations.count == 0:
        return False
    while block.tensor.operations.count != 0:
        if finish_operation(block) == COMMIT and is_all == 0:
            return True
    return True
