"""y = A·x of NVFP4 matrices and vectors, for each of a batch; factors in rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.measure import Work
from ptxlab.measure.block_scaled import NVFP4, values
from ptxlab.verify import Array, Scalar, Size, Task


def reference(a: Any, a_factors: Any, x: Any, x_factors: Any) -> Any:
    """Two numbers a byte, e2m1; a factor for every sixteen."""
    left = values(np, a, NVFP4.group) * a_factors[..., None]
    right = values(np, x, NVFP4.group) * x_factors[..., None]
    return (left * right[:, None]).sum((-1, -2))


task = Task(
    "nvfp4_gemv",
    reference,
    sizes={"l": Size(1, 3), "m": Size(1, 40), "k": Size(64, 640, 32)},
    arguments=[
        Array("a", "u8", "l, m, k // 2", values="integers 0 256"),
        Array("a_factors", "e4m3", "l, m, k // 16", values="uniform 0.25 2"),
        Array("x", "u8", "l, k // 2", values="integers 0 256"),
        Array("x_factors", "e4m3", "l, k // 16", values="uniform 0.25 2"),
        Array("y", "f16", "l, m", role="out"),
        Scalar("m"),
        Scalar("k"),
    ],
    shapes=[{"l": 1, "m": 32, "k": 512}],
    timed=[
        {"l": 1, "m": 7168, "k": 16384},
        {"l": 8, "m": 4096, "k": 7168},
        {"l": 4, "m": 7168, "k": 2048},
    ],
    tolerance=2e-3,
    hidden=4,
    seeds=3,
    work=lambda l, m, k: Work(flops=2 * l * m * k, bytes=l * (m + 1) * k * 9 / 16 + 2 * l * m, rate="f16"),  # noqa: E741
    title=__doc__,
)
