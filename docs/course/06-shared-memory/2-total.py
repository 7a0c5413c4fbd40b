"""Chapter 6: the sum of a block."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids, changed, executes

START = """\
// y[b] is the sum of the 256 numbers of block b.
//
// Each of the eight warps has its sum by shuffles already, in all its lanes. What is missing: one
// lane of each warp writes it to `sums`, all threads wait, and thread 0 adds the eight and stores
// the total. Write it at the mark; %total is for it.

.version 8.0
.target sm_80
.address_size 64

.visible .entry total(.param .u64 x, .param .u64 y)
{
    .shared .align 16 .f32 sums[8];
    .reg .pred %p;
    .reg .u32 %t, %i, %a, %b, %lane, %warp, %place;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %sum, %other, %total;

    mov.u32 %t, %tid.x;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mad.lo.u32 %i, %a, %b, %t;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    ld.param.u64 %x, [x];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    ld.global.f32 %sum, [%x];
    shfl.sync.bfly.b32 %other, %sum, 16, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.bfly.b32 %other, %sum, 8, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.bfly.b32 %other, %sum, 4, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.bfly.b32 %other, %sum, 2, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.bfly.b32 %other, %sum, 1, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;

    mov.f32 %total, %sum;              // <- here

    setp.ne.u32 %p, %t, 0;             // only thread 0 stores
    @%p ret;
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %a, 4;
    add.u64 %y, %y, %offset;
    st.global.f32 [%y], %total;
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    mov.f32 %total, %sum;              // <- here\n",
        """\
    mov.u32 %place, sums;
    mad.lo.u32 %place, %warp, 4, %place;
    setp.eq.u32 %p, %lane, 0;
    @%p st.shared.f32 [%place], %sum;
    bar.sync 0;

    mov.f32 %total, 0f00000000;
    mov.u32 %place, sums;
    mov.u32 %b, 0;
$next:
    ld.shared.f32 %other, [%place];
    add.f32 %total, %total, %other;
    add.u32 %place, %place, 4;
    add.u32 %b, %b, 1;
    setp.lt.u32 %p, %b, 8;
    @%p bra $next;
""",
    ),
)


def launch(random: np.random.Generator, blocks: int) -> Case:
    """Whole numbers, whose sums are exact in any order."""
    x = random.integers(-99, 99, 256 * blocks).astype(np.float32)
    warps = x.reshape(blocks, 8, 32).sum(axis=2)
    return Case(
        blocks,
        256,
        {"x": x, "y": np.full(blocks, np.nan, np.float32)},
        expected={"y": warps.sum(axis=1)},
        mistakes={
            "this is the sum of the first warp only": {"y": warps[:, 0]},
            "this is the sum of the last warp only: the warps write to the same place": {"y": warps[:, 7]},
            "each sum is counted 32 times": {"y": 32 * warps.sum(axis=1)},
            "the last warp is missing in the sum: there are eight": {"y": warps[:, :7].sum(axis=1)},
            "the first warp is missing in the sum": {"y": warps[:, 1:].sum(axis=1)},
        },
    )


EXERCISE = Exercise(
    "the sum of a block",
    START,
    SOLUTION,
    Task("total", launch, ({"blocks": 1}, {"blocks": 2}, {"blocks": 5})),
    hints=(
        "The place of a warp's sum is `sums + 4 * warp`. `mov.u32 %place, sums;` is the address of the first.",
        "`@%p st.shared.f32 [%place], %sum;` with a predicate that is true in lane 0, then `bar.sync 0;` by all "
        "threads.",
        "After the barrier, a loop of eight: load from shared memory, add to `%total`, advance the address by 4. It "
        "does no harm if all threads do it.",
    ),
    needs=(
        executes("bar", "the sums of the warps come together in shared memory, with a barrier"),
        avoids("atom", "eight sums are added by one thread, without atomic operations"),
        avoids("red", "eight sums are added by one thread, without atomic operations"),
    ),
    advice={
        "data-race": "Thread 0 reads sums that other warps write: a barrier of all threads belongs between the two. "
        "And "
        "each warp has a place of its own, `sums + 4 * warp`.",
        "hang": "Some threads wait at the barrier for others that never arrive: is it after a `ret`, or in a branch?",
        "divergent-barrier": "All threads of the block have to arrive at the barrier: not one lane of each warp.",
        "uninitialized-read": "There are eight sums, one for each warp, and the one that is read was not written.",
        "out-of-bounds": "`sums` has eight places of 4 bytes.",
        "wrong-values": "Which of the eight sums does thread 0 add?",
    },
)
