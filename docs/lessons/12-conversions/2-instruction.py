"""Lesson 12: one instruction for two numbers."""

from pathlib import Path
from runpy import run_path

from ptxlab.learn import Exercise, Task, avoids, changed, commented

OTHER = run_path(str(Path(__file__).with_name("1-signs.py")))
WORDS = """
Each thread makes eight f16 of a word with eight e2m1, by shifts and a multiplication. The target has an
instruction that converts two numbers.

Use it, and no shifts.
"""
CODE = OTHER["CODE"].replace("convert=by_shifts", "convert=by_instruction")
WRONG = changed(
    CODE,
    ("convert=by_instruction", "convert=by_shifts"),
    ("    return ptx.cvt.rn.f16x2.e2m1x2(byte)\n", '    """Write this one, and let the kernel use it."""\n'),
)

EXERCISE = Exercise(
    "two numbers by one instruction",
    commented(WORDS, WRONG, "#"),
    commented(WORDS, CODE, "#"),
    Task("widen", OTHER["launch"], ({"threads": 32}, {"threads": 64})),
    hints=(
        "`ptxlab explain cvt` lists the conversions; an `e2m1x2` is two numbers in a byte.",
        "`ptx.cvt.rn.f16x2.e2m1x2(byte)` gives a register with two f16.",
        "Write `by_instruction`, and `convert=by_instruction` in the parameters of the kernel.",
    ),
    needs=(avoids("shl", "one `cvt` makes both numbers of a byte"),),
    advice={
        "unavailable-instruction": "The target of the kernel is sm_100a, which has it: is the spelling right?",
        "wrong-values": "The low four bits are the first number.",
    },
    language="python",
)
