"""A persistent kernel: a buffer that is still read."""

import numpy as np

from ptxlab.kernels.wgmma_steps import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
D = A times the transpose of B, in f16, by wgmma, as the step of the page does it. This is its PTX as Python
has written it.

The block computes one tile after the other, and a TMA copy stores each from shared memory. What ensures that
the copy has read a tile before the next one is written over it?
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (128, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "persistent", Shape(128, 64, stages=2, groups=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 64)[0])
EXERCISE = Exercise(
    "a buffer that is still read",
    commented(WORDS, changed(TEXT, ("cp.async.bulk.wait_group.read 0;", "mov.u32 %r1, %r1;"))),
    commented(WORDS, TEXT),
    Task("persistent", launch, ({"k": 64}, {"k": 192})),
    hints=(
        "Only the thread that started the copies can wait for them.",
        "`cp.async.bulk.wait_group.read 0;` waits until the copies have read their source; they need not have "
        "written yet.",
        "It belongs in front of the barrier before the tile is written to shared memory, in the thread that starts "
        "the copies.",
    ),
    advice={
        "data-race": "A thread writes what a copy of the tile before still reads. Which thread can wait for that "
        "copy, and how do the others learn of it?",
        "missing-proxy-fence": "The fence between the stores and the copy must stay.",
    },
)
