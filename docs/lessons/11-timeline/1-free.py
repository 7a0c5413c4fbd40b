"""Lesson 11: a consumer that frees its stage."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
One warp fills stages with rows of 32 numbers, another one reads them backwards. The kernel stops after as many
rows as there are stages: draw the timeline in your head, or open it with `ptxlab learn lab`. Which role waits
for which?
"""
CODE = changed(
    code_on_page(__file__, "def run("),
    ("spans=32)", "spans=0)  # with spans=32 it records"),
    ("*, stages: int)", "*, stages: int = 3)"),
    ("import numpy as np\n\nfrom ptxlab import draw\n", ""),
)
STORE = "tile[stage.index, 63 - thread]\n                stage.arrive()\n"


def launch(random: np.random.Generator, rows: int) -> Case:
    """Rows, and the same backwards."""
    x = random.standard_normal((rows, 32)).astype(np.float32)
    return Case(1, 64, {"x": x, "y": np.full((rows, 32), np.nan, np.float32), "rows": np.uint32(rows)},
                expected={"y": x[:, ::-1]})  # fmt: skip


EXERCISE = Exercise(
    "a stage that is not freed",
    commented(WORDS, changed(CODE, (STORE, "tile[stage.index, 63 - thread]\n")), "#"),
    commented(WORDS, CODE, "#"),
    Task("reverse_rows", launch, ({"rows": 2}, {"rows": 9})),
    hints=(
        "The producer waits for an empty stage. Who says that one is empty?",
        "`reads=32`: all 32 threads of the consumer have to arrive after they have read a stage.",
        "`stage.arrive()` after `y[...] = tile[...]` in the consumer.",
    ),
    advice={"hang": "One of the two roles waits for arrivals that the other one owes it.",
            "data-race": "A stage may be freed only after it was read."},
    language="python",
)  # fmt: skip
