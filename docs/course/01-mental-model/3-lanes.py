"""Chapter 1: warps and lanes."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// Threads 0 to 31 of a block are its first warp, threads 32 to 63 its second. A thread's number
// in its warp is its lane.
//
// Let each thread write 100 * warp + lane to y[thread]: thread 70 is lane 6 of warp 2, so y[70]
// is 206. Compute both from %thread.

.version 8.0
.target sm_80
.address_size 64

.visible .entry lanes(.param .u64 y)
{
    .reg .u32 %thread, %warp, %lane, %value;
    .reg .u64 %address, %y;

    mov.u32 %thread, %tid.x;
    mov.u32 %warp, 0;              // <- the warp
    mov.u32 %lane, 0;              // <- the lane

    mad.lo.u32 %value, %warp, 100, %lane;
    ld.param.u64 %y, [y];
    mul.wide.u32 %address, %thread, 4;
    add.u64 %address, %address, %y;
    st.global.u32 [%address], %value;
    ret;
}
"""
SOLUTION = changed(
    START,
    ("mov.u32 %warp, 0;              // <- the warp", "shr.u32 %warp, %thread, 5;     // 2 to the 5th is 32"),
    ("mov.u32 %lane, 0;              // <- the lane", "and.b32 %lane, %thread, 31;    // the low five bits"),
)


def launch(random: np.random.Generator, block: int) -> Case:
    """One block."""
    thread = np.arange(block, dtype=np.uint32)
    return Case(
        1,
        block,
        {"y": np.full(block, 0xFFFFFFFF, np.uint32)},
        expected={"y": thread // 32 * 100 + thread % 32},
        mistakes={
            "the warp is right, and the lane is still 0": {"y": thread // 32 * 100},
            "the lane is right, and the warp is still 0": {"y": thread % 32},
            "the warp is right, but the lane is the thread's number in the block: subtract the threads of the warps "
            "before, or keep the low five bits": {"y": thread // 32 * 100 + thread},
            "a warp has 32 threads, and this counts 16": {"y": thread // 16 * 100 + thread % 16},
            "a warp has 32 threads, and this counts 64": {"y": thread // 64 * 100 + thread % 64},
            "warp and lane are exchanged": {"y": thread % 32 * 100 + thread // 32},
        },
    )


EXERCISE = Exercise(
    "warps and lanes",
    START,
    SOLUTION,
    Task("lanes", launch, ({"block": 96}, {"block": 64}, {"block": 1000})),
    hints=(
        "In C it would be `warp = thread / 32` and `lane = thread % 32`. `div.u32` and `rem.u32` do that; since 32 "
        "is a "
        "power of two, there are faster ones.",
        "To divide by 32, shift five bits to the right: `shr.u32`. The remainder is the five bits that fall off: "
        "`and.b32` with 31.",
        "`shr.u32 %warp, %thread, 5;` and `and.b32 %lane, %thread, 31;`",
    ),
    advice={
        "wrong-values": "Thread 33 is lane 1 of warp 1: its value is 101. What do your two lines make of 33?",
    },
)
