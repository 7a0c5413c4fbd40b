"""All-reduce by neighbours: along a ring, and up and down a tree; and by multicast addresses.

Ranks of a ring and of a tree do not wait for all others, but for those that they get something from: `send` and
`receive` in `kernel`. Numbers count up from that of the collective.
"""

from __future__ import annotations

from ptxlab.author import f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.collectives.kernel import load, of_rank, own_elements, receive, send, store, synchronize


def added(one: list[f32], other: list[f32]) -> list[f32]:
    return [a + b for a, b in zip(one, other, strict=True)]


@kernel(target="sm_70")
def all_reduce_ring(
    inputs: pointer[u64], buffers: pointer[u64], results: pointer[u64], signals: pointer[u64], count: u32, rank: u32,
    number: u32, *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Each rank passes parts to the next: sums go around once, then totals; `buffers` hold a part for each step.

    No barrier is needed before: peers write to `buffers` only what the collective before is done with, and to `results`
    once the signals of all ranks have come around.
    """
    part = count // RANKS
    after, before = (rank + 1) % RANKS, (rank + (RANKS - 1)) % RANKS
    for step in range(RANKS - 1):
        own = (rank + (RANKS - step)) % RANKS * part
        for at in own_elements(part):
            value = load(of_rank(inputs, rank), own + at, VECTOR)
            if step:
                value = added(value, load(of_rank(buffers, rank), part * (step - 1) + at, VECTOR))
            store(of_rank(buffers, after), part * step + at, value)
        send(signals, [after], rank, number + step, RANKS)
        receive(signals, rank, [before], number + step, RANKS)
    for at in own_elements(part):
        total = load(of_rank(inputs, rank), after * part + at, VECTOR)
        total = added(total, load(of_rank(buffers, rank), part * (RANKS - 2) + at, VECTOR))
        store(of_rank(results, rank), after * part + at, total)
    for step in range(RANKS - 1):
        own = (rank + (RANKS + 1 - step)) % RANKS * part
        for at in own_elements(part):
            store(of_rank(results, after), own + at, load(of_rank(results, rank), own + at, VECTOR))
        if step < RANKS - 2:  # the last totals arrive before the barrier of all ranks
            send(signals, [after], rank, number + (RANKS - 1 + step), RANKS)
            receive(signals, rank, [before], number + (RANKS - 1 + step), RANKS)
    synchronize(signals, rank, number + (2 * RANKS - 3), RANKS)


@kernel(target="sm_70")
def all_reduce_tree(
    inputs: pointer[u64], results: pointer[u64], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Rank `r` adds what ranks `2 r + 1` and `2 r + 2` have; the total of rank 0 goes back the same way."""
    children = [rank * 2 + 1, rank * 2 + 2]
    parent = (rank + (RANKS - 1)) % RANKS // 2  # of rank 0, any other
    receive(signals, rank, children, number + 1, RANKS)
    for at in own_elements(count):
        store(of_rank(results, rank), at, load(of_rank(inputs, rank), at, VECTOR))
        for child in children:
            with ptx.when(child < RANKS):
                far = load(of_rank(results, child), at, VECTOR)
                store(of_rank(results, rank), at, added(load(of_rank(results, rank), at, VECTOR), far))
    with ptx.when(rank > 0):
        send(signals, [parent], rank, number + 1, RANKS)
        receive(signals, rank, [parent], number + 2, RANKS)
        for at in own_elements(count):
            store(of_rank(results, rank), at, load(of_rank(results, parent), at, VECTOR))
    send(signals, children, rank, number + 2, RANKS)
    synchronize(signals, rank, number + 3, RANKS)


@kernel(target="sm_90")
def all_reduce_multimem(
    inputs: pointer[f32], results: pointer[f32], signals: pointer[u64], count: u32, rank: u32, number: u32,
    *, RANKS: int = 8, VECTOR: int = 4,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """The switch adds: each rank loads the sum of its part from a multicast address, and stores it to all ranks."""
    part = count // RANKS
    synchronize(signals, rank, number, RANKS)
    for at in own_elements(part):
        place = (rank * part + at) * VECTOR
        if VECTOR == 4:
            total = ptx.multimem.ld_reduce.relaxed.sys.global_.add.v4.f32(inputs + place)
            ptx.multimem.st.relaxed.sys.global_.v4.f32(results + place, total)
        else:
            one = ptx.multimem.ld_reduce.relaxed.sys.global_.add.f32(inputs + place)
            ptx.multimem.st.relaxed.sys.global_.f32(results + place, one)
    synchronize(signals, rank, number + 1, RANKS)
