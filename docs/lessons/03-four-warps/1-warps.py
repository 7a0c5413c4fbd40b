"""Lesson 3: rows that no warp reads."""

import numpy as np

from ptxlab.kernels.tcgen05_gemm import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
A product by tcgen05, as a step of the gallery's tcgen05_gemm does it: D = A times the transpose of B, in f16.
This is its PTX as Python has written it.

Half of the rows of D are missing: some warps skip the epilogue. Which warps reach which lanes of tensor
memory, and which ones have to read?
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (256, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "one_tile", Shape(columns=64, stages=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 72)[0])
EXERCISE = Exercise(
    "rows that no warp reads",
    commented(
        WORDS,
        changed(
            TEXT,
            ("$loop_8:", "    setp.ge.u32 %p8, %r6, 2;\n    @%p8 bra skipped;\n$loop_8:"),
            ("    tcgen05.wait::ld", "skipped:\n    tcgen05.wait::ld"),
        ),
    ),
    commented(WORDS, TEXT),
    Task(
        "one_tile",
        launch,
        (
            {"k": 72},
            {"k": 200},
        ),
    ),
    hints=(
        "A warp reads the 32 lanes of its number modulo four. The accumulators have 128 lanes.",
        "Two lines in front of the loop send warps 2 and 3 past it.",
        "Remove `setp.ge.u32 %p8, %r6, 2;` and the branch after it.",
    ),
    advice={
        "unread-accumulators": "Lanes that are named were written and never read. Which warp reaches them, and what "
        "does it do instead?",
        "wrong-values": "Which rows are missing, and which warp reads them?",
    },
)
