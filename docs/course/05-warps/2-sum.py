"""Chapter 5: the sum of a warp."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids, avoids_space, changed, executes

START = """\
// y[i] is the sum of the 32 numbers of the warp of thread i, the same in all lanes.
//
// A tree adds 32 numbers in five steps: each lane adds the number of the lane 16 further, then 8,
// 4, 2, 1. `shfl.sync.down` reads the lane further up, and lanes at the end have no partner, so
// that the sum is right in lane 0 only. `shfl.sync.bfly` reads lane ^ 16 (exclusive or): every lane
// has a partner, and all of them have the sum.
//
// This kernel makes four steps, downwards. Make it right.

.version 8.0
.target sm_80
.address_size 64

.visible .entry warp_sum(.param .u64 x, .param .u64 y)
{
    .reg .u32 %i, %a, %b;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %sum, %other;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %sum, [%x];

    shfl.sync.down.b32 %other, %sum, 16, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.down.b32 %other, %sum, 8, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.down.b32 %other, %sum, 4, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;
    shfl.sync.down.b32 %other, %sum, 2, 31, 0xffffffff;
    add.f32 %sum, %sum, %other;

    st.global.f32 [%y], %sum;
    ret;
}
"""
SOLUTION = changed(
    START.replace(".down.b32", ".bfly.b32"),
    (
        "%sum, 2, 31, 0xffffffff;\n    add.f32 %sum, %sum, %other;\n",
        "%sum, 2, 31, 0xffffffff;\n    add.f32 %sum, %sum, %other;\n"
        "    shfl.sync.bfly.b32 %other, %sum, 1, 31, 0xffffffff;\n    add.f32 %sum, %sum, %other;\n",
    ),
)


def tree(warps: np.ndarray, steps: tuple[int, ...], is_down: bool) -> np.ndarray:
    """What all lanes have after these steps."""
    lanes = np.arange(32)
    for step in steps:
        partner = np.where(lanes + step < 32, lanes + step, lanes) if is_down else lanes ^ step
        warps = warps + warps[:, partner]
    return warps.reshape(-1)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Whole numbers, whose sums are exact in any order."""
    x = random.integers(-99, 99, n).astype(np.float32)
    warps = x.reshape(-1, 32)
    five = (16, 8, 4, 2, 1)
    return Case(
        n // block,
        block,
        {"x": x, "y": np.full(n, np.nan, np.float32)},
        expected={"y": np.repeat(warps.sum(axis=1), 32)},
        mistakes={
            "lane 0 has the sum, and others have not: this is what five steps of `.down` give. Which form of `shfl` "
            "has a partner for every lane?": {"y": tree(warps, five, True)},
            "a step is missing, the one by 1: five steps add 32 numbers": {"y": tree(warps, five[:-1], False)},
            "these are four steps of `.down`: the one by 1 is missing, and `.down` has a partner for some lanes only": {
                "y": tree(warps, five[:-1], True)
            },
            "the step by 16 is missing: each half of the warp has a sum of its own": {
                "y": tree(warps, five[1:], False)
            },
            "these are the numbers of x: nothing was added": {"y": x},
        },
    )


EXERCISE = Exercise(
    "the sum of a warp",
    START,
    SOLUTION,
    Task("warp_sum", launch, ({"n": 32, "block": 32}, {"n": 256, "block": 128}, {"n": 96, "block": 96})),
    hints=(
        "Two things are wrong: there are four steps where 32 = 2^5 needs five, and `.down` leaves lanes without a "
        "partner.",
        "With `.bfly` the lane reads lane ^ 16: lane 3 reads 19, and lane 19 reads 3, so both have the same sum.",
        "Write `.bfly` for `.down` in all steps, and add a step by 1.",
    ),
    needs=(
        executes("shfl", "the tree exchanges registers by `shfl.sync`"),
        avoids_space("shared", "a warp needs no shared memory for its sum"),
        avoids("atom", "a tree adds without atomic operations"),
    ),
    advice={
        "undefined-shuffle": "A lane reads another one that does not execute the `shfl.sync`: all 32 have to.",
        "wrong-values": "After the step by 16, lanes 0 and 16 are to have the same number: x[0] + x[16].",
    },
)
