"""Lesson 2: scale factors in all sub-partitions."""

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, code_on_page, commented
from ptxlab.measure.block_scaled import NVFP4, arrange, numbers

WORDS = """
A product of NVFP4 numbers with scale factors, as on the page. One warp stores the scale factors to tensor
memory, and reaches 32 lanes. The MMA needs them in all four sub-partitions of 32 lanes.
"""
CODE = changed(
    code_on_page(__file__, "text ="),
    ("    warps: u32,\n    own: u32,\n", ""),
    ("warp < warps", "warp < 4"),
    ("(own * warp + part) % 4 * 32", "part * 32"),
    ("import ml_dtypes\nimport numpy as np\nimport ptxlab\n", ""),
    ("from ptxlab.measure.block_scaled import NVFP4, arrange, numbers\n", ""),
    (", tensor_map, u32", ", tensor_map"),
)


def launch(random: np.random.Generator) -> Case:
    """Bits of NVFP4 with powers of two as factors: the sums are exact."""
    a, b = (random.integers(0, 256, (rows, 32)).astype(np.uint8) for rows in (128, 32))
    factors = [random.choice([0.5, 1, 2], (rows, 4)).astype(ml_dtypes.float8_e4m3fn) for rows in (128, 32)]
    maps = [ptxlab.tensor_map(matrix, box=(len(matrix), 32), swizzle="32B") for matrix in (a, b)]
    left, right = (numbers(np, NVFP4, matrix.astype(float), arrange(one.astype(float)))
                   for matrix, one in zip((a, b), factors, strict=True))  # fmt: skip
    words = [one.view(np.uint32) for one in factors]
    return Case(1, 128, {"a": maps[0], "b": maps[1], "a_factors": words[0], "b_factors": words[1],
                "d": np.zeros((128, 32), np.float32)}, expected={"d": left @ right.T})  # fmt: skip


EXERCISE = Exercise(
    "a copy in each sub-partition",
    commented(WORDS, changed(CODE, ("warp < 4", "warp == 0")), "#"),
    commented(WORDS, CODE, "#"),
    Task("scaled", launch, ({}, {})),
    hints=(
        "A warp stores to the 32 lanes of its number. How many sub-partitions are there?",
        "All four warps have to store, each the same factors to its own lanes.",
        "`with ptx.when(warp < 4):`, or no condition at all.",
    ),
    advice={
        "uninitialized-read": "The lane that is named belongs to a sub-partition that no warp has stored to.",
        "unequal-scale-factors": "All sub-partitions need the same factors.",
        "wrong-values": "Which rows are wrong? A row is computed with the factors of its own sub-partition.",
    },
    language="python",
)
