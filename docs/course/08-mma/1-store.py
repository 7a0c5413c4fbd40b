"""Chapter 8: where the elements of D are."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, executes, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
D = A times the transpose of B by one mma, as on the page. The product is right in the registers, but the kernel
stores it as if lane k had four neighbours of row k / 2. Store the elements where they belong:

with g = lane / 4 and t = lane % 4, %f0 and %f1 are elements (g, 2t) and (g, 2t + 1), %f2 and %f3 are those of row
g + 8. A row of D has 8 f32.
"""
_, FOUND, STORE = KERNEL.partition("    shr.u32 %group, %lane, 2;")
LINEAR = "    mad.wide.u32 %d, %lane, 16, %d;\n    st.global.v4.f32 [%d], {%f0, %f1, %f2, %f3};\n    ret;\n}\n"


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-8, 9, (rows, 16)).astype(np.float16) for rows in (16, 8))
    right = a.astype(np.float64) @ b.T.astype(np.float64)
    lanes = np.arange(32)
    held = np.stack([right[lanes // 4 + 8 * (i // 2), lanes % 4 * 2 + i % 2] for i in range(4)], axis=1)
    return Case(
        1, 32, {"a": a, "b": b, "d": np.full((16, 8), np.nan, np.float32)}, expected={"d": right},
        mistakes={
            "lane k stores its four elements one after the other, from element 4 k on": {"d": held.reshape(16, 8)},
            "the upper and the lower eight rows are exchanged": {"d": np.roll(right, 8, axis=0)},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "where the result belongs",
    commented(WORDS, changed(KERNEL, (FOUND + STORE, LINEAR))),
    commented(WORDS, KERNEL),
    Task("tile", launch, ({}, {})),
    hints=(
        "`ptxlab draw fragments mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand d` shows which lane has "
        "which element.",
        "The address of (g, 2t) is d + 32 g + 8 t. Two neighbours are stored by `st.global.v2.f32`.",
        "Row g + 8 is 256 bytes further: `st.global.v2.f32 [%d+256], {%f2, %f3};`",
    ),
    needs=(executes("mma", "the product is to come from the tensor core"),),
    advice={
        "out-of-bounds": "D has 16 rows of 32 bytes: g is 0 to 7, and the second row of a lane is 8 rows further.",
        "data-race": "Two lanes store to the same element: each pair (g, t) is of one lane.",
        "misaligned-access": "Two f32 are at a multiple of 8 bytes: column 2t.",
        "wrong-values": "Lane 5 has g = 1 and t = 1: %f0 is element (1, 2).",
    },
)
