"""`scaled_matmul` on arrays of the host, which run on the emulator, and what it refuses."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ptxlab.device.array_types import DTYPES
from ptxlab.kernels import scaled_matmul


def eights(*shape: int, type: str = "e4m3") -> Any:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(DTYPES[type])


def powers(*shape: int) -> Any:
    """Scales that change no digits."""
    return np.exp2(np.random.default_rng(1).integers(-2, 3, shape)).astype(np.float32)


ONE = np.ones(1, np.float32)
HALF = np.full((), 0.5, np.float32)
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((np.zeros((2, 16), np.float16), eights(16, 2), ONE, ONE), {}, "`a` has elements of type float16: this kernel is"),
    ((eights(2, 16), eights(16, 2), ONE, ONE), {"out_type": "e4m3"}, "out_type='e4m3': expected one of 'bf16', 'f16'"),
    ((eights(2, 16), eights(32, 2), ONE, ONE), {}, "`a` has 16 columns and `b` has 32 rows: a product needs the same"),
    ((eights(2, 16), eights(16, 2), powers(2, 2), ONE), {}, "`scale_a` is 2 by 2: both scales are one number, or this"),
    ((eights(2, 16), eights(16, 2), ONE.astype(np.float64), ONE), {}, "`scale_a` has elements of type float64: this "),
    ((eights(2, 16), eights(16, 2), 1.0, ONE), {}, "`scale_a` is a float, not an array of torch, CuPy, JAX or NumPy"),
]


def test_each_matrix_has_a_scale() -> None:
    a, b = eights(5, 130), eights(130, 24, type="e5m2")
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(scaled_matmul(a, b, ONE, HALF, out_type="f32"), expected / 2)
    out = np.empty((5, 24), np.float16)
    assert scaled_matmul(a, b, HALF, HALF, out=out) is out
    assert np.array_equal(out, (expected / 4).astype(np.float16))


def test_each_block_has_a_scale() -> None:
    a, b = eights(5, 144), eights(144, 130)
    scale_a, scale_b = powers(2, 5).T, powers(2, 2)
    wide = a.astype(np.float64) * scale_a.repeat(128, 1)[:, :144]
    tall = b.astype(np.float64) * scale_b.repeat(128, 0)[:144].repeat(128, 1)[:, :130]
    assert np.array_equal(scaled_matmul(a, b, scale_a, scale_b, out_type="f32"), wide @ tall)


def test_nothing_times_something_is_nothing() -> None:
    assert scaled_matmul(eights(0, 16), eights(16, 4), ONE, ONE).shape == (0, 4)


@pytest.mark.parametrize(("arguments", "named", "message"), WRONG)
def test_what_it_refuses(arguments: Any, named: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        scaled_matmul(*arguments, **named)
    assert str(raised.value).startswith(message)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("by_blocks", [False, True])
def test_gradients_pass_through_the_rounding(by_blocks: bool) -> None:
    """They are those of the product of the rounded matrices, for each of which scales are powers of two."""
    import torch

    rng = np.random.default_rng(0)
    a, w = (
        torch.tensor(rng.standard_normal(shape), dtype=torch.bfloat16).requires_grad_()
        for shape in ((5, 144), (24, 144))
    )
    scales = [torch.tensor(one) for one in ((powers(5, 2), powers(2, 1)) if by_blocks else (HALF, ONE))]
    wide = scales[0].repeat_interleave(128, 1)[:, :144] if by_blocks else scales[0]
    tall = scales[1].repeat_interleave(128, 0)[:144] if by_blocks else scales[1]
    exact = [
        (one.detach().float() / scale).to(torch.float8_e4m3fn).double() * scale
        for one, scale in ((a, wide), (w.T, tall))
    ]
    change = torch.tensor(rng.standard_normal((5, 24)), dtype=torch.bfloat16)

    def product(a: Any, w: Any) -> Any:
        return scaled_matmul(a, w.T, *scales)

    for function in (product, torch.compile(product, fullgraph=True, backend="aot_eager")):
        found = function(a, w)
        assert (found - exact[0] @ exact[1]).norm() / found.norm() < 4e-3
        of_a, of_w = torch.autograd.grad(found, (a, w), change)
        assert of_a.dtype == of_w.dtype == torch.bfloat16
        assert of_w.is_contiguous()  # as the weights are
        assert (of_a - change.double() @ exact[1].T).norm() / of_a.norm() < 4e-3
        assert (of_w - change.double().T @ exact[0]).norm() / of_w.norm() < 4e-3
    given = a.detach(), w.detach()
    by_transform = torch.func.grad(lambda a, w: (product(a, w).float() * change).sum())(*given)
    assert torch.equal(by_transform, of_a)
    assert torch.equal(product(*given), found)
    with pytest.raises(ValueError, match="a result in `out` has no gradient"):
        scaled_matmul(a, w.T, *scales, out=torch.empty(5, 24, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match="`scaled_matmul` has no gradient"):
        scaled_matmul(
            a.detach().to(torch.float8_e4m3fn).requires_grad_(), w.detach().to(torch.float8_e4m3fn).T, *scales
        )
