"""One wgmma: the wait for MMAs."""

import numpy as np

from ptxlab.kernels.wgmma_steps import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
D = A times the transpose of B, in f16, by wgmma, as the step of the page does it. This is its PTX as Python has
written it.

MMAs run asynchronously. Here the next copy overwrites what they still read, and accumulators are stored before
they have their values. One instruction is missing.
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (64, 16))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "one_tile", Shape(64, 16, stages=1)), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 64)[0])
EXERCISE = Exercise(
    "the wait for MMAs",
    commented(WORDS, changed(TEXT, ("    wgmma.wait_group.sync.aligned 0;\n", ""))),
    commented(WORDS, TEXT),
    Task("one_tile", launch, ({"k": 128}, {"k": 320})),
    hints=(
        "`wgmma.commit_group` closes a group of MMAs. Who waits for it?",
        "`wgmma.wait_group.sync.aligned N;` waits until at most N groups are in flight.",
        "`wgmma.wait_group.sync.aligned 0;` after the `wgmma.commit_group` of the loop.",
    ),
    advice={
        "data-race": "The copy of the next K tile writes shared memory that MMAs in flight read: wait for their "
        "group first.",
        "touched-accumulator": "Accumulators belong to the MMAs until `wgmma.wait_group`: it belongs after "
        "`wgmma.commit_group`, before they are used.",
        "missing-wgmma-commit": "`wgmma.commit_group` must stay, before the wait.",
    },
)
