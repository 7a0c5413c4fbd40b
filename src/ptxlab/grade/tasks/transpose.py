"""The transpose of a matrix in f32."""

from __future__ import annotations

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task

task = Task(
    "transpose",
    lambda x: x.T,
    sizes={"rows": Size(1, 80), "columns": Size(1, 80)},
    arguments=[
        Array("x", "f32", "rows, columns"),
        Array("y", "f32", "columns, rows", role="out"),
        Scalar("rows"),
        Scalar("columns"),
    ],
    shapes=[{"rows": 64, "columns": 32}],
    timed=[{"rows": 4096, "columns": 4096}],
    tolerance=0.0,
    work=lambda rows, columns: Work(flops=0, bytes=8 * rows * columns, rate="f32"),
    title=__doc__,
)
