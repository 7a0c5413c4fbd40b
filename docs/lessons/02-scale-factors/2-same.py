"""Lesson 2: the same scale factors everywhere."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, changed, commented

OTHER = run_path(str(Path(__file__).with_name("1-copies.py")))
WORDS = """
A product of NVFP4 numbers with scale factors, as on the page. All four warps store the scale factors of A to
tensor memory, four columns each: but each starts with those of the rows whose results are in its own lanes.

The MMA finds the factors of rows 0, 32, 64 and 96 from a lane's number on in columns 0, 1, 2 and 3, in every
sub-partition.
"""

EXERCISE = Exercise(
    "the same in each sub-partition",
    commented(WORDS, changed(OTHER["CODE"], ("[part * 32 + lane", "[(warp + part) % 4 * 32 + lane")), "#"),
    commented(WORDS, OTHER["CODE"], "#"),
    Task("scaled", OTHER["launch"], ({}, {})),
    hints=(
        "The layout of scale factors does not depend on which rows of D a warp reads.",
        "Column `part` of a lane has the factors of row 32 part + lane.",
        "`rows = [part * 32 + lane for part in range(4)]`",
    ),
    advice={
        "unequal-scale-factors": "The note shows two lanes that should be equal, and are not.",
        "uninitialized-read": "All four warps have to store.",
        "wrong-values": "Whose factors are in column 1 of lane 0?",
    },
    language="python",
)
