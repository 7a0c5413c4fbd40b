"""Chapter 12: a loop of Python."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, commented, requests_at_most

WORDS = """
y = a x for n numbers, four for each thread; n is a multiple of four. The loop of Python writes four loads and
four stores, of four bytes each.

Load and store all four at once: `ptx.ld.global_.v4.f32(x.at(4 * i))` gives a list of four registers,
`ptx.st.global_.v4.f32(y.at(4 * i), values)` stores one. The multiplications stay a loop.
"""
START = '''\
from ptxlab.author import f32, kernel, pointer, ptx, u32


@kernel(target="sm_80")
def scale(x: pointer[f32], y: pointer[f32], a: f32, n: u32):
    """Four numbers for each thread."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with ptx.when(4 * i < n):
        for part in range(4):
            y[4 * i + part] = ptx.mul.rn.f32(a, x[4 * i + part])


if __name__ == "__main__":
    print(scale)
'''
LOOP = "        for part in range(4):\n            y[4 * i + part] = ptx.mul.rn.f32(a, x[4 * i + part])\n"
WIDE = """\
        values = ptx.ld.global_.v4.f32(x.at(4 * i))
        ptx.st.global_.v4.f32(y.at(4 * i), [ptx.mul.rn.f32(a, value) for value in values])
"""


def launch(random: np.random.Generator, n: int) -> Case:
    """Whole numbers."""
    x = random.integers(-9, 10, n).astype(np.float32)
    return Case(-(-n // 256), 64, {"x": x, "y": np.full(n, np.nan, np.float32), "a": np.float32(3), "n": np.uint32(n)},
                expected={"y": 3 * x}, mistakes={"nothing was multiplied": {"y": x}})  # fmt: skip


EXERCISE = Exercise(
    "four numbers a thread",
    commented(WORDS, START, "#"),
    commented(WORDS, START.replace(LOOP, WIDE), "#"),
    Task("scale", launch, ({"n": 100}, {"n": 1024})),
    hints=(
        "A list of four registers is a list of Python: a comprehension goes over it.",
        "`[ptx.mul.rn.f32(a, value) for value in values]` writes four multiplications.",
        "`values = ptx.ld.global_.v4.f32(x.at(4 * i))`, then `ptx.st.global_.v4.f32(y.at(4 * i), [...])`.",
    ),
    needs=(requests_at_most(2 * 1024 // 128, "16 bytes of each lane are one load and one store of a warp"),),
    advice={
        "out-of-bounds": "Thread i has numbers 4 i to 4 i + 3; those beyond n have nothing to do.",
        "misaligned-access": "`.v4.f32` needs an address that is a multiple of 16 bytes: element 4 i.",
        "wrong-values": "Which of the four numbers of a thread are wrong?",
    },
    language="python",
)
