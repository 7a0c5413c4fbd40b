"""Matrix products that communicate while they compute: no rank waits for a part before it needs it.

Each thread computes elements by itself, row by column: what is shown is the order of signals, not a fast product.
"""

from __future__ import annotations

from ptxlab.author import Pointer, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.collectives.kernel import of_rank, own_elements, receive, send, sum_of_ranks, synchronize


def product(a: Pointer, b: Pointer, row: u32, column: u32, k: u32, n: u32) -> f32:
    """An element of the product of matrices by rows, of `k` columns and of `n`."""
    total = f32(0.0)
    for at in ptx.range(u32(0), k, 1):
        total += a[row * k + at] * b[at * n + column]
    return total


@kernel(target="sm_70")
def all_gather_matmul(
    a: pointer[u64], b: pointer[f32], result: pointer[f32], signals: pointer[u64], rows: u32, n: u32, k: u32, rank: u32,
    number: u32, *, RANKS: int = 8,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """The rows of `a` of all ranks, one after the other, times `b`: own rows first, others once their rank says so."""
    send(signals, [(rank + step) % RANKS for step in range(1, RANKS)], rank, number, RANKS)
    for step in range(RANKS):
        other = (rank + step) % RANKS
        if step:
            receive(signals, rank, [other], number, RANKS)
        for at in own_elements(rows * n):
            row, column = at // n, at % n
            result[(other * rows + row) * n + column] = product(of_rank(a, other), b, row, column, k, n)
    synchronize(signals, rank, number + 1, RANKS)


@kernel(target="sm_70")
def matmul_reduce_scatter(
    a: pointer[f32], b: pointer[f32], buffers: pointer[u64], result: pointer[f32], signals: pointer[u64], rows: u32,
    n: u32, k: u32, rank: u32, number: u32, *, RANKS: int = 8,  # noqa: N803 - known when the kernel is written
) -> None:  # fmt: skip
    """Of the sum over ranks of `a` times `b`, each gets its rows: those of others are computed and sent first."""
    for step in range(RANKS):
        other = (rank + (step + 1)) % RANKS
        for at in own_elements(rows * n):
            row, column = other * rows + at // n, at % n
            of_rank(buffers, rank)[row * n + column] = product(a, b, row, column, k, n)
        if step < RANKS - 1:
            send(signals, [other], rank, number, RANKS)
    receive(signals, rank, [(rank + step) % RANKS for step in range(1, RANKS)], number, RANKS)
    for at in own_elements(rows * n):
        (total,) = sum_of_ranks(buffers, rank * rows * n + at, RANKS, 1)
        result[at] = total
    synchronize(signals, rank, number + 1, RANKS)
