"""A swizzle: where an element is."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
The tensor map has a swizzle of 128 bytes: of row r, the 16 bytes number c are at number c ^ (r % 8) of that
row. The kernel looks for them where they would be without it.

%r1 is the row, %r3 the bytes of the column in its row; %r4 is free.
"""


def launch(random: np.random.Generator) -> Case:
    """One tile."""
    x = random.standard_normal((32, 32)).astype(np.float32)
    y = np.full((32, 32), np.nan, np.float32)
    source = ptxlab.tensor_map(x, box=(32, 32), swizzle="128B")
    chunks = np.arange(32) // 4 ^ (np.arange(32) % 8)[:, None]
    moved = np.take_along_axis(x, 4 * chunks + np.arange(32) % 4, axis=1)
    return Case(
        1, 1024, {"source": source, "y": y}, expected={"y": x.T.copy()},
        mistakes={"these are the numbers where they are without a swizzle: of row r, 16 bytes c are at c ^ (r % 8)": {
            "y": moved.T.copy()}},
    )  # fmt: skip


EXERCISE = Exercise(
    "where an element is",
    commented(
        WORDS,
        changed(
            KERNEL,
            (
                "    shl.b32 %r4, %r1, 4;\n    and.b32 %r4, %r4, 112;          // 16 times the row modulo 8\n    "
                "xor.b32 %r3, %r3, %r4;          // the swizzle\n",
                "",
            ),
        ),
    ),
    commented(WORDS, KERNEL),
    Task("transpose", launch, ({}, {})),
    hints=(
        "The number of 16 bytes is in bits 4 to 6 of the offset in the row.",
        "r % 8 in bits 4 to 6 is (r << 4) & 112. Exclusive-or it with the offset.",
        "`shl.b32 %r4, %r1, 4;` `and.b32 %r4, %r4, 112;` `xor.b32 %r3, %r3, %r4;`",
    ),
    advice={
        "wrong-values": "Row 0 has no swizzle, and of row 1 each two neighbouring 16 bytes are exchanged. Which "
        "bits of the offset does your line change?",
        "misaligned-access": "Only bits 4 to 6 of the offset change.",
    },
)
