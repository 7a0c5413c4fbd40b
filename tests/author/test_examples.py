"""The examples compute what NumPy computes, with every detector on."""

import numpy as np
import pytest

from .examples.hgemm import hgemm
from .examples.reduction import row_sums
from .examples.saxpy import saxpy
from .examples.sgemm import sgemm


def test_saxpy() -> None:
    x = np.arange(1000, dtype=np.float32)
    y = np.ones(1000, np.float32)
    saxpy.launch(grid=4, block=256, args=[x, y, 2.0, 1000])
    assert np.array_equal(y, 2 * np.arange(1000, dtype=np.float32) + 1)


@pytest.mark.parametrize("columns", [1, 31, 32, 100])
def test_row_sums(columns: int) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (5, columns)).astype(np.float32)
    sums = np.zeros(5, np.float32)
    row_sums.launch(grid=5, block=32, args=[x, sums, columns])
    assert np.array_equal(sums, x.sum(1))


@pytest.mark.parametrize(("m", "n", "k", "tile"), [(16, 16, 16, 16), (19, 21, 35, 16), (9, 8, 17, 8)])
def test_sgemm(m: int, n: int, k: int, tile: int) -> None:
    random = np.random.default_rng(1)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    c = np.zeros((m, n), np.float32)
    grid = (-(-n // tile), -(-m // tile))
    sgemm.specialize(TILE=tile).launch(grid=grid, block=(tile, tile), args=[a, b, c, m, n, k])
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@pytest.mark.parametrize(
    ("m", "n", "k", "stages"), [(16, 16, 32, 2), (32, 48, 64, 2), (32, 16, 96, 3), (16, 16, 32, 4)]
)
def test_hgemm(m: int, n: int, k: int, stages: int) -> None:
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), np.float32)
    hgemm.specialize(STAGES=stages).launch(grid=(n // 16, m // 16), block=32, args=[a, b, c, n, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
