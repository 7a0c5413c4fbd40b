"""Lesson 5: a tensor map that is made too often."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
The kernel copies groups of four tiles with one tensor map, whose address it changes. It does so for each tile,
although the tiles of a group share the address. That costs 1 to 3 microseconds each time.

Change the map only where the next one differs.
"""
CODE = changed(
    code_on_page(__file__, "def run("),
    ('return ptxlab.parse(str(copy), "groups.ptx")["copy"]', "return copy"),
    ("import numpy as np\nimport ptxlab\n", ""),
)
LAST = "\n\ncopy = grouped(lambda tile: tile {} 0)\n"


def launch(random: np.random.Generator, groups: int) -> Case:
    """Rows of numbers, four of a group."""
    x = random.integers(0, 2**32, (4 * groups, 32), dtype=np.uint32)
    return Case(1, 32, {"x": x, "given": ptxlab.tensor_map(x[:4], box=(1, 32)), "made": np.zeros(32, np.uint32),
                "y": np.zeros_like(x), "groups": np.uint32(groups)}, expected={"y": x}, scratch=["made"])  # fmt: skip


EXERCISE = Exercise(
    "a map for each group",
    commented(WORDS, CODE + LAST.format(">="), "#"),
    commented(WORDS, CODE + LAST.format("=="), "#"),
    Task("copy", launch, ({"groups": 1}, {"groups": 3})),
    hints=(
        "`changes` gets the number of a tile in its group, and says whether the map is made anew for it.",
        "The first tile of a group has number 0.",
        "`copy = grouped(lambda tile: tile == 0)`",
    ),
    advice={
        "unchanged-tensor-map": "For which tiles of a group is the address another one than before?",
        "wrong-values": "Each group has its own address: is the map made for the first tile of each?",
        "uninitialized-read": "The map has to be made before the first copy.",
    },
    language="python",
)
