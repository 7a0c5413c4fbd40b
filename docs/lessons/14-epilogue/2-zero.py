"""Lesson 14: from which warp lanes are counted."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, commented

OTHER = run_path(str(Path(__file__).with_name("1-four.py")))
WORDS = """
A product by tcgen05 with 128 rows, in a block of six warps. Warps 2 to 5 read the result from tensor memory;
the first two have other things to do. The kernel counts lanes from the first warp of the epilogue, and stops
with an error.

From which warp does the hardware count? The kernel is `product`, at the end, and `zero` the warp that has lane
0.
"""

EXERCISE = Exercise(
    "from which warp lanes count",
    commented(WORDS, OTHER["CODE"] + OTHER["LAST"].format("(2, 3, 4, 5)", 2), "#"),
    commented(WORDS, OTHER["CODE"] + OTHER["LAST"].format("(2, 3, 4, 5)", 0), "#"),
    Task("product", OTHER["launch"], ({}, {})),
    hints=(
        "The lanes of a warp follow from its number in the block, not from its role.",
        "Warp 2 has lanes 64 to 95, warp 4 has lanes 0 to 31.",
        "`zero=0`",
    ),
    advice={
        "out-of-bounds": "The finding says which lanes the warp reaches, and which it asked for.",
        "unread-accumulators": "All four remainders modulo four have to be among the warps that read.",
    },
    language="python",
)
