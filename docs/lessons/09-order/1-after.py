"""Lesson 9: a fence after the wait."""

import numpy as np

from ptxlab.kernels.tcgen05_gemm import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
A product by tcgen05, as a step of the gallery's tcgen05_gemm does it: D = A times the transpose of B, in f16.
This is its PTX as Python has written it.

The epilogue waits until the MMAs are committed, by an mbarrier, and loads the accumulators by tcgen05.ld.
Between the wait and the loads belongs a fence: the wait orders threads, and not what tcgen05 does after it.
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (256, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "persistent", Shape(columns=64, stages=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 72)[0])
FENCE = "tcgen05.fence::after_thread_sync;"
EXERCISE = Exercise(
    "a fence after the wait",
    commented(WORDS, changed(TEXT, (FENCE, "FIRST"), (FENCE, ""), ("FIRST", FENCE))),
    commented(WORDS, TEXT),
    Task("persistent", launch, ({"k": 72},)),
    hints=(
        "The finding names the MMA and the load. Which wait is between them?",
        "`tcgen05.fence::after_thread_sync;` orders later tcgen05 instructions of a thread after what it has waited "
        "for.",
        "It belongs after the wait for `filled_2` in the epilogue, before the first `tcgen05.ld`.",
    ),
    advice={
        "missing-tensor-fence": "The wait is there; what follows it is a tcgen05 instruction, and needs the fence.",
    },
)
