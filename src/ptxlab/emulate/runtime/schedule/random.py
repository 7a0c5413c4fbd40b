"""Numbers that look random, and are the same for the same seed."""

from __future__ import annotations

from ptxlab.emulate.abi.state import Block, Search, Worker
from ptxlab.native import Pointer, native, u8, u32, u64

SPREAD = 0xBF58476D1CE4E5B9
ROUNDS = 4


@native(inline=True)
def next_of(state: u64) -> u64:
    """The state of a generator that follows another one."""
    found: u64 = state ^ (state << 13)
    found = found ^ (found >> 7)
    return found ^ (found << 17)


@native
def scrambled(number: u64) -> u64:
    """Another number, in which every bit depends on all of this one."""
    found: u64 = u64((number ^ (number >> 30)) * SPREAD)
    found = u64((found ^ (found >> 27)) * 0x94D049BB133111EB)
    return found ^ (found >> 31)


@native
def next_random(block: Pointer[Block]) -> u64:
    """The next number of a block."""
    block.schedule.random = next_of(block.schedule.random)
    return block.schedule.random


@native
def chance(search: Pointer[Search], below: u64) -> u64:
    """A number below another one, for the schedule of several clusters."""
    search.random = next_of(search.random)
    return (search.random >> 11) % below


@native
def shuffle(block: Pointer[Block], order: Pointer[u8], count: u32) -> None:
    """Fill an array with the numbers below `count`, in any order."""
    for index in range(count):
        other: u32 = u32((next_random(block) >> 11) % (u64(index) + 1))
        order[index] = order[other]
        order[other] = u8(index)


@native
def permuted(worker: Pointer[Worker], index: u64) -> u64:
    """The number of the cluster that starts as the `index`th: a Feistel network, until it gives one that exists."""
    half: u64 = 1
    while u64(1) << 2 * half < worker.clusters.total:
        half += 1
    mask: u64 = (u64(1) << half) - 1
    found: u64 = index
    while True:
        for round in range(ROUNDS):
            right: u64 = found & mask
            mixed: u64 = scrambled(scrambled(worker.seed + u64(round) * SPREAD) + right)
            found = right << half | (found >> half ^ mixed) & mask
        if found < worker.clusters.total:
            return found
