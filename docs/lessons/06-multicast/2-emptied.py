"""Lesson 6: the count of an empty mbarrier."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, commented

OTHER = run_path(str(Path(__file__).with_name("1-filled.py")))
WORDS = """
Two blocks of a cluster get all tiles: each copies its half of a tile to both, by multicast. The numbers come
out right, on the emulator and often on an H200. It is a race all the same: a copy overwrites a stage in both
blocks, and the thread that starts it has waited for the readers of one.
"""

EXERCISE = Exercise(
    "who frees a stage",
    commented(WORDS, OTHER["CODE"] + OTHER["LAST"].format(1, 1), "#"),
    commented(WORDS, OTHER["CODE"] + OTHER["LAST"].format(1, 2), "#"),
    Task("multicast", OTHER["launch"], ({}, {})),
    hints=(
        "Which blocks read the stage that a multicast copy writes?",
        "The readers of each of them have to arrive at the mbarrier that the copying thread waits for.",
        "`multicast = share(fills=1, readers=2)`",
    ),
    advice={
        "data-race": "The finding names a copy of one block and a read of the other: nothing orders them.",
        "hang": "Do as many arrive as the mbarrier expects?",
    },
    language="python",
)
