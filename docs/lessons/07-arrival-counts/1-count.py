"""Lesson 7: a wrong arrival count."""

import numpy as np

from ptxlab.kernels.tcgen05_gemm import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
A product by tcgen05, as a step of the gallery's tcgen05_gemm does it: D = A times the transpose of B, in f16.
This is its PTX as Python has written it.

The kernel stops in the middle. One mbarrier expects a number of arrivals that never comes.
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
EXERCISE = Exercise(
    "a wrong arrival count",
    commented(WORDS, changed(TEXT, ("[emptied_2], 4;", "[emptied_2], 5;"))),
    commented(WORDS, TEXT),
    Task(
        "persistent",
        launch,
        (
            {"k": 72},
            {"k": 200},
        ),
    ),
    hints=(
        "The finding lists the mbarriers with the arrivals that each expects and has seen.",
        "`emptied_2` is completed by the four warps that have read the accumulators.",
        "`mbarrier.init.shared.b64 [emptied_2], 4;`",
    ),
    advice={
        "hang": "Count the threads that arrive, and compare with what the mbarrier expects.",
        "data-race": "With fewer arrivals than there are readers, a phase is complete too early.",
    },
)
