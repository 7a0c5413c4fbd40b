"""Softmax over the rows of a matrix in f32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task


def reference(x: Any) -> Any:
    """exp(x) / Σ exp(x), relative to the largest element of a row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


task = Task(
    "softmax",
    reference,
    sizes={"rows": Size(1, 9), "columns": Size(1, 300)},
    arguments=[
        Array("x", "f32", "rows, columns"),
        Array("y", "f32", "rows, columns", role="out"),
        Scalar("rows"),
        Scalar("columns"),
    ],
    shapes=[{"rows": 4, "columns": 128}],
    timed=[{"rows": 8192, "columns": 1024}],
    tolerance=1e-5,
    work=lambda rows, columns: Work(flops=5 * rows * columns, bytes=8 * rows * columns, rate="f32"),
    title=__doc__,
)
