"""Collectives over the GPUs of a node: each rank reads what it needs from its peers, between two barriers of all ranks.

`table` arguments are symmetric memory: the address of each rank's array, in the order of the ranks. Blocks of the same
number work together: block `b` of all ranks synchronizes by the `signals` of block `b`, a word for each rank. A barrier
has a number, larger than that of the one before, which each rank writes to all others and then waits for.

The orders that matter are all in `synchronize`, and in `send` and `receive` for the collectives in `rings` and `fused`.
What a rank wrote before it, its peers read after it: so a thread releases with the scope `.sys`, which includes other
GPUs, and acquires with it. The barrier at the end keeps a rank from writing its input again, or its buffer, while peers
still read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.author import f32, kernel, pointer, ptx, u32, u64
from ptxlab.author.pointers import Pointer, pointing

THREADS = 256


def of_rank(table: Pointer, rank: u32 | int, type: object = f32) -> Pointer:
    """The array of a rank."""
    return pointing(type, "global", table[rank])


def synchronize(signals: pointer[u64], rank: u32, number: u32, ranks: int) -> None:
    """Wait until blocks of this number have come here on all ranks; what they did before has happened then."""
    ptx.bar.sync(0)
    with ptx.when(ptx.tid.x < ranks):
        first = ptx.ctaid.x * ranks
        theirs = of_rank(signals, ptx.tid.x, u32) + (first + rank)
        own = of_rank(signals, rank, u32) + (first + ptx.tid.x)
        ptx.st.release.sys.global_.u32(theirs, number)
        seen = u32(0)
        with ptx.loop():
            ptx.ld.acquire.sys.global_.u32(own, out=seen)
            ptx.repeat_when(seen < number)
    ptx.bar.sync(0)


def send(signals: Pointer, to: Sequence[u32], rank: u32, number: u32, ranks: int) -> None:
    """Signal the block of this number on other ranks, those that there are: what this block did has happened then."""
    ptx.bar.sync(0)
    for other in to:
        with ptx.when((ptx.tid.x == 0) & (other < ranks)):
            ptx.st.release.sys.global_.u32(of_rank(signals, other, u32) + (ptx.ctaid.x * ranks + rank), number)


def receive(signals: Pointer, rank: u32, senders: Sequence[u32], number: u32, ranks: int) -> None:
    """Wait until the blocks of this number on other ranks, those that there are, have sent a number or a later one."""
    for sender in senders:
        with ptx.when((ptx.tid.x == 0) & (sender < ranks)):
            seen = u32(0)
            with ptx.loop():
                ptx.ld.acquire.sys.global_.u32(of_rank(signals, rank, u32) + (ptx.ctaid.x * ranks + sender), out=seen)
                ptx.repeat_when(seen < number)
    ptx.bar.sync(0)


def own_elements(count: u32) -> Any:
    """The elements, or vectors of them, that a thread works on."""
    return ptx.range(ptx.ctaid.x * THREADS + ptx.tid.x, count, ptx.nctaid.x * THREADS)


def sum_of_ranks(inputs: Pointer, at: u32, ranks: int, vector: int) -> list[f32]:
    """The sum over all ranks of one element or vector, in the order of the ranks: the same bits on each of them."""
    total = load(of_rank(inputs, 0), at, vector)
    for other in range(1, ranks):
        found = load(of_rank(inputs, other), at, vector)
        total = [a + b for a, b in zip(total, found, strict=True)]
    return total


def load(array: Pointer, at: u32, vector: int) -> list[f32]:
    """One element or vector."""
    return list(array.v4[at]) if vector == 4 else [array[at]]


def store(array: Pointer, at: u32, values: list[f32]) -> None:
    """Write one element or vector."""
    if len(values) == 4:
        array.v4[at] = tuple(values)
    else:
        array[at] = values[0]


@kernel(target="sm_70")
def all_reduce_one_shot(
    inputs: pointer[u64], result: pointer[f32], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Each rank reads the inputs of all, and sums all of them itself: one step, for small arrays."""
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(count):
        store(result, at, sum_of_ranks(inputs, at, RANKS, VECTOR))
    synchronize(signals, rank, number + 1, RANKS)


@kernel(target="sm_70")
def all_reduce_two_shot(
    inputs: pointer[u64], buffers: pointer[u64], result: pointer[f32], signals: pointer[u64], count: u32, rank: u32,
    number: u32, *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Each rank sums its part of the array, then reads the parts of the others: two steps, for large arrays."""
    part = count // RANKS
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(part):
        store(of_rank(buffers, rank), at, sum_of_ranks(inputs, rank * part + at, RANKS, VECTOR))
    synchronize(signals, rank, number + 1, RANKS)
    for at in own_elements(part):
        for other in range(RANKS):
            store(result, at + part * other, load(of_rank(buffers, other), at, VECTOR))
    synchronize(signals, rank, number + 2, RANKS)


@kernel(target="sm_70")
def reduce_scatter(
    inputs: pointer[u64], result: pointer[f32], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Each rank sums its part of the array over all ranks; `count` is of a part."""
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(count):
        store(result, at, sum_of_ranks(inputs, rank * count + at, RANKS, VECTOR))
    synchronize(signals, rank, number + 1, RANKS)


@kernel(target="sm_70")
def all_gather(
    inputs: pointer[u64], result: pointer[f32], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Each rank gets the arrays of all ranks, one after the other."""
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(count):
        for other in range(RANKS):
            store(result, at + count * other, load(of_rank(inputs, other), at, VECTOR))
    synchronize(signals, rank, number + 1, RANKS)


@kernel(target="sm_70")
def all_to_all(
    inputs: pointer[u64], result: pointer[f32], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Part `r` of the array of each rank goes to rank `r`; `count` is of a part."""
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(count):
        for other in range(RANKS):
            store(result, at + count * other, load(of_rank(inputs, other), rank * count + at, VECTOR))
    synchronize(signals, rank, number + 1, RANKS)
