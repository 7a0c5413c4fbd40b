"""Chapter 8: addresses for ldmatrix."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, executes, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
D = A times the transpose of B by one mma, as on the page. ldmatrix.x4 loads four matrices of 8 by 8: lanes 0 to
7 point to the rows of the first, 8 to 15 to those of the second, and so on.

mma expects of A first rows 0 to 7, columns 0 to 7, then rows 8 to 15 of the same columns, then rows 0 to 7 and
8 to 15 of columns 8 to 15. Here all lanes point to rows 0 to 7. Compute %row and %half of A.
"""


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-8, 9, (rows, 16)).astype(np.float16) for rows in (16, 8))
    right = a.astype(np.float64) @ b.T.astype(np.float64)
    upper = a[:8].astype(np.float64) @ b.T.astype(np.float64)
    halves = a[:, :8].astype(np.float64) @ (b[:, :8].T.astype(np.float64) + b[:, 8:].T.astype(np.float64))
    return Case(
        1, 32, {"a": a, "b": b, "d": np.full((16, 8), np.nan, np.float32)}, expected={"d": right},
        mistakes={
            "rows 8 to 15 are those of 0 to 7: lanes 8 to 15 have to point to rows 8 to 15": {
                "d": np.concatenate([upper, upper])},
            "columns 8 to 15 of A are those of 0 to 7: lanes from 16 on have to point 16 bytes further": {"d": halves},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "rows for ldmatrix",
    commented(WORDS, changed(KERNEL, ("and.b32 %row, %lane, 15; ", "and.b32 %row, %lane, 7;  "))),
    commented(WORDS, KERNEL),
    Task("tile", launch, ({}, {})),
    hints=(
        "Lane 8 gives the first row of the second matrix: row 8 of A, columns 0 to 7.",
        "Of lanes 0 to 15 the row is the lane itself; of lanes 16 to 31 it is the lane - 16, in the right half.",
        "`and.b32 %row, %lane, 15;` and `shr.u32 %half, %lane, 4;`",
    ),
    needs=(
        executes("mma", "the product is to come from the tensor core"),
        executes("ldmatrix", "the fragments are to come from shared memory by `ldmatrix`"),
    ),
    advice={
        "out-of-bounds": "A has 16 rows of 32 bytes, and a half is 16 bytes further.",
        "uninitialized-read": "A has 16 rows of 32 bytes, and a half is 16 bytes further.",
        "misaligned-access": "A row of eight f16 is at a multiple of 16 bytes.",
        "wrong-values": "Which row of A does lane 8 point to, which one lane 16?",
    },
)
