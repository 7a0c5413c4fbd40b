"""wgmma as compilers write it: kernels of nvcc and Triton from the corpus, with the detectors on."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from tests.corpus import produced

SCRATCH = [np.zeros(16, np.uint8)] * 2  # two parameters that Triton adds, and these kernels do not use


def corpus(name: str) -> Any:
    (case,) = [case for case in produced() if case.name == name]
    return ptxlab.parse(case.text(), name=f"{name}.ptx")


def small(rows: int, columns: int, type: Any, seed: int) -> Any:
    """Small integers, of which all sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, (rows, columns)).astype(type)


def exact(a: Any, b: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.slow
def test_tensor_copies_and_three_warpgroups_of_nvcc() -> None:
    a, b = small(128, 320, ml_dtypes.bfloat16, 0), small(128, 320, ml_dtypes.bfloat16, 1)
    maps = [ptxlab.tensor_map(matrix, box=(128, 64), swizzle="128B") for matrix in (a, b)]
    c = np.zeros((128, 128), np.float32)
    kernel = corpus("wgmma.sm_90a")["gemm"]
    result = kernel.launch(1, 384, [*maps, c, 128, 320], shared=4 * 32768 + 64, device="cpu")
    assert np.array_equal(c, exact(a, b.T))
    assert result.diagnostics == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "type", "out", "tile"),
    [("f16", np.float16, np.float16, (64, 64)), ("fp8", ml_dtypes.float8_e4m3fn, np.float16, (64, 128))],
)
def test_products_of_triton(name: str, type: Any, out: Any, tile: tuple[int, int]) -> None:
    m, n, k = 96, 144, 160
    a, b, c = small(m, k, type, 0), small(k, n, type, 1), np.zeros((m, n), out)
    grid = -(-m // tile[0]) * -(-n // tile[1])
    kernel = corpus(f"matmul.{name}.sm_90a")["matmul"]
    result = kernel.launch(grid, 128, [a, b, c, m, n, k, k, n, n, *SCRATCH], shared=1 << 16, device="cpu")
    assert np.array_equal(c, exact(a, b).astype(out))
    assert result.diagnostics == []


@pytest.mark.slow
def test_attention_of_triton() -> None:
    length, width = 128, 64
    q, k, v = (small(length, width, np.float16, seed) / np.float16(8) for seed in range(3))
    out = np.zeros((length, width), np.float16)
    kernel = corpus("attention.forward.sm_90a")["forward"]
    args = [q, k, v, out, width, length, np.float32(0.2), *SCRATCH]
    result = kernel.launch((length // 64, 1), 128, args, shared=1 << 17, device="cpu")
    weights = np.exp2(exact(q, k.T) * 0.2)
    assert np.allclose(out, exact(weights, v) / weights.sum(axis=1, keepdims=True), atol=2e-3)
    assert result.diagnostics == []
