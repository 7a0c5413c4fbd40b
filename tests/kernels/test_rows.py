"""Kernels that go over rows, beyond the gallery's own sizes: how rows are shared, odd places, and unusual numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import cross_entropy, layer_norm, softmax
from ptxlab.kernels.cross_entropy import find_gradient, read_once
from ptxlab.kernels.layer_norm import CAPACITY as OF_LAYER_NORM
from ptxlab.kernels.layer_norm.kernel import layer_norm as layer_norm_kernel
from ptxlab.kernels.parts.rows import launch_rows, specialize
from ptxlab.kernels.parts.spreads import Capacity, Spread
from ptxlab.kernels.rms_norm import CAPACITY as OF_RMS_NORM
from ptxlab.kernels.rms_norm import FUSED
from ptxlab.kernels.rms_norm.kernel import Form
from ptxlab.kernels.rms_norm.kernel import rms_norm as rms_norm_kernel
from ptxlab.kernels.softmax import CAPACITY as OF_SOFTMAX
from ptxlab.kernels.softmax.kernel import softmax as softmax_kernel
from ptxlab.measure import Launch
from ptxlab.toolchain import assemble
from tests.kernels.left_out import codes, lines_left_out, without

from ..tools import needs_ptxas


@pytest.mark.parametrize(
    ("columns", "type", "spread"),
    [
        (100, np.float32, "f32x4_32x1_registers"),
        (101, np.float32, "f32x1_32x4_registers"),
        (1024, np.float32, "f32x4_128x2_registers"),
        (8192, ml_dtypes.bfloat16, "bf16x8_256x4_registers"),
        (32768, ml_dtypes.bfloat16, "bf16x8_512x8_shared"),
        (16388, np.float32, "f32x4_1024x5_registers_4_blocks"),
        (131072, ml_dtypes.bfloat16, "bf16x8_2048x8_registers_8_blocks"),
        (262144, np.float32, "f32x4_8192x8_registers_16_blocks"),
        (600000, np.float32, "f32x4_1024x4_global"),
        (4097, np.float32, "f32x1_512x16_global"),
    ],
)
def test_how_a_row_is_shared(columns: int, type: Any, spread: str) -> None:
    assert str(Spread.of(OF_SOFTMAX, columns, np.empty((1, columns), type))) == spread


def test_many_long_rows_of_layer_norm_stream() -> None:
    def spread(rows: int, columns: int, type: Any) -> str:
        x = np.lib.stride_tricks.as_strided(np.empty(1, type), (rows, columns), (0, 0))
        return str(Spread.of(OF_LAYER_NORM, columns, x))

    assert spread(256, 262144, np.float32) == "f32x4_4096x16_stream_16_blocks_2_early_11x2"
    assert spread(200, 100096, ml_dtypes.bfloat16) == "bf16x8_2048x7_stream_16_blocks_2_early_2x4"
    for rows, columns in ((20, 262144), (256, 262100), (256, 131072), (256, 300032)):
        assert "stream" not in spread(rows, columns, np.float32)


def test_rows_that_are_too_long_are_read_again() -> None:
    spread = Spread("f32", 4, 64, 2, "global")
    x = np.random.default_rng(1).standard_normal((2, 1300), np.float32) + 7
    weight, y, z = np.ones(1300, np.float32), np.empty_like(x), np.empty_like(x)
    plain = launch_rows(rms_norm_kernel, spread, 2, [x, weight, y, 0, 0, 0, 2, 1300, 0.0], form=Form())
    assert codes(plain) == codes(launch_rows(layer_norm_kernel, spread, 2, [x, weight, weight, z, 2, 1300, 0.0])) == []
    wide = x.astype(np.float64)
    assert np.allclose(y, wide / np.sqrt((wide**2).mean(axis=1, keepdims=True)), rtol=1e-5)
    assert np.allclose(z - 1, (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True), atol=1e-5)


def clustered(where: str = "registers") -> Launch:
    """Rows that four blocks share, with a rest that not all threads have."""
    x = np.random.default_rng(1).standard_normal((2, 1300), np.float32)
    spread = Spread("f32", 4, 256, 2, where, cluster=4)
    return launch_rows(softmax_kernel, spread, 2, [x, np.full_like(x, np.nan), 2, 1300])


@pytest.mark.parametrize("where", ["registers", "shared"])
def test_a_cluster_shares_a_row(where: str) -> None:
    launch = clustered(where)
    for seed in range(2):
        assert codes(launch, seed) == []
    x, y, *_ = launch.args
    powers = np.exp(x.astype(np.float64))
    assert np.allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


# What is left out of the exchange in a cluster, and what is found then.
LOST = {
    "mbarrier.init": "bad-barrier",
    "fence.mbarrier_init": "data-race",
    "barrier.cluster.arrive": "bad-barrier",
    "barrier.cluster.wait": "bad-barrier",
    "mbarrier.arrive.expect_tx": "hang",
    "st.async": "hang",
    "cp.async.wait_all": "data-race",
}


IN_BULK = ("mbarrier.init", "barrier.cluster.arrive", "st.async", "cp.async.wait_all")


@pytest.mark.parametrize("lost", [pytest.param(one, marks=pytest.mark.bulk if one in IN_BULK else ()) for one in LOST])
def test_what_is_left_out_of_a_cluster_is_found(lost: str) -> None:
    assert LOST[lost] in codes(without(clustered("shared"), lost))


@pytest.mark.parametrize(("where", "early"), [("registers", 2), ("shared", 1)])
def test_a_cluster_has_two_rows_at_a_time(where: str, early: int) -> None:
    x = np.random.default_rng(1).standard_normal((4, 900), np.float32) + 3
    weight, y, z = np.linspace(1, 2, 900, dtype=np.float32), np.full_like(x, np.nan), np.full_like(x, np.nan)
    spread = Spread("f32", 4, 128, 2, where, cluster=2, rows=2, early=early)
    plain = launch_rows(rms_norm_kernel, spread, 4, [x, weight, y, 0, 0, 0, 4, 900, 0.0], form=Form())
    assert codes(plain) == codes(launch_rows(layer_norm_kernel, spread, 4, [x, weight, -weight, z, 4, 900, 0.0])) == []
    wide = x.astype(np.float64)
    distance = wide - wide.mean(1, keepdims=True)
    assert np.allclose(y, wide / np.sqrt((wide**2).mean(1, keepdims=True)) * weight, rtol=1e-5)
    assert np.allclose(z, distance / distance.std(1, keepdims=True) * weight - weight, atol=5e-6)


def streamed(kernel: Any, early: int, rows: int, at_a_time: int = 2, **constants: Any) -> tuple[Launch, Any, Any]:
    """A launch of one or two clusters of two blocks with pieces of 608 columns, and its matrices."""
    x = np.random.default_rng(1).standard_normal((rows, 608), np.float32) + 3
    y, weight = np.full_like(x, np.nan), np.linspace(1, 2, 608, dtype=np.float32)
    vectors = [weight, -weight][:early]
    spread = Spread(
        "f32", 4, 128, 2, "stream", cluster=2, rows=at_a_time, early=early, stages=3, piece=1, clusters=3 - at_a_time
    )
    norm = [0, 0, 0] if constants else []
    epsilon = [0.0] if early else []
    return launch_rows(kernel, spread, rows, [x, *vectors, y, *norm, rows, 608, *epsilon], **constants), x, y


@pytest.mark.parametrize(("rows", "at_a_time"), [pytest.param(19, 2, marks=pytest.mark.bulk), (5, 1)])
def test_rows_stream_through_a_cluster(rows: int, at_a_time: int) -> None:
    def result(*given: Any, **constants: Any) -> Any:
        launch, x, y = streamed(*given, rows, at_a_time, **constants)
        assert codes(launch) == []
        found = y.copy()
        assert codes(launch, seed=1) == []
        assert np.array_equal(found, y)
        return x.astype(np.float64), y

    weight = np.linspace(1, 2, 608, dtype=np.float32)
    x, y = result(softmax_kernel, 0)
    powers = np.exp(x)
    assert np.allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-6)
    x, y = result(rms_norm_kernel, 1, form=Form())
    assert np.allclose(y, x / np.sqrt((x**2).mean(1, keepdims=True)) * weight, rtol=1e-6)
    x, y = result(layer_norm_kernel, 2)
    distance = x - x.mean(1, keepdims=True)
    assert np.allclose(y, distance / distance.std(1, keepdims=True) * weight - weight, atol=5e-6)


@pytest.mark.bulk
def test_what_is_left_out_of_a_stream_is_found() -> None:
    for one in lines_left_out(streamed(layer_norm_kernel, 2, 19)[0]):
        if "mbarrier_init" not in one.name:  # the barrier of the cluster is a release, too
            assert codes(one.changed), one.name


def test_the_gradient_of_cross_entropy() -> None:
    x = np.random.default_rng(3).standard_normal((3, 600), np.float32)
    targets, factors = np.array([5, -100, 599]), np.array([2, 3, 4], np.float32)
    loss, logarithms, y = np.empty(3, np.float32), np.empty(3, np.float32), np.empty_like(x)
    assert codes(read_once(x, targets, loss, logarithms)) == []
    assert codes(find_gradient(x, targets, logarithms, factors, y)) == []
    powers = np.exp(x.astype(np.float64))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    wanted[[0, 2], [5, 599]] -= 1
    assert np.allclose(y, wanted * [[2], [0], [4]], atol=1e-6)
    assert np.allclose(loss, cross_entropy(x, targets, reduction="none"))


@pytest.mark.parametrize("distance", [0.0, 1000.0])
def test_layer_norm_of_numbers_far_from_zero(distance: float) -> None:
    x = (np.random.default_rng(4).standard_normal((2, 500)) + distance).astype(np.float32)
    ones, zeros = np.ones(500, np.float32), np.zeros(500, np.float32)
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert np.allclose(layer_norm(x, ones, zeros, 0.0), wanted, atol=1e-6 * max(distance, 1))


def test_layer_norm_with_a_first_element_far_from_the_others() -> None:
    """Threads measure distances from the first element that they have."""
    x = np.random.default_rng(4).standard_normal((2, 500)).astype(np.float32)
    x[:, ::4] += 1000
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert np.allclose(layer_norm(x, np.ones(500, np.float32), np.zeros(500, np.float32), 0.0), wanted, atol=1e-6)


def test_a_matrix_that_begins_anywhere() -> None:
    room = np.random.default_rng(2).standard_normal(1 + 3 * 64, np.float32)
    x = room[1:].reshape(3, 64)
    y = softmax(x)
    powers = np.exp(x)
    assert np.allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_softmax_of_what_is_masked() -> None:
    x = np.full((4, 200), -np.inf, np.float32)
    x[0, 7] = -1e30
    x[1, 150:] = 3.0
    x[2] = 30000.0
    y = np.empty_like(x)
    softmax(x, out=y)
    assert y[0, 7] == 1.0
    assert y[0].sum() == 1.0
    assert np.allclose(y[1, 150:], 1 / 50)
    assert (y[1, :150] == 0).all()
    assert np.allclose(y[2], 1 / 200)
    assert np.isnan(y[3]).all()


@needs_ptxas
@pytest.mark.parametrize(
    ("kernel", "capacity", "constants"),
    [
        (softmax_kernel, OF_SOFTMAX, {}),
        (layer_norm_kernel, OF_LAYER_NORM, {}),
        (rms_norm_kernel, OF_RMS_NORM, {"form": Form()}),
        (rms_norm_kernel, FUSED, {"form": Form(residual=True, scale="row"), "target": "sm_89"}),
    ],
)
@pytest.mark.parametrize(
    ("columns", "type"),
    [
        (1024, np.float32),
        (8192, ml_dtypes.bfloat16),
        (32768, np.float32),
        pytest.param(65536, ml_dtypes.bfloat16, marks=pytest.mark.bulk),
        pytest.param(131072, ml_dtypes.bfloat16, marks=pytest.mark.bulk),
        pytest.param(262144, ml_dtypes.bfloat16, marks=pytest.mark.bulk),
        pytest.param(262144, np.float32, marks=pytest.mark.bulk),
    ],
)
def test_as_many_threads_as_are_asked_for_fit_without_spilling(
    kernel: Any, capacity: Capacity, constants: Any, columns: int, type: Any
) -> None:
    spread = Spread.of(capacity, columns, np.empty((1, columns), type))
    (resources,) = assemble(specialize(kernel, spread, **constants).ptx, "sm_90").resources
    assert resources.spill_stores == 0
    assert resources.registers * max((spread.at_a_time or 0) // spread.block, 1) * spread.block <= 65536
