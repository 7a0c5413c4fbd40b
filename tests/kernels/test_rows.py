"""Kernels that go over rows, beyond the gallery's own sizes: how rows are shared, odd places, and unusual numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import layer_norm, rms_norm, softmax
from ptxlab.kernels.layer_norm.kernel import layer_norm as layer_norm_kernel
from ptxlab.kernels.rms_norm.kernel import rms_norm as rms_norm_kernel
from ptxlab.kernels.rows import Capacity, Spread, specialize
from ptxlab.kernels.softmax.kernel import softmax as softmax_kernel
from ptxlab.toolchain import assemble

from ..tools import needs_ptxas


@pytest.mark.parametrize(
    ("columns", "type", "spread"),
    [
        (100, np.float32, "f32x4_32x1_registers"),
        (101, np.float32, "f32x1_32x4_registers"),
        (1024, np.float32, "f32x4_128x2_registers"),
        (8192, ml_dtypes.bfloat16, "bf16x8_256x4_registers"),
        (32768, ml_dtypes.bfloat16, "bf16x8_512x8_shared"),
        (57344, np.float32, "f32x4_1024x14_shared"),
        (57348, np.float32, "f32x4_1024x4_global"),
        (4097, np.float32, "f32x1_512x16_global"),
    ],
)
def test_how_a_row_is_shared(columns: int, type: Any, spread: str) -> None:
    assert str(Spread.of(Capacity(), columns, np.empty((1, columns), type))) == spread


def test_a_row_too_long_to_be_kept() -> None:
    x = np.random.default_rng(1).standard_normal((1, 57348), np.float32)
    weight, y = np.ones(57348, np.float32), np.empty_like(x)
    assert rms_norm.read_once(x, weight, y).run(device="cpu").diagnostics == []
    assert np.allclose(y, x / np.sqrt((x.astype(np.float64) ** 2).mean()), rtol=1e-4)


def test_a_matrix_that_begins_anywhere() -> None:
    room = np.random.default_rng(2).standard_normal(1 + 3 * 64, np.float32)
    x, y = room[1:].reshape(3, 64), np.empty((3, 64), np.float32)
    assert softmax.read_once(x, y).run(device="cpu").diagnostics == []
    powers = np.exp(x)
    assert np.allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_softmax_of_what_is_masked() -> None:
    x = np.full((4, 200), -np.inf, np.float32)
    x[0, 7] = -1e30
    x[1, 150:] = 3.0
    x[2] = 30000.0
    y = np.empty_like(x)
    assert softmax.read_once(x, y).run(device="cpu").diagnostics == []
    assert y[0, 7] == 1.0
    assert y[0].sum() == 1.0
    assert np.allclose(y[1, 150:], 1 / 50)
    assert (y[1, :150] == 0).all()
    assert np.allclose(y[2], 1 / 200)
    assert np.isnan(y[3]).all()


@needs_ptxas
@pytest.mark.parametrize(
    ("kernel", "room"),
    [
        (softmax_kernel, softmax.CAPACITY),
        (layer_norm_kernel, layer_norm.CAPACITY),
        (rms_norm_kernel, rms_norm.CAPACITY),
    ],
)
@pytest.mark.parametrize(("columns", "type"), [(1024, np.float32), (8192, ml_dtypes.bfloat16), (32768, np.float32)])
def test_as_many_threads_as_are_asked_for_fit_without_spilling(
    kernel: Any, room: Capacity, columns: int, type: Any
) -> None:
    spread = Spread.of(room, columns, np.empty((1, columns), type))
    (resources,) = assemble(specialize(kernel, spread).ptx, "sm_90").resources
    assert resources.spill_stores == 0
    assert resources.registers * max((spread.at_a_time or 0) // spread.block, 1) * spread.block <= 65536
