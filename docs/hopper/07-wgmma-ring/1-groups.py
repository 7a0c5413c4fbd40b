"""A ring for wgmma: groups in flight."""

import numpy as np

from ptxlab.kernels.wgmma_steps import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
D = A times the transpose of B, in f16, by wgmma, as the step of the page does it. This is its PTX as Python
has written it.

A copy is started ahead into the stage whose MMAs were issued one step before. The kernel does not wait long
enough for that: find the number that is wrong.
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (64, 16))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "ring", Shape(64, 16, stages=3)), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 64)[0])
EXERCISE = Exercise(
    "groups in flight",
    commented(WORDS, changed(TEXT, ("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"))),
    commented(WORDS, TEXT),
    Task("ring", launch, ({"k": 192}, {"k": 448})),
    hints=(
        "The finding names a copy and an MMA. Which K tile does that MMA belong to?",
        "The stage that is filled next was read by the MMAs of the step before, so these have to be complete; those "
        "of this step may be in flight.",
        "`wgmma.wait_group.sync.aligned 1;`",
    ),
    advice={
        "data-race": "How many groups may be in flight when the stage of the step before is filled again?",
    },
)
