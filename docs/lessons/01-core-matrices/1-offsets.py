"""Lesson 1: the two offsets of a descriptor."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
D = A times the transpose of B by one tcgen05.mma: A has 128 rows and B 32, of 16 numbers of f16. TMA copies
columns of 16 bytes, eight numbers of each row, one column after the other.

A_BITS and B_BITS are the descriptors by which the MMA reads both. D is wrong: one of the four distances is not
what it should be, or more.
"""
BITS = """\
from ptxlab.isa.units.descriptor import Descriptor

A_BITS = Descriptor(start=0, leading={}, stride={}).encode_for_tcgen05()
B_BITS = Descriptor(start=0, leading={}, stride={}).encode_for_tcgen05()
"""
CODE = changed(
    code_on_page(__file__, "text ="),
    (", a_bits: u64, b_bits: u64)", ")"),
    ("a_bits = a_bits +", "a_bits = u64(A_BITS) +"),
    ("b_bits = b_bits +", "b_bits = u64(B_BITS) +"),
    ("import numpy as np\nimport ptxlab\n", ""),
)
IMPORTS, _, REST = CODE.partition("\nLOAD")


def written(*distances: int) -> str:
    """The file, with these distances."""
    return commented(WORDS, IMPORTS + BITS.format(*distances) + "\nLOAD" + REST, "#")


def launch(random: np.random.Generator) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (rows, 16)).astype(np.float16) for rows in (128, 32))
    maps = [ptxlab.tensor_map(matrix, box=(len(matrix), 8)) for matrix in (a, b)]
    return Case(1, 128, {"a": maps[0], "b": maps[1], "d": np.zeros((128, 32), np.float32)},
                expected={"d": a.astype(np.float64) @ b.T.astype(np.float64)})  # fmt: skip


EXERCISE = Exercise(
    "the offsets of a descriptor",
    written(128, 2048, 256, 128),
    written(2048, 128, 512, 128),
    Task("core", launch, ({}, {})),
    hints=(
        "Eight rows of 16 bytes are a core matrix of 128 bytes. The stride leads from eight rows to the next eight, "
        "the "
        "leading offset from 16 bytes of a row to the next 16.",
        "A column of A has 128 rows of 16 bytes: so far it is to the next column. How many has one of B?",
        "A: leading 2048, stride 128. B: leading 512, stride 128.",
    ),
    advice={
        "mismatched-descriptor": "The finding says how the copy wrote the matrix, and how the descriptor reads it.",
        "wrong-values": "Which of the two matrices is read at other distances than it was written?",
    },
    language="python",
)
