"""Lesson 14: which four warps."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
A product by tcgen05 with 128 rows; the warps in `epilogue` read its result from tensor memory. There are six
warps, and four of them read.

Half of the rows are missing. Which four warps have to read? The kernel is `product`, at the end.
"""
CODE = changed(code_on_page(__file__, "def run("), ("import numpy as np\n\nimport ptxlab\n", ""))
LAST = "\n\nproduct = multiply.specialize(rows=128, epilogue={}, zero={})\n"


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 16)).astype(np.float16) for rows in (128, 32))
    return Case(1, 192, {"a": a, "b": b, "c": np.zeros((128, 32), np.float32)},
                expected={"c": a.astype(np.float64) @ b.T.astype(np.float64)})  # fmt: skip


EXERCISE = Exercise(
    "not any four warps",
    commented(WORDS, CODE + LAST.format("(0, 1, 4, 5)", 0), "#"),
    commented(WORDS, CODE + LAST.format("(2, 3, 4, 5)", 0), "#"),
    Task("product", launch, ({}, {})),
    hints=(
        "A warp reaches the 32 lanes of its number modulo four.",
        "Warps 4 and 5 have the lanes of warps 0 and 1. Who has lanes 64 to 127?",
        "Any four with all four remainders: `epilogue=(0, 1, 2, 3)` or `(2, 3, 4, 5)`.",
    ),
    advice={
        "unread-accumulators": "Which warps reach the lanes that are named?",
        "out-of-bounds": "A warp reaches the lanes of its number modulo four, and no others.",
        "wrong-values": "Which rows are missing, and which warp reaches their lanes?",
    },
    language="python",
)
