"""The sum of an array in f32."""

from __future__ import annotations

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task

task = Task(
    "reduction",
    lambda x: x.sum(keepdims=True),
    sizes={"n": Size(1, 6000)},
    arguments=[Array("x", "f32", "n"), Array("y", "f32", "1", role="out"), Scalar("n")],
    shapes=[{"n": 1024}],
    timed=[{"n": 1 << 24}],
    tolerance=1e-5,
    work=lambda n: Work(flops=n, bytes=4 * n, rate="f32"),
    title=__doc__,
)
