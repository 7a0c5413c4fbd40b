"""D = A·Bᵀ of NVFP4 matrices; factors in blocks, as tensor cores read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.measure import Work
from ptxlab.measure.block_scaled import NVFP4, numbers
from ptxlab.verify import Array, Scalar, Size, Task

BLOCKS = "ceil_div({}, 128), ceil_div(k, 64), 32, 4, 4"


def matrix(name: str, rows: str) -> list[Array]:
    """A matrix in NVFP4 and its factors."""
    return [
        Array(name, "u8", f"{rows}, k // 2", values="integers 0 256"),
        Array(f"{name}_factors", "e4m3", BLOCKS.format(rows), values="uniform 0.25 2"),
    ]


def reference(a: Any, a_factors: Any, b: Any, b_factors: Any) -> Any:
    """Both matrices in float64."""
    return numbers(np, NVFP4, a, a_factors) @ numbers(np, NVFP4, b, b_factors).T


task = Task(
    "nvfp4_gemm",
    reference,
    sizes={"m": Size(1, 140), "n": Size(8, 136, 8), "k": Size(64, 320, 32)},
    arguments=[*matrix("a", "m"), *matrix("b", "n"), Array("d", "f16", "m, n", role="out"), Scalar("m"), Scalar("n"),
               Scalar("k")],
    shapes=[{"m": 128, "n": 128, "k": 256}],
    timed=[{"m": 128, "n": 7168, "k": 16384}, {"m": 128, "n": 4096, "k": 7168}, {"m": 128, "n": 7168, "k": 2048}],
    tolerance=2e-3,
    hidden=3,
    seeds=2,
    work=lambda m, n, k: Work(flops=2 * m * n * k, bytes=(m + n) * k * 9 / 16 + 2 * m * n, rate="nvfp4"),
    title=__doc__,
)  # fmt: skip
