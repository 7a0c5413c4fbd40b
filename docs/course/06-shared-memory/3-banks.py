"""Chapter 6: bank conflicts."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, has_no_bank_conflicts, is_coalesced

START = """\
// y is the transpose of x, 32 by 32 numbers, by one block of 32 by 32 threads. Both are accessed row by
// row: a warp reads a row of x, writes it to shared memory, and after the barrier reads a column there,
// which is a row of y.
//
// It is right, and slow: shared memory has 32 banks of 4 bytes, and the 32 numbers of a column are all
// in the same bank, because a row has 32 * 4 bytes. The warp gets them one after the other.
//
// Change where the numbers are in shared memory, so that neither the store nor the load has conflicts.

.version 8.0
.target sm_80
.address_size 64

.visible .entry transpose(.param .u64 x, .param .u64 y)
{
    .shared .align 16 .b8 tile[4096];  // 32 rows of 128 bytes
    .reg .u32 %row, %column, %place, %tile, %index;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value;

    mov.u32 %column, %tid.x;
    mov.u32 %row, %tid.y;
    mov.u32 %tile, tile;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mad.lo.u32 %index, %row, 32, %column;
    mul.wide.u32 %offset, %index, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;

    ld.global.f32 %value, [%x];
    mad.lo.u32 %place, %row, 128, %tile;
    mad.lo.u32 %place, %column, 4, %place;
    st.shared.f32 [%place], %value;    // tile[row][column]
    bar.sync 0;
    mad.lo.u32 %place, %column, 128, %tile;
    mad.lo.u32 %place, %row, 4, %place;
    ld.shared.f32 %value, [%place];    // tile[column][row]
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(
    START,
    ("tile[4096];  // 32 rows of 128 bytes", "tile[4224];  // 32 rows of 132 bytes"),
    ("%row, 128, %tile", "%row, 132, %tile"),
    ("%column, 128, %tile", "%column, 132, %tile"),
)


def launch(random: np.random.Generator) -> Case:
    """One tile."""
    x = random.standard_normal((32, 32)).astype(np.float32)
    return Case(
        1,
        (32, 32),
        {"x": x, "y": np.full((32, 32), np.nan, np.float32)},
        expected={"y": x.T.copy()},
        mistakes={"y is x, not transposed: each thread reads what it wrote": {"y": x.copy()}},
    )


EXERCISE = Exercise(
    "a transpose without bank conflicts",
    START,
    SOLUTION,
    Task("transpose", launch, ({}, {})),
    hints=(
        "The bank of an address is (address / 4) % 32. In a column, the addresses differ by the length of a row: 128 "
        "bytes, which is 0 banks further.",
        "If a row had one number more, 132 bytes, the next row would begin one bank further, and a column would be in "
        "32 different banks.",
        "Write 132 for 128 in both addresses, and 32 * 132 = 4224 bytes for the tile. (Another way is to exclusive-or "
        "the column with the row.)",
    ),
    needs=(
        has_no_bank_conflicts(
            "the lanes of a warp are to be in different banks, when they store a row and when they load a column. In "
            "which bank is tile[k][0], for k = 0, 1, 2?"
        ),
        is_coalesced("global memory is to be read and written row by row, as it was"),
    ),
    advice={
        "out-of-bounds": "The tile is larger now: 32 rows, each with the bytes that you add.",
        "data-race": "The barrier between storing and loading must stay; and two numbers must not have the same place.",
        "misaligned-access": "A number is at a multiple of 4 bytes: what is added to a row is a multiple of 4, too.",
        "uninitialized-read": "A place is read that was not written: store and load have to use the same layout.",
        "wrong-values": "Store and load have to use the same layout: the place of (row, column) where it is stored is "
        "the one where it is looked for.",
    },
)
