# ruff: noqa: E501
"""Kernels of PolyBench/GPU, `CUDA`: sizes are macros."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.equal.projects.stranger import Results, Stranger, f, p

N, M = 20, 12
SIZES = [f"-D{name}={value}" for name, value in
         {"N": N, "M": M, "NI": N, "NJ": M, "NK": 9, "NL": 7, "NM": 5, "NX": N, "NY": M, "NP": 8, "NQ": 10, "NR": 3}.items()]  # fmt: skip


def poly(file: str, entry: str, grid: Any, block: Any, args: Sequence[Any], wanted: Callable[..., Results]) -> Stranger:
    sizes = [one for one in SIZES if file in ("ADI/adi", "COVAR/covariance", "GESUMMV/gesummv") or one[:4] != "-DM="]
    return Stranger("polybench", f"{file}.cu", entry, grid, block, args, wanted, options=("-I../../common", *sizes))


def adi(n: int, a: Any, c: Any, x: Any) -> Results:
    x = x.copy()
    for at in range(n - 2, 0, -1):
        x[:, at] = (x[:, at] - x[:, at - 1] * a[:, at - 1]) / c[:, at - 1]
    return {3: x}


def orthogonal(ni: int, nj: int, a: Any, r: Any, q: Any, k: int) -> Results:
    made = (q[:, k : k + 1] * a).sum(0)
    chosen = np.arange(nj) > k
    rows = np.arange(r.shape[0])[:, None] == k
    return {3: np.where(rows & chosen, made, r), 2: np.where(chosen, a - q[:, k : k + 1] * made, a)}


def covariance(m: int, n: int, out: Any, data: Any) -> Results:
    return {2: data.T @ data}


ROWS = (2, 3)
POLYBENCH = [
    poly("2MM/2mm", "mm2_kernel1", ROWS, (8, 8), [N, M, 9, 7, 1.5, 2.5, f(N, M), f(N, 9), f(9, M)],
         lambda *a: {6: a[4] * (a[7] @ a[8])}),
    poly("2MM/2mm", "mm2_kernel2", ROWS, (8, 8), [N, M, 9, 7, 1.5, 2.5, f(N, M), f(M, 7), f(N, 7)],
         lambda *a: {8: a[5] * a[8] + a[6] @ a[7]}),
    poly("3MM/3mm", "mm3_kernel1", ROWS, (8, 8), [N, M, 9, 7, 5, f(N, 9), f(9, M), f(N, M)], lambda *a: {7: a[5] @ a[6]}),
    poly("ADI/adi", "adi_kernel3", 1, 32, [N, f(N, N), p(N, N), f(N, N)], adi),
    poly("ATAX/atax", "atax_kernel2", 1, 32, [N, M, f(N, M), f(M), f(N)], lambda nx, ny, x, y, t: {3: t @ x}),
    poly("BICG/bicg", "bicg_kernel1", 1, 32, [N, M, f(N, M), f(N), f(M)], lambda nx, ny, x, r, s: {4: r @ x}),
    poly("COVAR/covariance", "covar_kernel", 1, 32, [M, N, f(M, M), f(N, M)], covariance),
    poly("COVAR/covariance", "reduce_kernel", ROWS, (8, 8), [M, N, f(M), f(N, M)],
         lambda m, n, mean, data: {3: data - mean}),
    poly("DOITGEN/doitgen", "doitgen_kernel1", (4, 16), (32, 8), [f(1, 128, 128), f(1, 128, 128), f(128, 128), 0],
         lambda s, x, c, r: {0: x @ c}),
    poly("FDTD-2D/fdtd2d", "fdtd_step2_kernel", ROWS, (8, 8), [N, M, f(N, M), f(N, M), f(N, M), 0],
         lambda nx, ny, ex, ey, hz, t: {2: np.where(np.arange(M) > 0, ex - 0.5 * (hz - np.roll(hz, 1, 1)), ex)}),
    poly("GESUMMV/gesummv", "gesummv_kernel", 1, 32, [N, 1.5, 2.5, f(N, N), f(N, N), f(N), f(N), f(N)],
         lambda n, alpha, beta, x, y, t, v, out: {5: t + x @ v, 7: alpha * (t + x @ v) + beta * (out + y @ v)}),
    poly("GRAMSCHM/gramschmidt", "gramschmidt_kernel3", 1, 32, [N, M, f(N, M), f(N, M), f(N, M), 3], orthogonal),
    poly("SYR2K/syr2k", "syr2k_kernel", (3, 3), (8, 8), [N, M, 1.5, 2.5, f(N, M), f(N, M), f(N, N)],
         lambda ni, nj, alpha, beta, x, y, c: {6: beta * c + alpha * (x @ y.T + y @ x.T)}),
    poly("SYRK/syrk", "syrk_kernel", (3, 3), (8, 8), [N, M, 1.5, 2.5, f(N, M), f(N, N)],
         lambda ni, nj, alpha, beta, x, c: {5: beta * c + alpha * (x @ x.T)}),
]  # fmt: skip
