"""Chapter 1: each thread writes its number in the grid."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// Each thread has a number in the whole grid: 0, 1, 2, ... over all blocks.
// Thread i is to write its number to y[i].
//
// This kernel is right for one block, and wrong for more: %i is the thread's number in its
// block. Make it the number in the grid. The registers %block and %size are there for you.

.version 8.0
.target sm_80
.address_size 64

.visible .entry number(.param .u64 y)
{
    .reg .u32 %i, %thread, %block, %size;
    .reg .u64 %address, %y;

    mov.u32 %thread, %tid.x;       // my number in my block
    mov.u32 %block, %ctaid.x;      // the number of my block
    mov.u32 %size, %ntid.x;        // how many threads a block has
    mov.u32 %i, %thread;           // <- change this line

    ld.param.u64 %y, [y];
    mul.wide.u32 %address, %i, 4;  // a number has 4 bytes
    add.u64 %address, %address, %y;
    st.global.u32 [%address], %i;
    ret;
}
"""
SOLUTION = changed(
    START, ("mov.u32 %i, %thread;           // <- change this line", "mad.lo.u32 %i, %block, %size, %thread;")
)


def launch(random: np.random.Generator, blocks: int, block: int) -> Case:
    """As many threads as numbers."""
    count = blocks * block
    numbers = np.arange(count, dtype=np.uint32)
    return Case(
        blocks,
        block,
        {"y": np.full(count, 0xFFFFFFFF, np.uint32)},
        expected={"y": numbers},
        mistakes={
            "only as many elements as a block has threads were written: `%i` is the number in the block, so all blocks "
            "write the same elements": {"y": np.where(numbers < block, numbers, 0xFFFFFFFF)},
            "every thread wrote the right element, with its number in the block: the value that is stored is to be the "
            "number in the grid, too": {"y": numbers % block},
            "every thread wrote the number of its block": {"y": numbers // block},
        },
    )


EXERCISE = Exercise(
    "the number of a thread in the grid",
    START,
    SOLUTION,
    Task("number", launch, ({"blocks": 1, "block": 32}, {"blocks": 4, "block": 32}, {"blocks": 3, "block": 96})),
    hints=(
        "With blocks of 32 threads, block 0 has the numbers 0 to 31, block 1 has 32 to 63, block 2 has 64 to 95. What "
        "is the first number of block 5?",
        "The first number of a block is `%block * %size`; a thread's number is that plus `%thread`.",
        "`mad.lo.u32 d, a, b, c;` computes d = a * b + c and keeps the low 32 bits.",
    ),
    advice={
        "wrong-values": "Thread 3 of block 2, in blocks of 32, is thread 67 of the grid. What does your line make "
        "of it?",
        "data-race": "Two threads write the same element, because they have the same `%i`. The numbers of a block "
        "begin "
        "where those of the block before end.",
        "out-of-bounds": "`%i` is larger than the last number of the grid. The blocks before mine have "
        "`%block * %size` threads together, and I am the thread `%thread` of those that follow.",
    },
)
