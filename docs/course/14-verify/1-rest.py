"""Chapter 14: the rest of the last block is not written."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, names_on_page

PAGE = names_on_page(__file__)
WORDS = """
y[i] = x[i] / 2 for all i below n. The kernel is right where n is a multiple of 64, which is the only size that its
author has tried.

Have it right for every n.
"""


def launch(random: np.random.Generator, n: int) -> Case:
    """Whole numbers, whose halves are exact."""
    x = random.integers(-9, 10, n).astype(np.float32)
    return Case(-(-n // 64), 64, {"x": x, "y": np.full(n, np.nan, np.float32), "n": np.uint32(n)},
                expected={"y": x / 2})  # fmt: skip


EXERCISE = Exercise(
    "the rest of the last block",
    commented(WORDS, changed(PAGE["KERNEL"], ("    setp.ge", "    and.b32 %n, %n, 0xffffffc0;\n    setp.ge"))),
    commented(WORDS, PAGE["KERNEL"]),
    Task("halve", launch, ({"n": 64}, {"n": 100}, {"n": 1}, {"n": 300})),
    hints=(
        "Which elements are not written? Which instruction decides which threads leave?",
        "`and.b32 %n, %n, 0xffffffc0` makes a multiple of 64 of n.",
        "Leave that line out: the guard compares `%i` with n itself.",
    ),
    advice={
        "out-of-bounds": "Threads from n on have no element: they need the guard.",
        "wrong-values": "All elements below n are to be written, those of a block that is not full, too.",
    },
)
