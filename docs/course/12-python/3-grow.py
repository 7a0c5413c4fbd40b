"""Chapter 12: a loop of the GPU."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, commented

WORDS = """
Each thread adds up a row of a matrix of whole numbers: y[i] is the sum of x[i, 0] to x[i, columns - 1]. How
many columns there are is known at run time only, so that the loop is one of the GPU, by `ptx.range`.

`total = total + ...` makes a new register, and the loop's next round does not know of it. Let the register that
is there grow.
"""
START = '''\
from ptxlab.author import kernel, pointer, ptx, s32, u32


@kernel(target="sm_80")
def add_rows(x: pointer[s32], y: pointer[s32], columns: u32):
    """A thread for each row."""
    i = ptx.tid.x
    total = s32(0)
    for column in ptx.range(0, columns):
        total = total + x[i * columns + column]
    y[i] = total


if __name__ == "__main__":
    print(add_rows)
'''


def launch(random: np.random.Generator, rows: int, columns: int) -> Case:
    """Whole numbers."""
    x = random.integers(-99, 100, (rows, columns)).astype(np.int32)
    return Case(
        1, rows, {"x": x, "y": np.full(rows, -12345, np.int32), "columns": np.uint32(columns)},
        expected={"y": x.sum(axis=1)},
        mistakes={} if columns < 2 else {
            "only the last column is in y: the sum starts anew in each round": {"y": x[:, -1]},
            "only the first column is in y": {"y": x[:, 0]},
            "nothing was added": {"y": np.zeros(rows, np.int32)},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "a sum that grows",
    commented(WORDS, START, "#"),
    commented(WORDS,
              START.replace("total = total + x[i * columns + column]", "total.set(total + x[i * columns + column])"),
              "#"),
    Task("add_rows", launch, ({"rows": 32, "columns": 1}, {"rows": 64, "columns": 5}, {"rows": 32, "columns": 0})),
    hints=(
        "A name of Python can be given to another register; what a register holds is changed by an instruction.",
        "`register.set(value)` copies a value to a register that is there already; `out=register` makes an instruction "
        "write it.",
        "`total.set(total + x[i * columns + column])`, or `ptx.add.s32(total, x[i * columns + column], out=total)`.",
    ),
    advice={
        "lost-value": "What changes in a loop of the GPU has to stay in one register.",
        "value-needed": "How many columns there are Python can't know: the loop is one of the GPU.",
        "wrong-values": "Does the register of the sum grow in each round?",
        "out-of-bounds": "Row i starts at element i * columns.",
    },
    language="python",
)  # fmt: skip
