"""Chapter 4: neighbours in a warp read neighbours in memory."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, is_coalesced

START = """\
// x is a matrix of 32 rows, row after row in memory; the width is a multiple of 32. Two kernels could
// add its columns; this one adds its rows, and its accesses are as bad as can be: in each iteration
// the 32 threads of a warp read 32 different rows, each in a different 32 bytes of memory.
//
// Make it add columns instead: thread i is to write the sum of column i to y[i]. Then a warp reads
// 32 numbers that are beside each other. One thread for each column.

.version 8.0
.target sm_80
.address_size 64

.visible .entry columns(.param .u64 x, .param .u64 y, .param .u32 width)
{
    .reg .pred %p;
    .reg .u32 %i, %a, %b, %width, %k, %index;
    .reg .u64 %x, %y, %address;
    .reg .f32 %sum, %value;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %width, [width];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];

    setp.ge.u32 %p, %i, 32;            // there are 32 rows
    @%p ret;
    mov.f32 %sum, 0f00000000;
    mov.u32 %k, 0;
$next:
    mad.lo.u32 %index, %i, %width, %k; // row i, column k
    mul.wide.u32 %address, %index, 4;
    add.u64 %address, %address, %x;
    ld.global.f32 %value, [%address];
    add.f32 %sum, %sum, %value;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, %width;        // all columns
    @%p bra $next;

    mul.wide.u32 %address, %i, 4;
    add.u64 %address, %address, %y;
    st.global.f32 [%address], %sum;
    ret;
}
"""
SOLUTION = changed(
    START,
    ("setp.ge.u32 %p, %i, 32;            // there are 32 rows", "setp.ge.u32 %p, %i, %width;"),
    ("mad.lo.u32 %index, %i, %width, %k; // row i, column k", "mad.lo.u32 %index, %k, %width, %i; // row k, column i"),
    ("setp.lt.u32 %p, %k, %width;        // all columns", "setp.lt.u32 %p, %k, 32;            // all rows"),
)


def launch(random: np.random.Generator, width: int, block: int) -> Case:
    """A matrix of small whole numbers, whose sums are exact."""
    x = random.integers(-50, 50, (32, width)).astype(np.float32)
    rows = np.full(width, np.nan)
    rows[:32] = x.sum(axis=1)[:width]
    return Case(
        -(-width // block),
        block,
        {"x": x, "y": np.full(width, np.nan, np.float32), "width": np.uint32(width)},
        expected={"y": x.sum(axis=0, dtype=np.float64)},
        mistakes={
            "these are the sums of rows": {"y": rows},
            "these are single elements: the loop adds one row only": {"y": x[0]},
            "the last row is missing in the sums": {"y": x[:-1].sum(axis=0)},
            "the first row is missing in the sums": {"y": x[1:].sum(axis=0)},
        },
    )


EXERCISE = Exercise(
    "sums of columns",
    START,
    SOLUTION,
    Task("columns", launch, ({"width": 64, "block": 32}, {"width": 96, "block": 64}, {"width": 128, "block": 64})),
    hints=(
        "Three lines depend on what is a row and what is a column: the guard, the index, and the end of the loop.",
        "Element (row, column) is at row * width + column. The thread has the column now, and the loop counts rows.",
        "Guard: `%i` against `%width`. Index: `mad.lo.u32 %index, %k, %width, %i;`. End of the loop: `%k` against 32.",
    ),
    needs=(
        is_coalesced(
            "neighbours in a warp are to read neighbours in memory. In one iteration, which address does thread i + 1 "
            "read beside thread i?"
        ),
    ),
    advice={
        "out-of-bounds": "An index is beyond the matrix: k counts rows now, of which there are 32, and i is a column, "
        "below the width.",
        "wrong-values": "y[i] is x[0][i] + x[1][i] + ... + x[31][i].",
        "timeout": "The loop does not end: `%k` is compared with the number of rows, and grows by 1.",
    },
)
