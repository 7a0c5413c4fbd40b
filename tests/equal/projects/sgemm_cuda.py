# ruff: noqa: E501
"""Kernels of SGEMM_CUDA."""

from typing import Any

from tests.equal.projects.stranger import Stranger, f


def sgemm(file: str, entry: str, grid: Any, block: Any, m: int, n: int, k: int, **more: Any) -> Stranger:
    return Stranger("SGEMM_CUDA", f"src/kernels/{file}.cuh", entry, grid, block,
                    [m, n, k, 0.5, f(m, k), f(k, n), 3.0, f(m, n)],
                    lambda m, n, k, alpha, x, y, beta, c: {7: alpha * (x @ y) + beta * c},
                    instance=[entry] if "<" in entry else (),
                    options=("-include=cuda_runtime.h", "-DCEIL_DIV(M, N)=(((M) + (N)-1) / (N))", *(["-DWARPSIZE=32"] if file.startswith("12") else [])), **more)  # fmt: skip


SGEMM = [
    sgemm("10_kernel_warptiling", "sgemmWarptiling<64, 64, 16, 32, 32, 1, 4, 4, 128>", (1, 2), 128, 128, 64, 32),
    sgemm("12_kernel_double_buffering", "runSgemmDoubleBuffering2<64, 64, 16, 32, 32, 1, 4, 4, 128>", (1, 1), 128, 64, 64,
          48),
    sgemm("1_naive", "sgemm_naive", (2, 2), (8, 8), 14, 10, 21),
    sgemm("2_kernel_global_mem_coalesce", "sgemm_global_mem_coalesce<8>", (2, 2), 64, 14, 10, 21),
    sgemm("4_kernel_1D_blocktiling", "sgemm1DBlocktiling<64, 64, 8, 8>", (1, 1), 512, 64, 64, 24),
    sgemm("6_kernel_vectorize", "sgemmVectorize<128, 128, 8, 8, 8>", (1, 1), 256, 128, 128, 16),
    sgemm("7_kernel_resolve_bank_conflicts", "sgemmResolveBankConflicts<128, 128, 8, 8, 8>", (1, 1), 256, 128, 128, 24),
    sgemm("9_kernel_autotuned", "sgemmAutotuned<128, 128, 16, 8, 8>", (1, 1), 256, 128, 128, 16),
]  # fmt: skip
