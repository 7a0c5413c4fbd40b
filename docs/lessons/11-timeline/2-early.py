"""Lesson 11: a stage that is freed before it is read."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, changed, commented

OTHER = run_path(str(Path(__file__).with_name("1-free.py")))
WORDS = """
One warp fills stages with rows of 32 numbers, another one reads them backwards. To gain time, the consumer was
changed to arrive before it reads: on a timeline the producer then waits less. What is wrong with it?
"""
READ = "y[row * 32 + (thread - 32)] = tile[stage.index, 63 - thread]\n"

EXERCISE = Exercise(
    "a stage that is freed too early",
    commented(
        WORDS,
        changed(OTHER["CODE"], (f"{READ}                stage.arrive()\n", f"stage.arrive()\n                {READ}")),
        "#",
    ),
    commented(WORDS, OTHER["CODE"], "#"),
    Task("reverse_rows", OTHER["launch"], ({"rows": 2}, {"rows": 9})),
    hints=(
        "What may the producer do as soon as all 32 threads have arrived?",
        "To arrive is to say: I have read it.",
        "`stage.arrive()` belongs after the line that reads `tile`.",
    ),
    advice={"data-race": "The finding names the write of the next row and the read of this one: nothing orders them.",
            "hang": "All 32 threads have to arrive once for each row.",
            "wrong-values": "Some rows are those that came later."},
    language="python",
)  # fmt: skip
