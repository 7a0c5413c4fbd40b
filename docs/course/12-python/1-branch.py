"""Chapter 12: what the GPU decides."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, commented

WORDS = """
y[i] = x[i] * x[i] for the n numbers of x. Python decides here, once, when the kernel is written: it can't know
i.

Let the GPU decide. `python3 1-branch.py` prints the PTX, `ptxlab learn check` runs it.
"""
START = '''\
from ptxlab.author import f32, kernel, pointer, ptx, u32


@kernel(target="sm_80")
def square(x: pointer[f32], y: pointer[f32], n: u32):
    """A thread for each number."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    if i < n:
        value = x[i]
        y[i] = ptx.mul.rn.f32(value, value)


if __name__ == "__main__":
    print(square)
'''


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Whole numbers."""
    x = random.integers(-9, 10, n).astype(np.float32)
    return Case(-(-n // block), block, {"x": x, "y": np.full(n, np.nan, np.float32), "n": np.uint32(n)},
                expected={"y": x * x}, mistakes={"y is x": {"y": x}, "y is twice x": {"y": 2 * x}})  # fmt: skip


EXERCISE = Exercise(
    "a guard in Python",
    commented(WORDS, START, "#"),
    commented(WORDS, START.replace("    if i < n:", "    with ptx.when(i < n):"), "#"),
    Task("square", launch, ({"n": 64, "block": 64}, {"n": 100, "block": 64}, {"n": 1000, "block": 256})),
    hints=(
        "`if` is Python's, and needs to know now. What is the word for a branch of the GPU?",
        "`with ptx.when(condition):` writes a branch around what is in it.",
        "`with ptx.when(i < n):` instead of `if i < n:`.",
    ),
    advice={
        "out-of-bounds": "Threads beyond n have nothing to do: which line keeps them out?",
        "value-needed": "Which word branches on the GPU? The table of the page has it.",
        "wrong-values": "Which threads write y?",
    },
    language="python",
)
