"""C = A·B of matrices in f32, which are stored by rows."""

from __future__ import annotations

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task

task = Task(
    "sgemm",
    lambda a, b: a @ b,
    sizes={"m": Size(1, 70), "n": Size(1, 70), "k": Size(1, 50)},
    arguments=[
        Array("a", "f32", "m, k"),
        Array("b", "f32", "k, n"),
        Array("c", "f32", "m, n", role="out"),
        Scalar("m"),
        Scalar("n"),
        Scalar("k"),
    ],
    shapes=[{"m": 64, "n": 64, "k": 32}],
    timed=[{"m": 2048, "n": 2048, "k": 2048}],
    tolerance=1e-5,
    work=lambda m, n, k: Work(flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n), rate="f32"),
    title=__doc__,
)
