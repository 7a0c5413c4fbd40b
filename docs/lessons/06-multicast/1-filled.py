"""Lesson 6: the count of a full mbarrier."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
Two blocks of a cluster get all tiles: each copies its half of a tile to both, by multicast. The kernel stops:
the mbarriers that say that a stage is full expect a number of arrivals that never comes. What does a copy bring
to them, and what a thread?
"""
CODE = changed(
    code_on_page(__file__, "def run("),
    ('    return ptxlab.parse(str(multicast), "multicast.ptx")["multicast"]', "    return multicast"),
    ("import numpy as np\nimport ptxlab\n", ""),
)
LAST = "\n\nmulticast = share(fills={}, readers={})\n"


def launch(random: np.random.Generator) -> Case:
    """Six tiles of four rows, for both blocks."""
    x = random.integers(0, 2**32, (24, 32), dtype=np.uint32)
    return Case(2, 64, {"map": ptxlab.tensor_map(x, box=(2, 32)), "y": np.zeros((2, 24, 32), np.uint32)},
                expected={"y": np.stack([x, x])}, cluster=2)  # fmt: skip


EXERCISE = Exercise(
    "who arrives at a full stage",
    commented(WORDS, CODE + LAST.format(2, 2), "#"),
    commented(WORDS, CODE + LAST.format(1, 2), "#"),
    Task("multicast", launch, ({}, {})),
    hints=(
        "A copy completes bytes at an mbarrier. It never arrives.",
        "In each block one thread arrives at its own full mbarrier, by `mbarrier.arrive.expect_tx`.",
        "`multicast = share(fills=1, readers=2)`; `share(fills=2, everywhere=True, readers=2)` is right, too.",
    ),
    advice={
        "hang": "The finding lists how many arrivals each mbarrier expects, and who has arrived.",
        "data-race": "The count of readers was right: a copy overwrites a stage in both blocks.",
    },
    language="python",
)
