"""Lesson 4: what threads store and TMA reads."""

import numpy as np

from ptxlab.kernels.tcgen05_gemm import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
A product by tcgen05, as a step of the gallery's tcgen05_gemm does it: D = A times the transpose of B, in f16.
This is its PTX as Python has written it.

The result is right here, and may be wrong on a GPU now and then. The epilogue writes a tile to shared memory,
and a TMA copy stores it. What is missing between the two?
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (256, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "specialized", Shape(columns=64, stages=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 72)[0])
EXERCISE = Exercise(
    "what threads store and TMA reads",
    commented(WORDS, changed(TEXT, ("    fence.proxy.async.shared::cta;\n", ""))),
    commented(WORDS, TEXT),
    Task("specialized", launch, ({"k": 72},)),
    hints=(
        "Threads write through the generic proxy, the copy reads through the async proxy.",
        "A fence between the proxies belongs after the stores, before the barrier, in every thread that stored; or "
        "after the barrier, in the thread that copies.",
        "`fence.proxy.async.shared::cta;`",
    ),
    advice={
        "missing-proxy-fence": "The finding names the stores and the copy: the fence belongs between them, on the "
        "path from one to the other.",
    },
)
