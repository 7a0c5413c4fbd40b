"""Lesson 10: an A that could be kept."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, changed, commented, keeps_at_least

OTHER = run_path(str(Path(__file__).with_name("1-order.py")))
WORDS = """
Two products with one A: two MMAs for each 16 columns of A, and both read A from shared memory. Nothing is wrong
with the result.

Let the second MMA of each two take A from the collector buffer. The emulator counts the bytes that are not
read.
"""

EXERCISE = Exercise(
    "read A once",
    commented(WORDS, changed(OTHER["CODE"], ('("fill", "lastuse")', '("discard", "discard")')), "#"),
    commented(WORDS, OTHER["CODE"], "#"),
    Task("dual", OTHER["launch"], ({}, {})),
    hints=(
        "The modifiers are `fill`, `use`, `lastuse` and `discard`.",
        "The first MMA of each two keeps A, the second one is the last that uses it.",
        '`uses: tuple = ("fill", "lastuse")`',
    ),
    needs=(keeps_at_least(16384, "the second MMA of each two has the same A as the first"),),
    advice={"bad-collector": "`fill` comes first, then `use` or `lastuse`, of the same A."},
    language="python",
)
