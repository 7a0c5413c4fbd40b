"""A TMA copy: the proxy fence."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
Each block doubles a box of 32 by 32 numbers of a matrix, which a TMA copy brings to shared memory and back.

The results are right here, and may be wrong on a GPU now and then: the copy engine reads shared memory
another way than threads write it. What is missing?
"""


def launch(random: np.random.Generator, rows: int, columns: int) -> Case:
    """A matrix that boxes of 32 by 32 cover."""
    x = random.integers(-99, 99, (rows, columns)).astype(np.float32)
    y = np.zeros_like(x)
    maps = {name: ptxlab.tensor_map(array, box=(32, 32)) for name, array in (("source", x), ("target", y))}
    grid = -(-columns // 32), -(-rows // 32)
    return Case(grid, 256, maps, expected={"y": 2.0 * x}, arrays={"y": y})


EXERCISE = Exercise(
    "the proxy fence",
    commented(WORDS, changed(KERNEL, ("    fence.proxy.async.shared::cta;\n", ""))),
    commented(WORDS, KERNEL),
    Task("double", launch, ({"rows": 32, "columns": 32}, {"rows": 40, "columns": 72})),
    hints=(
        "Threads write through the generic proxy, the copy reads through the async proxy. A barrier orders threads "
        "only.",
        "A proxy fence belongs between the stores and the copy: in each thread that stored, before the barrier.",
        "`fence.proxy.async.shared::cta;` before the last `bar.sync 0;`",
    ),
    advice={
        "missing-proxy-fence": "It has to be executed by every thread that writes, or after the barrier by the one "
        "that copies.",
        "data-race": "The barrier before the copy back must stay.",
    },
)
