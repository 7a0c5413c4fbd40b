"""What a warp of each block of a pair executes together: allocation with `.cta_group::2` (PTX ISA 9.7.16.5).

The manual lets the first of the two continue, or wait for the other one. Here it waits: a kernel that is right either
way has no deadlock.
"""

from __future__ import annotations

from ptxlab.emulate.abi.faults import AllocationReason
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import RECENT_JOINS
from ptxlab.emulate.abi.thread_parts import AT_PEER, READY
from ptxlab.emulate.runtime.tensor_memory.allocation import fail_allocation, tensor_of
from ptxlab.native import Pointer, boolean, cast, native, u32, u64


@native(inline=True)
def has_peer(block: Pointer[Block]) -> boolean:
    """Whether a block has a second one to form a pair with."""
    return (block.rank | 1) < block.cluster.count


@native(inline=True)
def peer_of(block: Pointer[Block]) -> Pointer[Block]:
    """The other block of a pair."""
    return block.cluster.blocks[block.rank ^ 1]


@native
def join_peer(thread: Pointer[Thread], what: u32, columns: u32, instruction: u32) -> None:
    """Execute an operation of the pair for a warp, as its first lane: wait until the other block executes it, too."""
    if thread.lane != 0:
        return
    if not has_peer(thread.block):
        fail_allocation(thread, AllocationReason.NO_PEER, columns, 0, instruction)
        return
    tensor = tensor_of(thread, instruction)
    if cast(u64, tensor) == 0:
        return
    tensor.joined += 1
    number: u32 = tensor.joined
    joined: u64 = u64(what) << 32 | u64(columns)
    tensor.joins[number % RECENT_JOINS] = joined
    peer = peer_of(thread.block)
    other = peer.tensor
    if cast(u64, other) == 0 or other.joined < number:
        thread.waiting.instruction = instruction
        thread.target.number = u64(number)
        thread.status = AT_PEER
        return
    if other.joined - number < RECENT_JOINS and other.joins[number % RECENT_JOINS] != joined:
        limit: u32 = u32(other.joins[number % RECENT_JOINS])
        fail_allocation(thread, AllocationReason.OTHER_IN_PEER, columns, limit, instruction)
        return
    for index in range(peer.count):
        waiting = peer.threads + index
        if waiting.status == AT_PEER and waiting.target.number == u64(number):
            waiting.status = READY
    peer.schedule.moves += 1
    thread.block.schedule.moves += 1


CALLED = (join_peer,)
