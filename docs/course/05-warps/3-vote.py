"""Chapter 5: lanes vote."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids, avoids_space, changed

START = """\
// y[w] is how many of the 32 numbers of warp w are above 0.
//
// Each lane has one number and sets a predicate. `vote.sync.ballot.b32 d, p, mask;` collects the
// predicates of all lanes: bit k of d is the predicate of lane k. `popc.b32 d, a;` counts ones.
// Lane 0 of each warp stores the count. Write what is missing.

.version 8.0
.target sm_80
.address_size 64

.visible .entry positives(.param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .u32 %i, %a, %b, %lane, %warp, %count;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    and.b32 %lane, %i, 31;
    shr.u32 %warp, %i, 5;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    ld.global.f32 %value, [%x];

    mov.u32 %count, 0;                 // <- compare, vote, count

    mul.wide.u32 %offset, %warp, 4;
    add.u64 %y, %y, %offset;
    setp.eq.u32 %p, %lane, 0;
    @%p st.global.u32 [%y], %count;
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    mov.u32 %count, 0;                 // <- compare, vote, count\n",
        "    setp.gt.f32 %p, %value, 0f00000000;\n    vote.sync.ballot.b32 %count, %p, 0xffffffff;\n"
        "    popc.b32 %count, %count;\n",
    ),
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Numbers above, below and equal to 0."""
    x = random.integers(-3, 3, n).astype(np.float32)
    x[: n // 2][x[: n // 2] == 0] = 1
    above = (x > 0).reshape(-1, 32)
    bits = (above * (1 << np.arange(32, dtype=np.uint64))).sum(axis=1).astype(np.uint32)
    return Case(
        n // block,
        block,
        {"x": x, "y": np.full(n // 32, 0xFFFFFFFF, np.uint32)},
        expected={"y": above.sum(axis=1)},
        mistakes={
            "all are 0: the predicates are not counted yet": {"y": 0 * bits},
            "these are the ballots, a bit for each lane: count their ones": {"y": bits},
            "zeros are counted, too: above 0 is `gt`, not `ge`": {"y": (x >= 0).reshape(-1, 32).sum(axis=1)},
            "negative numbers are counted": {"y": (x < 0).reshape(-1, 32).sum(axis=1)},
            "numbers that are not above 0 are counted": {"y": (~above).sum(axis=1)},
            "this is the predicate of lane 0 only": {"y": above[:, 0].astype(np.uint32)},
        },
    )


EXERCISE = Exercise(
    "lanes vote",
    START,
    SOLUTION,
    Task("positives", launch, ({"n": 64, "block": 64}, {"n": 256, "block": 128}, {"n": 320, "block": 32})),
    hints=(
        "Three instructions: `setp` sets a predicate in each lane, `vote.sync.ballot` makes 32 bits of them, `popc` "
        "counts.",
        "`setp.gt.f32 %p, %value, 0f00000000;` is true above 0. The mask of the vote is 0xffffffff: all lanes take "
        "part.",
        "`vote.sync.ballot.b32 %count, %p, 0xffffffff;` and `popc.b32 %count, %count;`",
    ),
    needs=(
        avoids_space("shared", "a warp counts without memory, by a vote or by `shfl.sync`"),
        avoids("atom", "a warp counts without atomic operations"),
        avoids("red", "a warp counts without atomic operations"),
    ),
    advice={
        "bad-membermask": "The mask has a bit for each lane that takes part: all 32 lanes vote, so all bits are set.",
        "data-race": "Several threads write y[warp]; one lane of each warp is to store the count.",
        "wrong-values": "Of the numbers 1, -1, 0, 2 two are above 0. Which bits do they set in your ballot?",
        "operand-type": "The vote takes a predicate: `setp` makes one of a comparison.",
    },
)
