"""Chapter 10: the naive kernel, coalesced."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, commented, is_coalesced, names_on_page

PAGE = names_on_page(__file__)
WORDS = """
C = A B, a thread for each element of C, in blocks of 32 by 4 threads. The result is right. But the 32 lanes of
a warp, which differ in %tid.x, have 32 rows of A and of C.

Give neighbouring lanes neighbouring columns. n is a multiple of 32, and the grid has n / 32 by n / 4 blocks.
"""


def launch(random: np.random.Generator, n: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    right = a.astype(np.float64) @ b.astype(np.float64)
    return Case((n // 32, n // 4), (32, 4), {"a": a, "b": b, "c": np.full((n, n), np.nan, np.float32),
                "n": np.uint32(n)}, expected={"c": right}, mistakes={"this is C transposed: row and column are "
                "exchanged "
                "where C is stored, or where A and B are read": {"c": right.T},
                "this is the product of B and A": {"c": b.astype(np.float64) @ a}})  # fmt: skip


EXERCISE = Exercise(
    "neighbours beside each other",
    commented(WORDS, PAGE["NAIVE"]),
    commented(WORDS, PAGE["COALESCED"]),
    Task("product", launch, ({"n": 32}, {"n": 64})),
    hints=(
        "Which of `%row` and `%column` is made of `%tid.x`? "
        "Exchange what they are made of, not what they are used for.",
        "`%column` is `%ctaid.x * 32 + %tid.x`, `%row` is `%ctaid.y * 4 + %tid.y`.",
        "Four lines: `mov.u32 %column, %ctaid.x; mov.u32 %row, %ctaid.y; mad.lo.u32 %column, %column, 32, %x; "
        "mad.lo.u32 %row, %row, 4, %y;`",
    ),
    needs=(is_coalesced("lanes of a warp should read and write numbers beside each other, or the same one"),),
    advice={
        "out-of-bounds": "A block has 32 threads along x and 4 along y: which of them goes with 32, which with 4?",
        "data-race": "Two threads have the same element: does `%ctaid.x` go with 32, and `%ctaid.y` with 4?",
        "wrong-values": "Each pair of row and column is of one thread: 32 columns and 4 rows a block.",
    },
)
