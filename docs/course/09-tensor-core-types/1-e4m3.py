"""Chapter 9: from f16 to numbers of one byte."""

import ml_dtypes
import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, executes, kernel_on_page

KERNEL = changed(kernel_on_page(__file__), (".version 8.4\n.target sm_89", ".version 8.0\n.target sm_80"))
WORDS = """
D = A times the transpose of B by one mma, as on the page. A and B are now e4m3, numbers of one byte, 32 in a
row; D stays f32.

The loads are right as they are: a row has 32 bytes as before. Change what has to be changed.
"""
SOLUTION = changed(
    KERNEL,
    (".version 8.0\n.target sm_80", ".version 8.4\n.target sm_89"),
    ("m16n8k16.row.col.f32.f16.f16.f32", "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
)


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 32)).astype(ml_dtypes.float8_e4m3fn) for rows in (16, 8))
    right = a.astype(np.float64) @ b.T.astype(np.float64)
    other = [x.view(ml_dtypes.float8_e5m2).astype(np.float64) for x in (a, b)]
    whole = [x.view(np.int8).astype(np.float64) for x in (a, b)]
    return Case(
        1, 32, {"a": a, "b": b, "d": np.full((16, 8), np.nan, np.float32)}, expected={"d": right},
        mistakes={
            "these are the products of e5m2, the other type of one byte: five bits of exponent instead of four": {
                "d": other[0] @ other[1].T},
            "these are the bits of s32: the bytes were multiplied as whole numbers": {
                "d": (whole[0] @ whole[1].T).astype(np.int32).view(np.float32)},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "numbers of one byte",
    commented(WORDS, KERNEL),
    commented(WORDS, SOLUTION),
    Task("tile", launch, ({}, {})),
    hints=(
        "Two places change: what the tensor core is to multiply, and the GPUs that can do it.",
        "A row of 32 bytes has 32 numbers: the K of the instruction is 32. Four registers of A and two of B stay.",
        "`mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32`, and above it `.version 8.4` and `.target sm_89`.",
    ),
    needs=(executes("mma", "the product is to come from the tensor core"),),
    advice={
        "unavailable-instruction": "Which target multiplies this type first? The table of the page has it.",
        "vector-size": "How many numbers of one byte has a row of 32 bytes? That is K.",
        "illegal-modifier": "The table of the page has the spelling for each type: its K belongs to it.",
        "wrong-values": "The bytes are multiplied as another type than they are: which one does the instruction name?",
    },
)
