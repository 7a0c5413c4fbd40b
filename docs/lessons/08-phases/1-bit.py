"""Lesson 8: a phase bit that does not flip."""

import re

import numpy as np

from ptxlab.kernels.tcgen05_gemm import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (256, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "persistent", Shape(columns=64, stages=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 72)[0])
# The wait for a filled stage is the last one before the MMAs; Python chose the registers.
BIT = re.findall(r"try_wait\.\S+ %\w+, \[%\w+\], (%\w+);", TEXT.partition("tcgen05.mma.")[0])[-1]
FLIP, LAST = next((found[0], found[1]) for found in re.finditer(rf"@(%p\d+) xor\.b32 {BIT}, {BIT}, 1;", TEXT))
WORDS = f"""
A product by tcgen05, as a step of the gallery's tcgen05_gemm does it: D = A times the transpose of B, in f16.
This is its PTX as Python has written it.

MMAs read stages that are not filled yet. The warp that issues them waits for the mbarriers of `filled` by a
bit in {BIT}, and with {LAST} true it has just used the last stage of the ring.
"""
EXERCISE = Exercise(
    "a phase bit that does not flip",
    commented(WORDS, changed(TEXT, (FLIP, ""))),
    commented(WORDS, TEXT),
    Task(
        "persistent",
        launch,
        (
            {"k": 72},
            {"k": 200},
        ),
    ),
    hints=(
        "In the second turn through the ring, the wait for the parity of the first is over at once.",
        "The bit has to flip when the ring is through. The label after the loop body is a good place to look for "
        "the line where the stage goes back to 0.",
        f"`{FLIP}` where the stage number is set back.",
    ),
    advice={
        "data-race": "The wait was over by an earlier phase: which parity does the warp wait for in the second turn?",
        "hang": "Which parity does each side wait for, and which phases are complete?",
        "stale-phase": "The wait is over by a phase that was complete before: the parity has to flip once a turn "
        "through the ring.",
    },
)
