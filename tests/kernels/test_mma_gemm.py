"""The `mma.sync` matrix product beyond the gallery's own sizes: large tiles, every shape, and what its memory costs."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.author import Kernel
from ptxlab.kernels.mma_gemm import product
from ptxlab.kernels.mma_gemm.shapes import LARGE, NARROW, SMALL, SQUARE, WIDE, Shape, suited
from ptxlab.measure import UnsuitedError
from ptxlab.toolchain import assemble

from ..tools import needs_ptxas


def matrices(m: int, n: int, k: int, type: Any = np.float16) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(m * n + k)
    a, b = (random.integers(-3, 4, (rows, k)).astype(type) for rows in (m, n))
    return a, b, np.full((m, n), -1, np.int32 if type is np.int8 else type)


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("shape", [LARGE, WIDE, SQUARE, NARROW, Shape(64, 128, 32, 64, stages=2, depth=64)])
def test_every_shape_at_its_edges(shape: Shape) -> None:
    m, n, k = shape.rows + 3, shape.columns, shape.depth // 2 * 3 + 8
    a, b, d = matrices(m, n, k)
    assert product(a, b, None, d, shape=shape).run(device="cpu").diagnostics == []
    assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.float8_e4m3fn])
def test_no_bank_conflict(type: Any) -> None:
    a, b, d = matrices(64, 64, 256, type)
    room = d if type is np.float16 else np.empty((64, 64), ml_dtypes.bfloat16)
    requests = product(a, b, None, room).run(device="cpu", profile=True).counters["requests"]
    assert requests["wavefronts"] == requests["ideal_wavefronts"] > 0
    assert requests["sectors"] == requests["ideal_sectors"] > 0


@needs_ptxas
def test_the_kernel_is_assembled_without_spilling() -> None:
    a, b, d = (np.empty((8192, 8192), np.float16) for _ in range(3))
    kernel = product(a, b, None, d).kernel
    assert isinstance(kernel, Kernel)
    (resources,) = assemble(kernel.ptx).resources
    assert resources.spill_stores == 0


@pytest.mark.parametrize(
    ("m", "n", "shape"),
    [(8192, 8192, LARGE), (4096, 4096, WIDE), (2048, 2048, WIDE), (1024, 1024, NARROW), (16, 8192, SMALL)],
)
def test_the_shape_that_suits(m: int, n: int, shape: Shape) -> None:
    assert suited("bf16", m, n) == shape


def test_what_it_does_not_do() -> None:
    a, b, d = matrices(8, 8, 12)
    with pytest.raises(UnsuitedError, match="rows of 24 bytes: they must be a multiple of 16"):
        product(a, b, None, d)
    a, b, d = matrices(8, 8, 16, np.int8)
    with pytest.raises(UnsuitedError, match="gelu is not an activation for s8"):
        product(a, b, None, d, "gelu")
    with pytest.raises(UnsuitedError, match="no product of int8 8x16 and float16 8x16, by columns"):
        product(a, b.astype(np.float16), None, d)
    with pytest.raises(UnsuitedError, match="has no whole number of copies a thread, 64 rows at once"):
        Shape(96, 256, 48, 32, stages=3)
