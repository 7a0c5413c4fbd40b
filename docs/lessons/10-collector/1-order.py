"""Lesson 10: the collector buffer is used for another A."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
Two products with one A: two MMAs for each 16 columns of A. The first of them is to leave A in the collector
buffer, the second to take it from there. `uses` has the modifiers of the two.

The emulator's result is right, and a GPU's may be: but the buffer has the A of the step before.
"""
CODE = changed(
    code_on_page(__file__, "a, b ="),
    ('uses: tuple = ("discard", "discard")', 'uses: tuple = ("fill", "lastuse")'),
    ("import numpy as np\n\nimport ptxlab\n", ""),
)


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (128, 32))
    return Case(1, 128, {"a": a, "b": b, "c": np.zeros((128, 32), np.float32)},
                expected={"c": a.astype(np.float64) @ b.T.astype(np.float64)})  # fmt: skip


EXERCISE = Exercise(
    "the modifiers in their order",
    commented(WORDS, changed(CODE, ('("fill", "lastuse")', '("lastuse", "fill")')), "#"),
    commented(WORDS, CODE, "#"),
    Task("dual", launch, ({}, {})),
    hints=(
        "`fill` reads A from memory and keeps it; `use` and `lastuse` take what was kept.",
        "The first MMA of each two has to keep A, the second one may use it.",
        '`uses: tuple = ("fill", "lastuse")`; `("discard", "discard")` is right as well, and keeps nothing.',
    ),
    advice={"bad-collector": "Which A was in the buffer when it was used: that of this step, or of the one before?"},
    language="python",
)
