"""The end of a block: what is asynchronous completes, and what must be over by then is checked."""

from __future__ import annotations

from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.asynchronous.bulk_copies import finish_transfers
from ptxlab.emulate.runtime.asynchronous.network import finish_network
from ptxlab.emulate.runtime.order.early_waits import check_early_reads
from ptxlab.emulate.runtime.order.k_slices import check_all_slices
from ptxlab.emulate.runtime.schedule.registers import check_registers
from ptxlab.emulate.runtime.tensor_memory.allocation import check_allocations
from ptxlab.emulate.runtime.tensor_memory.execution import finish_operations
from ptxlab.native import Pointer, native


@native
def end_block(thread: Pointer[Thread]) -> None:
    """The last thread of a block has ended."""
    finish_transfers(thread.block)
    finish_network(thread.block)
    finish_operations(thread.block, 1)
    check_allocations(thread)
    check_registers(thread)
    check_early_reads(thread)
    check_all_slices(thread)
