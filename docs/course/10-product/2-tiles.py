"""Chapter 10: tiles that are copied, and not used yet."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page, reads_at_most

KERNEL = kernel_on_page(__file__)
WORDS = """
C = A B, by blocks of 16 by 16 threads. Each thread copies a number of A and one of B to shared memory, for each
tile of 16 by 16.

But the loop still multiplies from global memory: %from_a goes along the row of A, %from_b down the column of B.
Multiply from a_tile and b_tile instead, and synchronize. n is a multiple of 16.
"""
INSIDE = KERNEL[KERNEL.index("    bar.sync 0;") : KERNEL.index("    add.u64 %a, %a, 64;")]
GLOBAL = """\
    mov.u32 %i, 0;
$next:
    ld.global.f32 %f1, [%from_a];
    ld.global.f32 %f2, [%from_b];
    fma.rn.f32 %sum, %f1, %f2, %sum;
    add.u64 %from_a, %from_a, 4;
    mad.wide.u32 %from_b, %pitch, 1, %from_b;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 16;
    @%p bra $next;

"""
START = changed(
    KERNEL,
    (".reg .u64 %a, %b, %c;", ".reg .u64 %a, %b, %c, %from_a, %from_b;"),
    ("    mad.wide.u32 %a, %x, 4, %a;\n", "    mov.u64 %from_a, %a;\n    mad.wide.u32 %a, %x, 4, %a;\n"),
    ("    mad.wide.u32 %b, %y, %pitch, %b; ", "    mad.wide.u32 %from_b, %column, 4, %b;\n"
     "    mad.wide.u32 %b, %y, %pitch, %b; "),
    (INSIDE, GLOBAL),
)  # fmt: skip


def launch(random: np.random.Generator, n: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    right = a.astype(np.float64) @ b.astype(np.float64)
    tiles = b.reshape(n // 16, 16, n // 16, 16).transpose(0, 3, 2, 1).reshape(n, n).astype(np.float64)
    return Case((n // 16, n // 16), (16, 16), {"a": a, "b": b, "c": np.full((n, n), np.nan, np.float32),
                "n": np.uint32(n)}, expected={"c": right}, mistakes={"each tile of B was read by rows: "
                "column x of the "
                "tile is at b_tile + 4 x, and continues 64 bytes further": {
                "c": a.astype(np.float64) @ tiles}})  # fmt: skip


EXERCISE = Exercise(
    "multiply from shared memory",
    commented(WORDS, START),
    commented(WORDS, KERNEL),
    Task("product", launch, ({"n": 16}, {"n": 32}, {"n": 64})),
    hints=(
        "Row y of A's tile starts at a_tile + 64 y, column x of B's tile at b_tile + 4 x. Set both before "
        "the inner loop, "
        "since it moves them.",
        "In the loop: `ld.shared.f32 %f1, [%a_from];`, four bytes further each time; "
        "`ld.shared.f32 %f2, [%b_from];`, 64 "
        "bytes further.",
        "`bar.sync 0;` between the stores and the loop, and again after the loop, before the next tiles are stored.",
    ),
    needs=(reads_at_most(2 * 64 * 64 * 4 * 4, "each block needs each number of its tiles once"),),
    advice={
        "data-race": "Two barriers: one when both tiles are whole, one when all threads have read them.",
        "uninitialized-read": "A tile is read before it is whole: where is the barrier?",
        "barrier-divergence": "All threads of the block have to reach both barriers.",
        "out-of-bounds": "A tile has 16 rows of 64 bytes. Do the addresses start again for each tile?",
        "wrong-values": "Do `%a_from` and `%b_from` start at the first number of the tile again, for each tile?",
    },
)
