"""Chapter 13: a wrong operand, which one shape of numbers does not show."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, names_on_page

PAGE = names_on_page(__file__)
WORDS = """
Each thread has the sum of the squares of a row, two elements at once; n is even. Where all elements of a row are
the same, the result is right. Otherwise it is not: one product has a wrong operand.

    ptxlab equal squares.ptx operand.ptx ... names the terms, if you write squares.ptx with one sum; or run it with
    elements that differ, and think of which product gives the result.
"""
SQUARES = changed(
    PAGE["PAIRS"],
    (".reg .f32 %sum, %other, %value;", ".reg .f32 %sum, %other, %value, %second;"),
    ("add.f32 %sum, %sum, %value;", "fma.rn.f32 %sum, %value, %value, %sum;"),
    ("ld.global.f32 %value, [%x+4];", "ld.global.f32 %second, [%x+4];"),
    ("add.f32 %other, %other, %value;", "fma.rn.f32 %other, %second, %second, %other;"),
)


def launch(random: np.random.Generator, n: int, is_one: bool) -> Case:
    """Small whole numbers, in the first case one for each row."""
    x = random.integers(-9, 10, (4, n)).astype(np.float32)
    if is_one:
        x[:] = x[:, :1]
    mixed = (x[:, ::2] * x[:, ::2] + x[:, ::2] * x[:, 1::2]).sum(1)
    mistakes = {} if is_one else {"the second product is of both elements of a pair, not a square": {"y": mixed}}
    return Case(1, 4, {"x": x, "y": np.full(4, np.nan, np.float32), "n": np.uint32(n)},
                expected={"y": (x * x).sum(1)}, mistakes=mistakes)  # fmt: skip


EXERCISE = Exercise(
    "a wrong operand",
    commented(WORDS, changed(SQUARES, ("%other, %second, %second, %other", "%other, %value, %second, %other"))),
    commented(WORDS, SQUARES),
    Task("rows", launch, ({"n": 2, "is_one": True}, {"n": 6, "is_one": False}, {"n": 32, "is_one": False})),
    hints=(
        "Write down the result for a row of two elements x and y. Which term is not a square?",
        "`%value` has the first element of a pair, `%second` the second one.",
        "`fma.rn.f32 %other, %second, %second, %other;`",
    ),
    advice={"wrong-values": "Two products of each pair: x·x and y·y. Which operands does each have?"},
)
