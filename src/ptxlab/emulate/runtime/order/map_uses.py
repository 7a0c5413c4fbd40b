"""Copies that read a tensor map: whether a thread knows that they have.

A copy has read its map when its group is waited for, or when its mbarrier completes; a thread that has heard of either
may change the map, though it was another one that started the copy.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Access, MapUse, VectorClock
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.vector_clocks import BULK_READS, epoch_of, key_of
from ptxlab.isa.units.tensor_map import BYTES
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def is_read_of_map(thread: Pointer[Thread], other: Pointer[Access], address: u64) -> boolean:
    """Whether an access to global memory was that of copies to their map, and a thread knows that all are over."""
    is_read: boolean = False
    if other.block != u32(thread.block.number):
        return False
    uses = thread.block.order.uses
    for index in range(uses.count):
        use = uses.items + index
        if use.instruction == other.instruction and use.address <= address and address < use.address + BYTES:
            is_read = True
            if not is_over(thread, use, 0):
                return False
    return is_read


@native
def is_over(thread: Pointer[Thread], use: Pointer[MapUse], is_warp: u32) -> boolean:
    """Whether a thread, or any lane of its warp, knows that a copy has read its map."""
    block = thread.block
    if has_heard(address_of(block.order.known), block.number, use):
        return True
    first: u32 = thread.number // 32 * 32 if is_warp != 0 else thread.number
    last: u32 = min(first + 32, block.count) if is_warp != 0 else thread.number + 1
    for number in range(first, last):
        if has_heard(address_of(block.threads[number].order.known), block.number, use):
            return True
    return False


@native
def has_heard(known: Pointer[VectorClock], block: u64, use: Pointer[MapUse]) -> boolean:
    """Whether a clock has that a copy of a block has read its map."""
    if epoch_of(known, key_of(block, BULK_READS + use.thread)) >= u64(use.group):
        return True
    return use.channel != 0 and epoch_of(known, key_of(block, use.channel)) >= u64(use.number)
