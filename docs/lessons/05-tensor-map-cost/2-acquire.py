"""Lesson 5: a map that was changed, and is still the old one."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, changed, commented

OTHER = run_path(str(Path(__file__).with_name("1-once.py")))
WORDS = """
The kernel copies groups of four tiles with one tensor map, whose address it changes for each group: in shared
memory, then by `tensormap.cp_fenceproxy` to global memory, which is a release. On an H200 its copies use the
map of the first group in every run.

What is published has to be acquired, too.
"""
CODE = OTHER["CODE"] + OTHER["LAST"].format("==")

EXERCISE = Exercise(
    "a map that is stale",
    commented(WORDS, changed(CODE, ("                ACQUIRE(made.generic, 128)\n", "")), "#"),
    commented(WORDS, CODE, "#"),
    Task("copy", OTHER["launch"], ({"groups": 1}, {"groups": 3})),
    hints=(
        "A release without an acquire orders nothing for the one that reads.",
        "`ACQUIRE` is defined above, `fence.proxy.tensormap::generic.acquire.gpu`; "
        "it takes the address of the map and 128.",
        "`ACQUIRE(made.generic, 128)` after `PUBLISH(...)`.",
    ),
    advice={
        "stale-tensor-map": "Between what publishes a map and the copy that uses it, something is missing.",
        "data-race": "Between what publishes a map and the copy that uses it, something is missing.",
        "unchanged-tensor-map": "The map is to change once for each group.",
        "wrong-values": "The copies of the second group have the address of the first.",
    },
    language="python",
)
