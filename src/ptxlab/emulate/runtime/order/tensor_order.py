"""What happens before what in tensor memory (PTX ISA 9.7.16.6).

Everything there is asynchronous: loads and stores of a warp until it waits for them, products and copies until an
mbarrier completes a commit after them. Some pairs are done in the order in which they were started, if that is an
order: in one thread, or from thread to thread by a fence before and a fence after some synchronization. What a thread
knows to be done, its own work on tensor memory may still run ahead of, until `tcgen05.fence::after_thread_sync`.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import TENSOR_SPACE
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess
from ptxlab.emulate.runtime.order.mbarrier_order import MBARRIER
from ptxlab.emulate.runtime.order.races import note
from ptxlab.emulate.runtime.order.release_acquire import FENCE_ACQUIRE, FENCE_RELEASE, pass_fence, sync_variable_at
from ptxlab.emulate.runtime.order.shadow import ASYNC, COPY, SIZE_SHIFT, WIDE, free_pages
from ptxlab.emulate.runtime.order.vector_clocks import (
    TENSOR_ISSUED,
    TENSOR_LOADS,
    TENSOR_STORES,
    advance,
    join_tensor_entries,
    key_of,
)
from ptxlab.isa.units.tensor_memory import COLUMNS
from ptxlab.native import Pointer, address_of, cast, native, u32, u64

CTA_SCOPE = 1


@native
def note_tensor(thread: Pointer[Thread], block: Pointer[Block], access: TensorAccess, instruction: u32) -> None:
    """Inspect an access to the tensor memory of a block."""
    if thread.worker.checks == 0:
        return
    thread.starting.channel = access.channel
    thread.starting.number = access.number
    flags: u32 = access.kind | access.operation << SIZE_SHIFT | WIDE
    if access.channel != 0:
        flags = flags | COPY | ASYNC
    pages = address_of(block.tensor.pages)
    variables = address_of(block.order.variables)
    for row in range(access.lane, access.lane + access.lanes):
        address: u64 = (u64(row) * COLUMNS + u64(access.column)) * 4
        note(thread, pages, variables, address, access.columns * 4, flags, instruction, TENSOR_SPACE)


@native
def end_tensor_order(block: Pointer[Block]) -> None:
    """Forget the accesses to tensor memory."""
    if block.worker.checks != 0:
        free_pages(block.worker.history, address_of(block.tensor.pages))


@native
def wait_for_cells(thread: Pointer[Thread], stores: u32) -> None:
    """A thread has waited for the loads, or the stores, of its warp: they are done, for its own work, too."""
    tensor = thread.block.tensor
    if thread.worker.checks == 0 or cast(u64, tensor) == 0:
        return
    channel: u32 = TENSOR_STORES if stores != 0 else TENSOR_LOADS
    key: u64 = key_of(thread.block.number, channel + thread.number // 32)
    advance(address_of(thread.order.known), key, u64(tensor.started))
    advance(address_of(thread.order.tensor_known), key, u64(tensor.started))


@native
def fence_before(thread: Pointer[Thread]) -> None:
    """What a thread has started on tensor memory comes before what is synchronized with it from now on."""
    if thread.worker.checks == 0:
        return
    if cast(u64, thread.block.tensor) != 0:
        key: u64 = key_of(thread.block.number, TENSOR_ISSUED + thread.number)
        advance(address_of(thread.order.known), key, u64(thread.block.tensor.started))
    pass_fence(thread, FENCE_RELEASE, CTA_SCOPE)


@native
def fence_after(thread: Pointer[Thread]) -> None:
    """What a thread starts on tensor memory from now on comes after all that it knows of."""
    if thread.worker.checks == 0:
        return
    pass_fence(thread, FENCE_ACQUIRE, CTA_SCOPE)
    thread.order.unfenced = 0
    join_tensor_entries(address_of(thread.order.tensor_known), address_of(thread.order.known))
    join_tensor_entries(address_of(thread.order.tensor_known), address_of(thread.block.order.known))


@native
def release_tensor_work(thread: Pointer[Thread], block: Pointer[Block], offset: u64) -> None:
    """A relaxed arrival at an mbarrier: of what a thread knows, that on tensor memory is handed over."""
    if thread.worker.checks == 0 or cast(u64, thread.block.tensor) == 0:
        return
    variable = sync_variable_at(address_of(block.order.variables), offset + MBARRIER)
    if cast(u64, variable) != 0:
        join_tensor_entries(address_of(variable.known), address_of(thread.order.known))
        join_tensor_entries(address_of(variable.known), address_of(thread.block.order.known))


CALLED = (
    wait_for_cells,
    fence_before,
    fence_after,
    release_tensor_work,
)
