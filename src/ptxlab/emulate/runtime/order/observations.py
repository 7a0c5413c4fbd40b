"""What threads have observed by strong reads: writes that are not ordered; see `one_sided`.

Each thread remembers its own. Those of which one side synchronizes are of all threads of the block after a barrier.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import OBSERVATIONS, Observation
from ptxlab.native import Pointer, address_of, cast, copy_bytes, native, size_of, u8, u32, u64

# The side that orders.
NEITHER = 0
READ_FENCED = 3  # a fence comes after the read

OBSERVATION_SIZE = size_of(Observation)


@native
def slot_for(observations: Pointer[Observation], observed: Pointer[u32], address: u64) -> Pointer[Observation]:
    """Where to remember what was observed at an address: in place of what is known of that, or of the oldest."""
    for index in range(min(observed[0], u32(OBSERVATIONS))):
        if observations[index].address == address:
            return observations + index
    slot: u32 = observed[0] % OBSERVATIONS
    observed[0] += 1
    return observations + slot


@native
def fence_observations(thread: Pointer[Thread]) -> None:
    """A thread passes a fence that acquires: it comes after the reads of all that the thread has observed."""
    for index in range(min(thread.order.observed, u32(OBSERVATIONS))):
        if thread.order.observations[index].side == NEITHER:
            thread.order.observations[index].side = READ_FENCED
            thread.block.order.has_observed = 1


@native
def share_observations(block: Pointer[Block]) -> None:
    """All threads of a block have synchronized: what one has observed, if one side of it synchronizes, all have."""
    if block.order.has_observed == 0:
        return
    block.order.has_observed = 0
    for index in range(block.count):
        thread = block.threads + index
        for number in range(min(thread.order.observed, u32(OBSERVATIONS))):
            seen = cast(Pointer[Observation], thread.order.observations + number)
            if seen.side != NEITHER:
                observations = cast(Pointer[Observation], block.order.observations)
                slot = slot_for(observations, address_of(block.order.observed), seen.address)
                copy_bytes(cast(Pointer[u8], slot), cast(Pointer[u8], seen), OBSERVATION_SIZE)
