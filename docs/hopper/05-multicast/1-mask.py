"""Multicast: the mask."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
One block of a cluster of two starts a copy that both get. Here the second block waits for ever. Mend it.
"""


def launch(random: np.random.Generator) -> Case:
    """One tile for two blocks."""
    x = random.standard_normal((32, 32)).astype(np.float32)
    y = np.full((2, 32, 32), np.nan, np.float32)
    return Case(2, 1024, {"source": ptxlab.tensor_map(x, box=(32, 32)), "y": y}, expected={"y": np.stack([x, x])})


EXERCISE = Exercise(
    "the mask of a multicast",
    commented(WORDS, changed(KERNEL, ("%both, 3", "%both, 1"))),
    commented(WORDS, KERNEL),
    Task("share", launch, ({}, {})),
    hints=(
        "Both blocks expect the bytes at their own mbarrier. Which blocks does the copy write to?",
        "The mask has a bit for each block of the cluster, by its rank.",
        "Ranks 0 and 1 are bits 0 and 1: the mask is 3.",
    ),
    advice={
        "hang": "No bytes came to one of the mbarriers. To which blocks does the copy bring them?",
        "data-race": "Each block waits for its own copy before it reads.",
    },
)
