"""A ring: the first wait of the producer."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
A producer fills the three stages of a ring with rows, 128 consumers add them. Here no thread makes progress:
the producer waits until the stages are empty, and the consumers until they are filled. All stages are empty
at the start.
"""


def launch(random: np.random.Generator, rows: int) -> Case:
    """More rows than the ring has stages, and fewer."""
    x = random.integers(-8, 9, (rows, 128)).astype(np.float32)
    y = np.zeros(128, np.float32)
    return Case(1, 160, {"x": x, "y": y, "n": np.uint32(rows)}, expected={"y": x.sum(0)})


EXERCISE = Exercise(
    "the first wait of the producer",
    commented(WORDS, changed(KERNEL, ("mov.u32 %parity, 1; ", "mov.u32 %parity, 0; "))),
    commented(WORDS, KERNEL),
    Task("sums", launch, ({"rows": 7}, {"rows": 2}, {"rows": 12})),
    hints=(
        "No thread has emptied a stage at the start, so phase 0 of the mbarriers for empty is not complete.",
        "The phase before phase 0 counts as complete. Its parity is 1.",
        "The producer starts with `mov.u32 %parity, 1;`",
    ),
    advice={
        "hang": "Each side waits for the other. One of the two first waits has to be over at once.",
        "data-race": "The consumers have to wait for parity 0 first.",
    },
)
