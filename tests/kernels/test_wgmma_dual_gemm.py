"""The gated product: right and silent on the emulator, not silent where a line is left out; the function to call."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import gated_matmul
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_dual_gemm import product
from ptxlab.kernels.wgmma_dual_gemm.kernel import plan_of
from ptxlab.kernels.wgmma_gemm.candidates import Problem, shapes
from ptxlab.measure import Launch
from tests.kernels.left_out import codes, without

TINY = Shape(groups=1, columns=16, stages=2)


def whole(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).integers(-2, 3, shape).astype(np.float16)


def gated(x: Any, w1: Any, w2: Any) -> Any:
    """The same with whole numbers, by ReLU: exact as long as results are small."""
    return np.maximum(x.astype(np.float32) @ w1, 0) * (x.astype(np.float32) @ w2)


def prepare(shape: Shape, m: int, n: int, across: bool = False) -> tuple[Launch, Any, Any]:
    """The launch by as few blocks as there can be, what it writes, and what is right."""
    a, g, u = whole(m, 136), whole(n, 136), whole(n + 1, 136)[1:]
    d = np.full((m, n), np.nan, np.float16)
    sides = [one.T.copy().T for one in (g, u)] if across else (g, u)
    return product(a, *sides, d, shape, "relu", blocks=shape.blocks), d, gated(a, g.T, u.T).astype(np.float16)


@pytest.mark.parametrize(
    ("shape", "m", "n", "across"),
    [
        pytest.param(Shape(1, 32, 2, tall=2, cluster=2, buffers=1), 200, 16, False, id="stripes of a cluster, one box"),
        pytest.param(Shape(1, 128, 2), 40, 72, True, id="weights across k"),
        pytest.param(Shape(2, 16, 2, buffers=1, pingpong=True), 130, 16, False, id="warpgroups in turns"),
        pytest.param(Shape(1, 64, 2, tall=2, split_k=2), 100, 40, False, id="parts of k"),
        pytest.param(Shape(2, 96, 2, split_k=3), 70, 56, False, id="three parts of k", marks=pytest.mark.bulk),
    ],
)
def test_a_variant_is_right_and_silent(shape: Shape, m: int, n: int, across: bool) -> None:
    made, d, expected = prepare(shape, m, n, across)
    assert codes(made) == []
    assert np.array_equal(d, expected)


@pytest.mark.parametrize(
    ("lost", "number", "code"),
    [
        ("cp.async.bulk.tensor.2d.shared::cluster", 2, "hang"),  # of the second matrix
        ("wgmma.wait_group.sync.aligned 0", 0, "data-race"),
    ],
)
def test_what_is_lost_is_found(lost: str, number: int, code: str) -> None:
    made, _, _ = prepare(TINY, 70, 16)
    assert code in codes(without(made, lost, number))


def test_the_function_takes_rows_columns_and_more_dimensions() -> None:
    x, w1, w2 = whole(2, 3, 9), whole(9, 16), np.asfortranarray(whole(10, 16)[1:])
    space = np.zeros((2, 3, 16), np.float16)
    assert np.shares_memory(gated_matmul(x, w1, w2, "relu", out=space), space)
    assert np.array_equal(space, gated(x, w1, w2))


def test_it_multiplies_8_bit_floats_with_scales() -> None:
    x, w1, w2 = whole(20, 48), whole(24, 48).T, whole(25, 48)[1:].T
    scales = [np.array([factor], np.float32) for factor in (0.5, 2, 4)]
    bytes = [one.astype(ml_dtypes.float8_e4m3fn) for one in (x, w1, w2)]
    d = gated_matmul(*bytes, "relu", scale_x=scales[0], scale_w1=scales[1], scale_w2=scales[2])
    assert np.array_equal(d, 2 * gated(x, w1, w2).astype(ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match="`x` is of float8_e4m3fn, which needs `scale_x`"):
        gated_matmul(*bytes)


def test_nothing_is_computed_of_nothing() -> None:
    assert gated_matmul(whole(0, 8), whole(8, 8), whole(8, 8)).shape == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((whole(3, 4), whole(5, 8), whole(5, 8)), "`x` has 4 columns and `w1` has 5 rows: a product needs the same"),
        ((whole(3, 4), whole(4, 8), whole(4, 16)), "`w2` is 4 by 16, and must be 4 by 8"),
        ((whole(3, 0), whole(0, 8), whole(0, 8)), "`x` has no columns: there is nothing to multiply"),
        ((whole(3), whole(3, 8), whole(3, 8)), "`x` is 3 long: a matrix has two dimensions"),
        (
            (whole(3, 4), whole(4, 8), whole(4, 8), "tanh"),
            "activation='tanh': expected a function of a register, or one of 'relu', ",
        ),
        ((whole(3, 4), whole(4, 9), whole(4, 9)), "rows of the result must be multiples of 16 bytes: have a multiple"),
        ((whole(3, 4), whole(4, 8), np.zeros((4, 8))), "`w2` has elements of type float64: this kernel is for float16"),
        ((whole(3, 4), whole(4, 8), [1]), "`w2` is a list, not an array of torch, CuPy, JAX or NumPy"),
    ],
)
def test_what_it_refuses(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        gated_matmul(*arguments)
    assert str(raised.value).startswith(message)


def test_it_does_not_write_over_what_it_reads() -> None:
    x = whole(8, 8)
    with pytest.raises(ValueError, match="`out` overlaps `x`: what is written would be read"):
        gated_matmul(x, whole(8, 8), whole(8, 8), out=x)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("along_k", [True, False])
def test_all_variants_fit_into_shared_memory(along_k: bool, size: int) -> None:
    formats = Formats("e4m3", "e4m3", "bf16") if size == 1 else Formats.of("bf16")
    problem = Problem(8192, 2 * 1000, 1024, True, along_k or size == 1, size, gated=True)
    found = [*shapes(problem)]
    assert {one.pingpong for one in found} == {False, True}
    for shape in found:
        plan = plan_of(formats, shape, problem.layout(shape))
        assert shape.occupancy * (plan.shared + 2048) <= 233_472  # 1024 of the system's, and as many for barriers
        assert plan.boxes == problem.boxes(shape)
        assert shape.columns % (16 if problem.b_along_k else 128) == 0


@pytest.mark.parametrize(
    "shape", [Shape(1, 32, 2, tall=2, buffers=1), Shape(2, 16, 2, buffers=1, pingpong=True)], ids=["boxes", "turns"]
)
def test_both_products_are_stored_where_a_gradient_needs_them(shape: Shape) -> None:
    a, g, u = whole(130, 136), whole(24, 136), whole(25, 136)[1:]
    d, *products = (np.full((130, 24), np.nan, np.float16) for _ in range(3))
    made = product(a, g, u, d, shape, "relu", blocks=1, products=(products[0], products[1]))
    assert codes(made) == []
    assert np.array_equal(d, gated(a, g.T, u.T).astype(np.float16))
    for one, weights in zip(products, (g, u), strict=True):
        assert np.array_equal(one, a.astype(np.float32) @ weights.T)


def test_gradients_of_weights_are_in_memory_as_the_weights_are() -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.randn(8, 16).bfloat16()
    for weights in (torch.randn(24, 16).bfloat16(), torch.randn(16, 24).bfloat16().T):
        w1, w2 = (weights.clone().requires_grad_() for _ in range(2))
        gated_matmul(x, w1.T, w2.T).float().sum().backward()
        assert w1.grad.stride() == w2.grad.stride() == w1.stride()
