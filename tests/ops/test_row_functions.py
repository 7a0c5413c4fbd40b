"""The functions of rows that users call: all types, unusual numbers, results in place, and what is refused."""

from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import cross_entropy, layer_norm, rms_norm, softmax

TYPES: dict[Any, float] = {np.float32: 1e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}
COLUMNS = 300


def drawn(type: Any, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(type)


def exact_norm(x: Any, eps: float = 1e-6) -> Any:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("type", [np.float32, pytest.param(np.float16, marks=pytest.mark.bulk), ml_dtypes.bfloat16])
def test_they_are_what_they_say(type: Any) -> None:
    x, weight, bias = drawn(type, 2, 2, COLUMNS), drawn(type, COLUMNS, seed=1), drawn(type, COLUMNS, seed=2)
    wide, w, b = (one.astype(np.float64) for one in (x, weight, bias))
    powers = np.exp(wide)
    distance = wide - wide.mean(-1, keepdims=True)
    layer = distance / np.sqrt((distance**2).mean(-1, keepdims=True) + 1e-5) * w + b
    for found, wanted in (
        (softmax(x), powers / powers.sum(-1, keepdims=True)),
        (layer_norm(x, weight, bias), layer),
        (rms_norm(x, weight), exact_norm(x) * w),
    ):
        assert found.dtype == x.dtype
        assert np.allclose(found.astype(np.float64), wanted, rtol=TYPES[type], atol=TYPES[type])


def test_a_result_may_be_where_the_matrix_is() -> None:
    x = drawn(np.float32, 3, COLUMNS)
    wanted = softmax(x)
    assert softmax(x, out=x) is x
    assert np.array_equal(x, wanted)


def test_the_sum_and_its_norm_in_fp8() -> None:
    x, residual, weight = (drawn(np.float32, *shape, seed=1) for shape in ((4, 80), (4, 80), (80,)))
    x[1] = residual[1] = 0
    x[2, 5] = np.nan
    found, summed, scales = rms_norm(x, weight, residual=residual, quantize="row")
    assert np.array_equal(summed, x + residual, equal_nan=True)
    normal = exact_norm(summed) * weight
    for row in (0, 3):
        assert np.isclose(scales[row], abs(normal[row]).max() / 448)
        assert abs(found[row].astype(np.float64)).max() == 448
    assert np.allclose(found.astype(np.float64)[[0, 3]] * scales[[0, 3], None], normal[[0, 3]], rtol=0.0626, atol=2e-4)
    assert (scales[1], found[1].astype(float).any()) == (1, False)
    assert np.isnan([scales[2], *found[2].astype(float)]).all()


def test_one_scale_for_all_rows() -> None:
    x, weight = drawn(np.float32, 2, 64), np.ones(64, np.float32)
    found = rms_norm(x, weight, quantize=np.array([0.002], np.float32))
    wanted = np.clip(exact_norm(x) / 0.002, -448, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    close = found.astype(float) == wanted.astype(float)
    assert close.mean() > 0.98  # a number in the middle of two may go to either


def test_numbers_that_are_not_finite() -> None:
    x = drawn(np.float32, 4, 40)
    x[0, 3], x[1, 4], x[2] = np.nan, np.inf, -np.inf
    found = softmax(x)
    assert np.isnan(found[:3]).all()
    assert np.isclose(found[3].sum(), 1)
    x[2, 7] = 5.0
    assert softmax(x)[2].tolist() == [float(column == 7) for column in range(40)]
    losses = cross_entropy(x, np.array([1, 1, 7, 0]), reduction="none")
    assert np.isnan(losses[:2]).all()
    assert losses[2] == 0
    assert cross_entropy(x, np.array([0, 0, 1, 0]), reduction="none")[2] == np.inf


def test_the_loss_of_rows_and_of_all() -> None:
    x = (drawn(np.float32, 4, 200) * 30).astype(ml_dtypes.bfloat16)
    targets = np.array([0, 199, -100, 500])
    wide = x.astype(np.float64)
    wanted = [np.log(np.exp(wide[i] - wide[i].max()).sum()) + wide[i].max() - wide[i, targets[i]] for i in (0, 1)]
    losses = cross_entropy(x, targets, reduction="none")
    assert np.allclose(losses[:2], wanted)
    assert losses[2] == 0
    assert np.isnan(losses[3])  # there is no class 500
    assert np.isclose(cross_entropy(x[:3], targets[:3]), sum(wanted) / 2)
    assert np.isclose(cross_entropy(x[:3], targets[:3].astype(np.int32), reduction="sum"), sum(wanted))
    assert np.isclose(cross_entropy(x[:1], targets[:1], ignore_index=0, reduction="sum"), 0)


def test_arrays_without_elements() -> None:
    weight = np.ones(5, np.float32)
    assert softmax(np.empty((0, 5), np.float32)).shape == (0, 5)
    assert softmax(np.empty((2, 0), np.float32)).shape == (2, 0)
    assert layer_norm(np.empty((0, 5), np.float32), weight, weight).shape == (0, 5)
    assert [one.shape for one in rms_norm(np.empty((0, 5), np.float32), weight, quantize="row")] == [(0, 5), (0,)]
    assert cross_entropy(np.empty((0, 5), np.float32), np.empty(0, np.int64), reduction="sum") == 0


X = np.zeros((4, 6), np.float32)
REFUSED: list[tuple[Any, str]] = [
    (lambda: softmax("x"), "`x` is a str"),
    (lambda: softmax(np.zeros((), np.float32)), "`x` is one number"),
    (lambda: softmax(X.astype(np.int32)), "`x` has elements of type int32: this kernel is for float32, float16 and"),
    (lambda: softmax(X[:, ::2]), "`x` has gaps"),
    (lambda: softmax(X.T), "`x` has gaps between its elements, or is transposed"),
    (lambda: softmax(X, out=X[:2]), "`out` is 2 by 6, and must be 4 by 6"),
    (lambda: softmax(X, out=X.astype(np.float16)), "`out` is of type float16, and must be of float32"),
    (lambda: softmax(X[:3], out=X[1:]), "`out` overlaps `x`"),
    (lambda: layer_norm(X, X[0], X[0, :5]), "`bias` is 5 long, and must be 6 long: one for each column"),
    (lambda: rms_norm(X, X[0].astype(np.float16)), "`weight` is of type float16, and must be of float32"),
    (lambda: rms_norm(X, X[0] + 0, out=X, residual=X), "`out` overlaps `residual`"),
    (lambda: rms_norm(X, X[0] + 0, residual=X[:2]), "`residual` is 2 by 6, and must be 4 by 6, as `x` is"),
    (lambda: rms_norm(X, X[0] + 0, quantize="column"), 'quantize=.column.: it is "row"'),
    (lambda: rms_norm(X, X[0] + 0, quantize=X[0]), "`quantize` is an array of more than one number"),
    (lambda: cross_entropy(X, np.zeros(3, np.int64)), "`targets` is 3 long, and must be 4 long: one for each row"),
    (lambda: cross_entropy(X, np.zeros(4, np.float32)), "`targets` has elements of type float32"),
    (lambda: cross_entropy(X, np.zeros(4, np.int64), reduction="all"), "reduction='all'"),
    (lambda: cross_entropy(X[:, :0], np.zeros(4, np.int64)), "there are no classes"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_gradients_and_torch_compile() -> None:
    import torch

    functional = torch.nn.functional
    x, weight = torch.randn(3, 40, requires_grad=True), torch.rand(40, requires_grad=True)
    residual, targets = torch.randn(3, 40, requires_grad=True), torch.tensor([1, -100, 39])

    def ours(x: Any, residual: Any, weight: Any) -> Any:
        normal, added = rms_norm(softmax(x), weight, residual=residual)
        return cross_entropy(layer_norm(normal + added, weight, weight), targets)

    def theirs(x: Any, residual: Any, weight: Any) -> Any:
        added = functional.softmax(x, -1) + residual
        normal = functional.rms_norm(added, (40,), weight, 1e-6)
        return functional.cross_entropy(functional.layer_norm(normal + added, (40,), weight, weight), targets)

    wanted = torch.autograd.grad(theirs(x, residual, weight), (x, residual, weight))
    for function in (ours, torch.compile(ours, backend="aot_eager", fullgraph=True)):
        found = torch.autograd.grad(function(x, residual, weight), (x, residual, weight))
        for one, other in zip(found, wanted, strict=True):
            assert torch.allclose(one, other, atol=1e-5)
