"""Kernels that go over rows, beyond the gallery's own sizes: how rows are shared, odd places, and unusual numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import cross_entropy, layer_norm, softmax
from ptxlab.kernels.cross_entropy import find_gradient, read_once
from ptxlab.kernels.layer_norm.kernel import layer_norm as layer_norm_kernel
from ptxlab.kernels.parts.rows import launch_rows, specialize
from ptxlab.kernels.parts.spreads import Access, Spread
from ptxlab.kernels.rms_norm.kernel import Form
from ptxlab.kernels.rms_norm.kernel import rms_norm as rms_norm_kernel
from ptxlab.kernels.softmax.kernel import softmax as softmax_kernel
from ptxlab.measure import Launch
from ptxlab.toolchain import assemble
from tests.kernels.left_out import codes, without

from ..tools import needs_ptxas


def placed(array: Any, first: int, type: Any = ml_dtypes.bfloat16) -> Any:
    """A copy that begins so many elements after a multiple of 16 bytes."""
    room = np.empty(array.size + first + 16, type)
    before = -room.ctypes.data // room.itemsize % (16 // room.itemsize)
    found = room[before + first : before + first + array.size].reshape(array.shape)
    found[...] = array
    return found


@pytest.mark.parametrize(
    ("rows", "columns", "type", "spread"),
    [
        (500_000, 5, ml_dtypes.bfloat16, "bf16x1_1x5_registers"),
        (500_000, 30, ml_dtypes.bfloat16, "bf16x2_2x8_registers"),
        (70, 5, ml_dtypes.bfloat16, "bf16x1_1x5_registers"),
        (70, 300, np.float32, "f32x4_128x1_registers"),
        (9000, 301, np.float32, "f32x1_32x10_registers"),
        (9000, 8192, ml_dtypes.bfloat16, "bf16x8_128x8_registers"),
        (9000, 8191, ml_dtypes.bfloat16, "bf16x8_128x8_registers_margin_0"),
        (3, 8191, ml_dtypes.bfloat16, "bf16x8_512x2_registers_2_blocks_margin_0"),
        (9000, 262143, ml_dtypes.bfloat16, "bf16x8_4096x8_registers_16_blocks_margin_0"),
        (9000, 262144, np.float32, "f32x4_8192x8_registers_16_blocks"),
        (3, 600_000, np.float32, "f32x4_512x4_pieces"),
    ],
)
def test_how_a_row_is_shared(rows: int, columns: int, type: Any, spread: str) -> None:
    x = np.lib.stride_tricks.as_strided(placed(np.zeros(1), 0, type), (rows, columns), (0, 0))
    assert str(Spread.of([x], [x])) == spread


def test_where_arrays_begin() -> None:
    zeros = np.zeros((2, 2001))
    x, y, moved, vector = placed(zeros, 1), placed(zeros, 1), placed(zeros, 4), placed(zeros[0], 0)
    assert Access.of(2001, [x], [y], []) == Access(8, 0)
    assert Access.of(2001, [x], [y], [vector]) == Access(8, 7)
    assert Access.of(2001, [x], [moved], []) == Access(8, 7, is_shifted=True)
    assert Access.of(2001, [x], [moved, y], []) == Access(1)  # two results that are aligned nowhere together
    assert Access.of(2000, [moved], [moved], []) == Access(4)  # a row has few of these
    assert Access.of(2000, [vector], [vector], []) == Access(8)


KERNELS = ("softmax", "rms_norm", "layer_norm")
EPSILON = 1e-6


def exact(name: str, x: Any, weight: Any, bias: Any) -> Any:
    wide, w, b = (one.astype(np.float64) for one in (x, weight, bias))
    if name == "softmax":
        powers = np.exp(wide - wide.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)
    distance = wide - wide.mean(1, keepdims=True) if name == "layer_norm" else wide
    normal = distance / np.sqrt((distance**2).mean(1, keepdims=True) + EPSILON) * w
    return normal + b if name == "layer_norm" else normal


def launched(name: str, spread: Spread, x: Any, weight: Any, bias: Any, y: Any) -> Launch:
    rows, columns = x.shape
    if name == "softmax":
        return launch_rows(softmax_kernel, spread, rows, [x, y, rows, columns])
    if name == "rms_norm":
        return launch_rows(rms_norm_kernel, spread, rows, [x, weight, y, 0, 0, 0, rows, columns, EPSILON], form=Form())
    return launch_rows(layer_norm_kernel, spread, rows, [x, weight, bias, y, rows, columns, EPSILON])


def check_rows(name: str, spread: Spread, rows: int, columns: int, *places: int) -> None:
    """Compare a kernel with the definition, on arrays that begin at these elements of a vector: x, y, and weights."""
    type = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}[spread.type]
    random = np.random.default_rng(columns)
    x = placed(random.standard_normal((rows, columns)) + 3, places[0], type)
    y = placed(np.full((rows, columns), np.nan), places[1], type)
    weight, bias = (placed(random.standard_normal(columns), places[2], type) for _ in range(2))
    launch = launched(name, spread, x, weight, bias, y)
    assert codes(launch) == []
    tolerance = 1e-6 if spread.type == "f32" else 8e-3
    wanted = exact(name, x, weight, bias)
    assert np.allclose(y.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * abs(wanted).max())


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("spread", "rows", "columns", "places"),
    [
        pytest.param(Spread("bf16", Access(1), 1, 5), 35, 5, (0, 0, 0), marks=pytest.mark.bulk),
        (Spread("bf16", Access(1), 4, 5, is_eager=True), 35, 17, (3, 5, 7)),
        pytest.param(Spread("bf16", Access(2), 2, 9), 17, 34, (0, 2, 4), marks=pytest.mark.bulk),
        pytest.param(Spread("f32", Access(1), 8, 3), 19, 23, (1, 3, 2), marks=pytest.mark.bulk),
        pytest.param(Spread("bf16", Access(8, 7), 8, 3), 9, 203, (0, 0, 0), marks=pytest.mark.bulk),
        (Spread("bf16", Access(8, 7, True), 32, 2, is_eager=True), 8, 303, (3, 2, 5)),
        pytest.param(Spread("f32", Access(4, 3, True), 64, 2), 4, 483, (3, 2, 1), marks=pytest.mark.bulk),
        (Spread("bf16", Access(8, 7, True), 256, 2, cluster=2, ahead=1), 3, 2777, (3, 6, 5)),
        (Spread("bf16", Access(8, 7), 64, 2, is_kept=False), 2, 1501, (3, 3, 5)),
    ],
    ids=str,
)
def test_rows_at_any_place(name: str, spread: Spread, rows: int, columns: int, places: tuple[int, ...]) -> None:
    check_rows(name, spread, rows, columns, *places)


@pytest.mark.bulk
@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_many_lengths(name: str) -> None:
    for columns in (*range(1, 18), 24, 31, 33, 40, 200, 201, 1025, 3053):
        for places in ((0, 0, 0), (columns % 8, 3, 5)):
            x, y = (placed(np.zeros((3, columns)), place) for place in places[:2])
            vectors = [placed(np.zeros(columns), places[2])] * KERNELS.index(name)
            check_rows(name, Spread.of([x], [y], vectors), 3, columns, *places)


def test_a_row_with_an_end_that_is_far_from_its_vectors() -> None:
    """Threads measure distances from an element that they have, also where that is at an end alone."""
    x = np.random.default_rng(1).standard_normal((2, 211)).astype(np.float32)
    x[:, :3] += 1000
    ones, y = np.ones(211, np.float32), np.empty_like(x)
    spread = Spread("f32", Access(4, 3, True), 64, 1)
    assert codes(launched("layer_norm", spread, x, ones, ones - 1, y)) == []
    assert np.allclose(y, exact("layer_norm", x, ones, ones - 1), atol=1e-4)


def test_rows_that_are_too_long_are_read_again() -> None:
    for name in KERNELS:
        check_rows(name, Spread("f32", Access(4), 64, 2, is_kept=False), 2, 1300, 0, 0, 0)


def clustered() -> Launch:
    """Rows that four blocks share, with a rest that not all threads have."""
    x = np.random.default_rng(1).standard_normal((2, 1300), np.float32)
    spread = Spread("f32", Access(4), 256, 2, cluster=4)
    return launch_rows(softmax_kernel, spread, 2, [x, np.full_like(x, np.nan), 2, 1300])


def test_a_cluster_shares_a_row() -> None:
    launch = clustered()
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
}


IN_BULK = ("mbarrier.init", "barrier.cluster.arrive", "st.async")


@pytest.mark.parametrize("lost", [pytest.param(one, marks=pytest.mark.bulk if one in IN_BULK else ()) for one in LOST])
def test_what_is_left_out_of_a_cluster_is_found(lost: str) -> None:
    assert LOST[lost] in codes(without(clustered(), lost))


def test_results_that_other_lanes_have_not_put_together_are_found() -> None:
    x = placed(np.zeros((35, 5)), 0)
    launch = launched("softmax", Spread("bf16", Access(1), 1, 5), x, x, x, placed(x, 3))
    assert "data-race" in codes(without(launch, "bar.warp.sync"))


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
    ("kernel", "vectors", "constants"),
    [
        (softmax_kernel, 0, {}),
        (layer_norm_kernel, 2, {}),
        (rms_norm_kernel, 1, {"form": Form()}),
        (rms_norm_kernel, 1, {"form": Form(residual=True, scale="row"), "target": "sm_89"}),
    ],
)
@pytest.mark.parametrize(
    ("columns", "type"),
    [
        (1024, np.float32),
        (8191, ml_dtypes.bfloat16),
        pytest.param(1023, ml_dtypes.bfloat16, marks=pytest.mark.bulk),
        pytest.param(32767, np.float32, marks=pytest.mark.bulk),
        pytest.param(262143, ml_dtypes.bfloat16, marks=pytest.mark.bulk),
        pytest.param(262144, np.float32, marks=pytest.mark.bulk),
    ],
)
def test_many_rows_fit_without_spilling(kernel: Any, vectors: int, constants: Any, columns: int, type: Any) -> None:
    x = np.lib.stride_tricks.as_strided(placed(np.zeros(1), 0, type), (100_000, columns), (0, 0))
    spread = Spread.of([x], [x], [placed(np.zeros(1), 0, type)] * vectors)
    (resources,) = assemble(specialize(kernel, spread, **constants).ptx, "sm_90").resources
    assert resources.spill_stores == 0
