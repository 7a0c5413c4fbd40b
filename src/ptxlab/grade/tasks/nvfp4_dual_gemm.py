"""D = SiLU(A·B₁ᵀ) ⊙ A·B₂ᵀ of NVFP4 matrices; factors in blocks, as tensor cores read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.grade.tasks.nvfp4_gemm import BLOCKS
from ptxlab.measure import Work
from ptxlab.measure.block_scaled import NVFP4, numbers
from ptxlab.verify import Array, Scalar, Size, Task


def matrix(name: str, rows: str) -> list[Array]:
    """A matrix with small factors: SiLU is not linear where its argument is small."""
    return [
        Array(name, "u8", f"{rows}, k // 2", values="integers 0 256"),
        Array(f"{name}_factors", "e4m3", BLOCKS.format(rows), values="uniform 0.02 0.2"),
    ]


def reference(a: Any, a_factors: Any, b1: Any, b1_factors: Any, b2: Any, b2_factors: Any) -> Any:
    """All matrices in float64."""
    left = numbers(np, NVFP4, a, a_factors)
    x, y = (left @ numbers(np, NVFP4, *b).T for b in ((b1, b1_factors), (b2, b2_factors)))
    return x / (1 + np.exp(-x)) * y


task = Task(
    "nvfp4_dual_gemm",
    reference,
    sizes={"m": Size(1, 140), "n": Size(8, 136, 8), "k": Size(64, 320, 32)},
    arguments=[*matrix("a", "m"), *matrix("b1", "n"), *matrix("b2", "n"), Array("d", "f16", "m, n", role="out"),
               Scalar("m"), Scalar("n"), Scalar("k")],
    shapes=[{"m": 128, "n": 128, "k": 256}],
    timed=[{"m": 256, "n": 4096, "k": 7168}, {"m": 512, "n": 4096, "k": 7168}, {"m": 256, "n": 3072, "k": 4096},
           {"m": 512, "n": 3072, "k": 7168}],
    tolerance=4e-3,
    hidden=3,
    seeds=2,
    work=lambda m, n, k: Work(flops=4 * m * n * k, bytes=(m + 2 * n) * k * 9 / 16 + 2 * m * n, rate="nvfp4"),
    title=__doc__,
)  # fmt: skip
