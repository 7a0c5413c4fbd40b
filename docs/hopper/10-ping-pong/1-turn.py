"""Ping-pong: the first turn."""

import re

import numpy as np

from ptxlab.kernels.wgmma_steps import Shape, product
from ptxlab.learn import Case, Exercise, Task, changed, commented, text_of
from ptxlab.measure import Launch

WORDS = """
D = A times the transpose of B, in f16, by wgmma, as the step of the page does it. This is its PTX as Python
has written it.

Two warpgroups take turns at the tensor cores: each waits for its mbarrier of `turns`, which the other
completes. Here both wait for ever. Which of them has the first turn, and how?
"""


def multiply(random: np.random.Generator, k: int) -> tuple[Launch, np.ndarray, np.ndarray]:
    """The product of A and B transposed, its D, and what that must be."""
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (128, 128))
    expected = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16)
    d = np.zeros_like(expected)
    return product(a, b, d, "ping_pong", Shape(64, 64, stages=2), blocks=1), d, expected


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    made, d, expected = multiply(random, k)
    return Case.of(made, d=(d, expected))


TEXT = text_of(multiply(np.random.default_rng(0), 64)[0])
# The parity of the first wait, made of the number of the warpgroup; Python chose the registers.
FIRST, PARITY, GROUP = next(
    (found[0], found[1], found[2])
    for found in re.finditer(r"(?<!\S )xor\.b32 (%r\d+), (%r\d+), 1;", TEXT)
    if found[1] != found[2]
)
EXERCISE = Exercise(
    "the first turn",
    commented(WORDS, changed(TEXT, (FIRST, f"mov.u32 {PARITY}, 0;"))),
    commented(WORDS, TEXT),
    Task("ping_pong", launch, ({"k": 64}, {"k": 192})),
    hints=(
        "Both wait for phase 0 of their mbarrier, and neither can complete the other's before it had its turn.",
        "A wait for parity 1 is over at once, before phase 0. It is right for one of the two.",
        f"{GROUP} is the number of the warpgroup: `{FIRST}` gives parity 1 to the first and 0 to the second.",
    ),
    advice={
        "hang": "Each waits for the other. Which parity has its first wait over at once?",
        "data-race": "If both have the first turn, they are in each other's way: only one of the two may start with "
        "parity 1.",
    },
)
