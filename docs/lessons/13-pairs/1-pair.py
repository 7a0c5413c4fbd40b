"""Lesson 13: the first block of a pair."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
A cluster of four blocks, two pairs: each pair multiplies half of K by `cta_group::2`, and the second one adds
its result to the first one's through distributed shared memory. The copies of both blocks of a pair complete at
an mbarrier of its first block.

The kernel was written for clusters of two, where the first block is block 0.
"""
CODE = changed(
    code_on_page(__file__, "def run("),
    ("import numpy as np\n\n", ""),
    ("by: str, fixed: tuple = ()", 'by: str = "K"'),
    ("; `fixed` names what is that of blocks 0 and 1 in every pair.", "."),
    ('u32(0) if "first" in fixed else rank & 2', "rank & 2"),
    ('u32(3) if "both" in fixed else u32(3) << (rank & 2)', "u32(3) << (rank & 2)"),
)


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 128)).astype(np.float16) for rows in (256, 64))
    maps = [ptxlab.tensor_map(one, box=(rows, 64), swizzle="128B") for one, rows in ((a, 128), (b, 32))]
    right, halves = (a.astype(np.float64) @ b.T, a[:, :64].astype(np.float64) @ b[:, :64].T)
    return Case(4, 128, {"a": maps[0], "b": maps[1], "c": np.zeros((256, 64), np.float32)}, expected={"c": right},
                cluster=4, mistakes={"only the first half of K is in the result": {"c": halves}})  # fmt: skip


EXERCISE = Exercise(
    "the first block of a pair",
    commented(WORDS, changed(CODE, ("first = rank & 2\n", "first = u32(0)\n")), "#"),
    commented(WORDS, CODE, "#"),
    Task("split", launch, ({}, {})),
    hints=(
        "Pairs are blocks 0 and 1, and blocks 2 and 3: two whose ranks differ in the last bit.",
        "The first block of a pair is the rank without its last bit.",
        "`first = rank & 2` (or `rank & 6`, for clusters of up to eight).",
    ),
    advice={
        "bad-barrier": "In which block are the bytes, and in which one the mbarrier?",
        "hang": "Whose bytes complete at the mbarrier that is waited for?",
    },
    language="python",
)
