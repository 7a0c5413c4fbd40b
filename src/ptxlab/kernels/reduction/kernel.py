"""The sum of all elements, in Python: each block sums its share, and the block that comes last sums all of them."""

from __future__ import annotations

from ptxlab.author import Pointer, b32, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.parts.elements import element_pointer, load, load_bits, widened
from ptxlab.kernels.parts.reductions import add, over_block

THREADS = 512
LOAD = ptx.ld.global_.nc["L1::no_allocate"]


@kernel(target="sm_80", maxntid=THREADS, minnctapersm=2)
def sum_shares(
    x: pointer[b32],
    sums: pointer[f32],
    ticket: pointer[u32],
    total: pointer[f32],
    n: u64,
    share: u32,
    *,
    TYPE: str,  # noqa: N803
    VECTOR: int,  # noqa: N803
    AHEAD: int,  # noqa: N803
) -> None:
    """Each block sums so many elements in a row; AHEAD vectors are asked for before the first is used."""
    thread, block, blocks = ptx.tid.x, ptx.ctaid.x, ptx.nctaid.x
    own = over_block(sum_share(x, n, share, thread, block, TYPE, VECTOR, AHEAD), add, THREADS)
    last = ptx.shared(u32, 1, name="last")
    with ptx.when(thread == 0):
        sums[block] = own
        # `inc` counts to blocks - 1 and then starts again, so the ticket is ready for the next launch. Release and
        # acquire: who draws the last number sees all sums.
        last[0] = ptx.atom.acq_rel.gpu.global_.inc.u32(ticket, blocks - 1)
    ptx.bar.sync(0)
    with ptx.when(last[0] == blocks - 1):
        found = f32(0.0)
        for number in ptx.range(thread, blocks, THREADS):
            found += sums[number]
        found = over_block(found, add, THREADS)
        with ptx.when(thread == 0):
            total[0] = found


def sum_share(x: Pointer, n: u64, share: u32, thread: u32, block: u32, type: str, vector: int, ahead: int) -> f32:
    """What one thread sums: every so manieth vector of the share that its block has."""
    whole = n & -vector % 2**64 if vector > 1 else n  # elements that are in vectors
    start = ptx.mul.wide.u32(block, share)
    end = ptx.min.u64(start + ptx.cvt.u64.u32(share), whole)
    sums = [f32(0.0) for _ in range(vector)]
    for position in ptx.range(start + ptx.cvt.u64.u32(thread * vector), end, THREADS * ahead * vector):
        source = element_pointer(x, type, vector, position)
        inside = [None if number == 0 else position + number * THREADS * vector < end for number in range(ahead)]
        vectors = [
            load_bits(LOAD, source + number * THREADS, type, vector, inside=within)
            for number, within in enumerate(inside)
        ]
        for bits in vectors:
            for found, value in zip(sums, widened(bits, type), strict=True):
                found += value
    if vector > 1:  # fewer than a vector are left
        rest = whole + ptx.cvt.u64.u32(thread)
        with ptx.when((rest < n) & (block == 0)):
            for value in load(LOAD, element_pointer(x, type, 1, rest), type, 1):
                sums[0].set(sums[0] + value)
    while len(sums) > 1:
        sums = [first + second for first, second in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]
