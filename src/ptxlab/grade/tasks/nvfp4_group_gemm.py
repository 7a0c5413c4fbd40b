"""Dᵢ = Aᵢ·Bᵢᵀ of two groups of NVFP4 matrices with rows of their own, in as few launches as one likes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.grade.tasks.nvfp4_gemm import matrix
from ptxlab.measure import Work
from ptxlab.measure.block_scaled import NVFP4, numbers
from ptxlab.verify import Array, Scalar, Size, Task

GROUPS = 2


def reference(**given: Any) -> dict[str, Any]:
    """Each group in float64."""
    sides = [[numbers(np, NVFP4, given[f"{one}{group}"], given[f"{one}{group}_factors"]) for one in "ab"]
             for group in range(GROUPS)]  # fmt: skip
    return {f"d{group}": a @ b.T for group, (a, b) in enumerate(sides)}


def work(m0: int, m1: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    rows = m0 + m1
    return Work(flops=2 * rows * n * k, bytes=(rows + GROUPS * n) * k * 9 / 16 + 2 * rows * n, rate="nvfp4")


task = Task(
    "nvfp4_group_gemm",
    reference,
    sizes={"m0": Size(1, 140), "m1": Size(1, 60), "n": Size(8, 136, 8), "k": Size(64, 256, 32)},
    arguments=[
        *(one for group in range(GROUPS) for one in
          (*matrix(f"a{group}", f"m{group}"), *matrix(f"b{group}", "n"),
           Array(f"d{group}", "f16", f"m{group}, n", role="out"))),
        *(Scalar(name) for name in ("m0", "m1", "n", "k")),
    ],
    shapes=[{"m0": 40, "m1": 24, "n": 96, "k": 128}],
    timed=[{"m0": 192, "m1": 320, "n": 3072, "k": 4096}, {"m0": 128, "m1": 384, "n": 4096, "k": 1536}],
    tolerance=2e-3,
    hidden=3,
    seeds=2,
    work=work,
    title=__doc__,
)  # fmt: skip
