"""Lesson 13: the mask of a commit."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, changed, commented

OTHER = run_path(str(Path(__file__).with_name("1-pair.py")))
WORDS = """
A cluster of four blocks, two pairs, as in the exercise before. When the MMAs of a pair are complete,
`tcgen05.commit` arrives at `done` in both of its blocks: its mask has a bit for each block of the cluster.

Two blocks wait for ever. Which bits does the mask have, and which should it have?
"""

EXERCISE = Exercise(
    "the mask of a commit",
    commented(WORDS, changed(OTHER["CODE"], ("both = u32(3) << (rank & 2)", "both = u32(3)")), "#"),
    commented(WORDS, OTHER["CODE"], "#"),
    Task("split", OTHER["launch"], ({}, {})),
    hints=(
        "Bit k of the mask is block k of the cluster. 3 is blocks 0 and 1.",
        "The second pair is blocks 2 and 3: the mask is shifted by the rank of the pair's first block.",
        "`both = u32(3) << (rank & 2)`",
    ),
    advice={
        "hang": "The finding says at whose mbarrier the commit of this pair has arrived.",
        "bad-barrier": "The mask names blocks of another pair.",
    },
    language="python",
)
