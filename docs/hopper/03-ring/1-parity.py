"""A ring: the parity of the consumers."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
A producer fills the three stages of a ring with rows, 128 consumers add them. In the second turn through the
ring the consumers read stages that are not filled yet. Why do their waits end at once?
"""


def launch(random: np.random.Generator, rows: int) -> Case:
    """More rows than the ring has stages, and fewer."""
    x = random.integers(-8, 9, (rows, 128)).astype(np.float32)
    y = np.zeros(128, np.float32)
    return Case(1, 160, {"x": x, "y": y, "n": np.uint32(rows)}, expected={"y": x.sum(0)})


EXERCISE = Exercise(
    "the parity of the consumers",
    commented(WORDS, changed(KERNEL, ("    @%last xor.b32 %parity, %parity, 1;\n", ""))),
    commented(WORDS, KERNEL),
    Task("sums", launch, ({"rows": 7}, {"rows": 2}, {"rows": 12})),
    hints=(
        "A wait for parity 0 ends when phase 0 is complete, and it is still over in phase 1.",
        "The consumers wait for phase 0 of each stage in the first turn, for phase 1 in the second, for phase 2 in "
        "the third: parities 0, 1, 0.",
        "Where the stage goes back to the first, the parity flips: `@%last xor.b32 %parity, %parity, 1;`",
    ),
    advice={
        "data-race": "Which phase is the wait of the second turn for, and which one is complete already?",
        "hang": "Which parity do the two sides wait for, and which phases are complete? The note lists them.",
    },
)
