"""Chapter 13: the rest of a loop that takes two elements at once."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, names_on_page

PAGE = names_on_page(__file__)
WORDS = """
Each thread sums a row of n elements, two at once. With an odd n the last pair has an element of the next row, or
none at all.

Have it right for every n from 1 on. The page of this chapter has the version that takes one element at once; save
it as rows.ptx, and compare:

    ptxlab equal rows.ptx tail.ptx --block 4 --arg f32[4,5] --arg f32[4] --arg u32=5
"""
MENDED = changed(
    PAGE["PAIRS"],
    ("$next:\n", "$next:\n    add.u32 %k, %k, 1;\n"),
    ("    ld.global.f32 %value, [%x+4];\n", "    setp.ge.u32 %p, %k, %n;\n    @%p bra $done;\n"
     "    ld.global.f32 %value, [%x+4];\n"),
    ("    add.u32 %k, %k, 2;\n", "    add.u32 %k, %k, 1;\n"),
    ("    add.f32 %sum, %sum, %other;\n", "$done:\n    add.f32 %sum, %sum, %other;\n"),
)  # fmt: skip


def launch(random: np.random.Generator, rows: int, n: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    x = random.integers(-9, 10, (rows, n)).astype(np.float32)
    first = x[:, : n // 2 * 2].sum(1)
    return Case(
        1, rows, {"x": x, "y": np.full(rows, np.nan, np.float32), "n": np.uint32(n)}, expected={"y": x.sum(1)},
        mistakes={"the last element of each row is missing": {"y": first}} if n % 2 else {},
    )  # fmt: skip


EXERCISE = Exercise(
    "the rest of a row",
    commented(WORDS, PAGE["PAIRS"]),
    commented(WORDS, MENDED),
    Task("rows", launch, ({"rows": 4, "n": 6}, {"rows": 4, "n": 5}, {"rows": 3, "n": 1}, {"rows": 32, "n": 33})),
    hints=(
        "What must hold for `[%x+4]` to be an element of the row? `%k` is the index of the first element of the pair.",
        "Between the two loads, compare `%k + 1` with `%n`, and leave the loop if the row ends there.",
        "`add.u32 %k, %k, 1; setp.ge.u32 %p, %k, %n; @%p bra $done;` before the second load, with `$done:` before the "
        "sums are added; the loop then adds 1 to `%k`, not 2.",
    ),
    advice={
        "out-of-bounds": "The second load of the last pair is beyond the row: of an odd n, it has one element.",
        "wrong-values": "`ptxlab equal` names the terms that are missing or too many.",
    },
)
