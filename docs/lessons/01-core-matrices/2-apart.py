"""Lesson 1: a tile that is stored elsewhere."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
D = A times the transpose of B by one tcgen05.mma, as on the page. The two columns of B are now 1,024 bytes
apart in shared memory, for whatever reason, and the descriptor still says 512.

Any distance is right, if copies and descriptor agree. Mend either.
"""
BITS = """\
from ptxlab.isa.units.descriptor import Descriptor

A_BITS = Descriptor(start=0, leading=2048, stride=128).encode_for_tcgen05()
B_BITS = Descriptor(start=0, leading={}, stride=128).encode_for_tcgen05()
"""
CODE = changed(
    code_on_page(__file__, "text ="),
    (", a_bits: u64, b_bits: u64)", ")"),
    ("a_bits = a_bits +", "a_bits = u64(A_BITS) +"),
    ("b_bits = b_bits +", "b_bits = u64(B_BITS) +"),
    ("b_tile.at(32 * column)", "b_tile.at(64 * column)"),
    ("import numpy as np\nimport ptxlab\n", ""),
)
IMPORTS, _, REST = CODE.partition("\nLOAD")


def written(leading: int) -> str:
    """The file, with this distance."""
    return commented(WORDS, IMPORTS + BITS.format(leading) + "\nLOAD" + REST, "#")


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 16)).astype(np.float16) for rows in (128, 32))
    maps = [ptxlab.tensor_map(matrix, box=(len(matrix), 8)) for matrix in (a, b)]
    return Case(1, 128, {"a": maps[0], "b": maps[1], "d": np.zeros((128, 32), np.float32)},
                expected={"d": a.astype(np.float64) @ b.T.astype(np.float64)})  # fmt: skip


EXERCISE = Exercise(
    "a tile that is stored elsewhere",
    written(512),
    written(1024),
    Task("core", launch, ({}, {})),
    hints=(
        "`b_tile.at(n)` counts in numbers of two bytes: the second column is at 64 times 8 of them.",
        "The leading offset leads from one column of core matrices to the next.",
        "`leading=1024` of B, or `b_tile.at(32 * column)` in the copy.",
    ),
    advice={
        "mismatched-descriptor": "The finding says where the matrix continues, and where a copy wrote.",
        "uninitialized-read": "The descriptor reads bytes that no copy has written.",
        "out-of-bounds": "b_tile has 4,096 numbers.",
    },
    language="python",
)
