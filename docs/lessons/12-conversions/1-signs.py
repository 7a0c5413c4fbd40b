"""Lesson 12: e2m1 by arithmetic."""

import ml_dtypes
import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented

WORDS = """
Each thread makes eight f16 of a word with eight e2m1, by shifts and a multiplication, as GPUs do that lack the
instruction. Negative numbers come out wrong.

An e2m1 has its sign in bit 3, and three bits of exponent and mantissa below it. An f16 has its sign in bit 15;
the three bits go to bits 9 to 11, and the multiplication mends the exponent.
"""
CODE = changed(
    code_on_page(__file__),
    ("import ml_dtypes\nimport numpy as np\n\nimport ptxlab\n", ""),
    ("convert=by_instruction", "convert=by_shifts"),
)


def launch(random: np.random.Generator, threads: int) -> Case:
    """Bytes with two e2m1 each, the first in the low bits."""
    x = random.integers(0, 256, 4 * threads).astype(np.uint8)
    halves = np.stack([x & 15, x >> 4], axis=1).astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float16)
    return Case(
        1, threads, {"x": x, "y": np.full((4 * threads, 2), 99, np.float16)}, expected={"y": halves},
        mistakes={
            "all numbers came out positive: the signs are lost": {"y": abs(halves)},
            "the two numbers of each byte are exchanged: the low four bits are the first": {"y": halves[:, ::-1]},
            "all numbers are 2¹⁴ times too small": {"y": halves.astype(np.float64) * 2.0**-14},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "signs of e2m1",
    commented(WORDS, changed(CODE, ("ptx.shl.b32(signs, 12)", "ptx.shl.b32(signs, 9)")), "#"),
    commented(WORDS, CODE, "#"),
    Task("widen", launch, ({"threads": 32}, {"threads": 64})),
    hints=(
        "`signs` has bits 3 and 19. Where does an f16 have its sign, in the lower and in the upper half of a word?",
        "From bit 3 to bit 15 it is so many bits.",
        "`ptx.shl.b32(signs, 12)`",
    ),
    advice={"wrong-values": "Compare a negative number with the bits that an f16 of it should have."},
    language="python",
)
