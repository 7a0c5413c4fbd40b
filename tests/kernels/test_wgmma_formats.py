"""Products by wgmma of fp8, tf32 and s8: exact on whole numbers, and silent, in every way that D is stored."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ptxlab.device.array_types import DTYPES
from ptxlab.kernels.parts.finishing import Extras
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm import launch
from tests.kernels.left_out import codes


@dataclass(frozen=True)
class Case:
    formats: Formats
    shape: Shape
    extents: tuple[int, int, int]
    scales: bool = False


CASES = {
    "e4m3 to bf16": Case(Formats("e4m3", "e4m3", "bf16"), Shape(1, 16, 2), (70, 24, 144)),
    "e5m2 and e4m3 to f32, swapped": Case(
        Formats("e5m2", "e4m3", "f32"), Shape(1, 24, 2, swap_ab=True, buffers=1), (9, 70, 144), scales=True
    ),
    "tf32, rows of any length": Case(Formats("tf32", "tf32", "f32"), Shape(1, 16, 2), (70, 21, 40)),
    "s8, parts of k": Case(Formats("s8", "s8", "s32"), Shape(1, 48, 2, split_k=2, buffers=1), (70, 52, 272)),
}


def matrix(rng: Any, type: str, *shape: int) -> Any:
    return rng.integers(-4, 5, shape).astype(DTYPES["f32" if type == "tf32" else type])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_product_is_exact_and_silent(case: Case) -> None:
    rng, (m, n, k) = np.random.default_rng(0), case.extents
    a, b = matrix(rng, case.formats.left, m, k), matrix(rng, case.formats.right, n, k)
    d = np.full((m, n), 77, DTYPES[case.formats.out])
    scales = np.full(1, 0.5, np.float32), np.full(1, 4, np.float32)
    extras = Extras(scales=True) if case.scales else None
    made = launch(
        case.formats, (a, b, d), case.extents, case.shape, blocks=case.shape.blocks, extras=extras, scales=scales
    )
    assert codes(made) == []
    expected = (2 if case.scales else 1) * (a.astype(np.float64) @ b.T.astype(np.float64))
    assert np.array_equal(d, expected.astype(d.dtype))
