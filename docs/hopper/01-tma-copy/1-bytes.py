"""A TMA copy: bytes that are announced."""

import numpy as np

import ptxlab
from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page

KERNEL = kernel_on_page(__file__)
WORDS = """
Each block doubles a box of 32 by 32 numbers of a matrix, which a TMA copy brings to shared memory and back.

No thread ever gets past its wait: the mbarrier does not complete. Mend it.
"""


def launch(random: np.random.Generator, rows: int, columns: int) -> Case:
    """A matrix that boxes of 32 by 32 cover."""
    x = random.integers(-99, 99, (rows, columns)).astype(np.float32)
    y = np.zeros_like(x)
    maps = {name: ptxlab.tensor_map(array, box=(32, 32)) for name, array in (("source", x), ("target", y))}
    grid = -(-columns // 32), -(-rows // 32)
    return Case(grid, 256, maps, expected={"y": 2.0 * x}, arrays={"y": y})


EXERCISE = Exercise(
    "bytes that are announced",
    commented(WORDS, changed(KERNEL, ("[full], 4096;", "[full], 1024;"))),
    commented(WORDS, KERNEL),
    Task("double", launch, ({"rows": 32, "columns": 32}, {"rows": 40, "columns": 72})),
    hints=(
        "The mbarrier completes its phase when all arrivals are there and as many bytes as `expect_tx` announces.",
        "The box has 32 × 32 numbers of 4 bytes. How many bytes is that?",
        "`mbarrier.arrive.expect_tx.shared.b64 _, [full], 4096;`",
    ),
    advice={
        "hang": "The phase completes when exactly the announced bytes have come. How many bytes does the copy bring?",
        "data-race": "Threads have to wait for the copy before they read the tile, and for each other before it is "
        "copied back.",
    },
)
