"""Warp specialization: how many arrive."""

import numpy as np

from ptxlab.kernels.wgmma_steps import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
D = A times the transpose of B, in f16, by wgmma, as the step of the page does it. This is its PTX as Python
has written it.

Two warpgroups, eight warps, read each stage, and lane 0 of each warp arrives at `emptied`. A number at the
start does not go with that.
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (128, 16))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "specialized", Shape(128, 16, stages=2, groups=2)), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 64)[0])
EXERCISE = Exercise(
    "how many arrive",
    commented(WORDS, changed(TEXT, ("], 8;", "], 4;"))),
    commented(WORDS, TEXT),
    Task("specialized", launch, ({"k": 128}, {"k": 320})),
    hints=(
        "The count of an mbarrier says how many arrivals complete a phase.",
        "Eight warps arrive for each stage. How many does the `mbarrier.init` of `emptied` expect?",
        "`mbarrier.init.shared.b64 [emptied], 8;`, for each stage.",
    ),
    advice={
        "hang": "Follow the phases of `emptied` in the note: who completed phase 0, and who phase 1?",
        "data-race": "A stage is filled again when the mbarrier says that it is empty: after how many arrivals does "
        "it?",
    },
)
