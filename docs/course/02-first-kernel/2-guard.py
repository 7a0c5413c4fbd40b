"""Chapter 2: the guard."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] = x[i] + 1, a thread for each i below n.
//
// A grid has whole blocks only: for n = 100 in blocks of 64 there are 128 threads, and 28 of them
// have nothing to do. This kernel lets them read and write beyond the arrays. Keep them out.

.version 8.0
.target sm_80
.address_size 64

.visible .entry increment(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %beyond;
    .reg .u32 %i, %a, %b, %n;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %n, [n];

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %value, [%x];
    add.f32 %value, %value, 0f3F800000;   // 1.0
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(
    START, ("[n];\n\n", "[n];\n    setp.ge.u32 %beyond, %i, %n;   // true where i >= n\n    @%beyond ret;\n\n")
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Blocks that cover n, and often more."""
    x = random.standard_normal(n).astype(np.float32)
    right = (x + np.float32(1)).astype(np.float64)
    empty = np.full(n, np.nan, np.float32)
    without_last = right.copy()
    without_last[-1] = np.nan
    whole = right.copy()
    whole[n // block * block :] = np.nan
    return Case(
        -(-n // block),
        block,
        {"x": x, "y": empty, "n": np.uint32(n)},
        expected={"y": right},
        mistakes={
            "no element was written: all threads with i below n return. The guard is true where there is nothing to "
            "do": {"y": empty},
            "the last element was not written: thread n - 1 returns, too. Which comparison is true for n and not for "
            "n - 1?": {"y": without_last},
            "only whole blocks were written: the threads of the last block that have an element are to write it": {
                "y": whole
            },
        },
    )


EXERCISE = Exercise(
    "the guard",
    START,
    SOLUTION,
    Task("increment", launch, ({"n": 100, "block": 64}, {"n": 64, "block": 32}, {"n": 33, "block": 32},
                               {"n": 1, "block": 64})),
    hints=(
        "A predicate is a register of one bit. `setp` compares two numbers and sets one.",
        "`setp.ge.u32 %beyond, %i, %n;` is true where i >= n. `@%beyond` in front of an instruction has only those "
        "threads execute it whose predicate is true.",
        "`@%beyond ret;` before the first load.",
    ),
    advice={
        "out-of-bounds": "The thread that is named has an i that is not below n. Which threads does your guard let "
        "through? Threads with i = n, n + 1, ... have no element.",
        "wrong-values": "Each i from 0 to n - 1 has a thread that must pass the guard, and no other may.",
    },
)  # fmt: skip
