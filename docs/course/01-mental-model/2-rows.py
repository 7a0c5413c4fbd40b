"""Chapter 1: blocks of two dimensions."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// Grids and blocks can have two dimensions. Here a thread is at a row and a column of a matrix:
//
//     column = %ctaid.x * %ntid.x + %tid.x
//     row    = %ctaid.y * %ntid.y + %tid.y
//
// It is to write 1000 * row + column to y[row][column]. The rows of y are one after the other in
// memory, and each has as many elements as the grid has columns: %nctaid.x * %ntid.x.
//
// %column is there. Compute %row and %index.

.version 8.0
.target sm_80
.address_size 64

.visible .entry rows(.param .u64 y)
{
    .reg .u32 %column, %row, %width, %index, %value, %a, %b, %c;
    .reg .u64 %address, %y;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %c, %tid.x;
    mad.lo.u32 %column, %a, %b, %c;
    mov.u32 %a, %nctaid.x;
    mul.lo.u32 %width, %a, %b;     // columns of the grid

    mov.u32 %row, 0;               // <- the row
    mov.u32 %index, %column;       // <- row * width + column

    mad.lo.u32 %value, %row, 1000, %column;
    ld.param.u64 %y, [y];
    mul.wide.u32 %address, %index, 4;
    add.u64 %address, %address, %y;
    st.global.u32 [%address], %value;
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    mov.u32 %row, 0;               // <- the row\n",
        "    mov.u32 %a, %ctaid.y;\n    mov.u32 %b, %ntid.y;\n    mov.u32 %c, %tid.y;\n"
        "    mad.lo.u32 %row, %a, %b, %c;\n",
    ),
    (
        "mov.u32 %index, %column;       // <- row * width + column",
        "mad.lo.u32 %index, %row, %width, %column;",
    ),
)


def launch(random: np.random.Generator, grid: tuple[int, int], block: tuple[int, int]) -> Case:
    """A matrix with an element for each thread."""
    columns, rows = grid[0] * block[0], grid[1] * block[1]
    row, column = np.indices((rows, columns), dtype=np.uint32)
    return Case(
        grid,
        block,
        {"y": np.full((rows, columns), 0xFFFFFFFF, np.uint32)},
        expected={"y": 1000 * row + column},
        mistakes={
            "the matrix is transposed: the row comes from `.y` and the column from `.x`": {"y": 1000 * column + row},
            "each row is where it belongs, but its number is missing: `%row` is still 0 where the value is computed": {
                "y": column
            },
            "`%row` is the row in the block: add the rows of the blocks above, `%ctaid.y * %ntid.y`": {
                "y": 1000 * (row % block[1]) + column
            },
        },
    )


EXERCISE = Exercise(
    "rows and columns",
    START,
    SOLUTION,
    Task(
        "rows",
        launch,
        ({"grid": (1, 1), "block": (8, 4)}, {"grid": (2, 3), "block": (16, 4)}, {"grid": (3, 2), "block": (8, 5)}),
    ),
    hints=(
        "The row is computed as the column is, three lines above, with `.y` in place of `.x`. `%a`, `%b` and `%c` are "
        "free again.",
        "In C the index would be `row * width + column`. One instruction multiplies and adds.",
        "`mad.lo.u32 %row, %a, %b, %c;` after three `mov` of `%ctaid.y`, `%ntid.y` and `%tid.y`; then "
        "`mad.lo.u32 %index, %row, %width, %column;`.",
    ),
    advice={
        "wrong-values": "Thread (column, row) writes `y[row][column]`, which is element `row * width + column` of "
        "the memory of y.",
        "data-race": "Two threads write the same element, so two threads have the same `%index`. Threads of one column "
        "differ in their row: does `%index` depend on it? Is the width the one of the whole grid?",
        "out-of-bounds": "`%index` is beyond the matrix. It is `row * width + column`, with the width of the whole "
        "grid, in elements and not in bytes.",
    },
)
