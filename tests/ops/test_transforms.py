"""Functions of the gallery under the transforms of torch and JAX: gradients, `vmap`, compilation, fake tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlab.kernels import (
    attention,
    cross_entropy,
    gated_matmul,
    grouped_matmul,
    layer_norm,
    matmul,
    rms_norm,
    softmax,
)
from ptxlab.ops import xla
from ptxlab.ops.operators import register


def test_a_batch_is_one_call_where_a_function_takes_more_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []

    def function(x: Any, weight: Any, eps: float) -> Any:
        shapes.append(x.shape)
        return x * weight + eps

    monkeypatch.setattr(xla, "function_of", lambda name: function)
    x, weights = np.arange(24.0).reshape(2, 3, 4), np.arange(8.0).reshape(2, 4)
    how = xla.How("rms_norm", (..., ..., 0.5), (2, 1), ())
    for weight, wanted in ((weights[:1], [(2, 3, 4)]), (weights, [(3, 4)] * 2)):
        out = np.zeros_like(x)
        xla._run(x, weight, out, how=how)
        np.testing.assert_array_equal(out, x * weight[:, None] + 0.5)
        assert shapes == wanted
        shapes.clear()


def test_batches_of_batches_and_transposed_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla, "function_of", lambda name: lambda a, b: (a @ b, a + 1) if name == "two" else a @ b)
    a, b = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(1, 2, 3)
    out, more = np.zeros((2, 2, 2)), np.zeros((2, 2, 3))
    xla._run(a, b, out, more, how=xla.How("two", (..., ...), (2, 2), (1,)))
    np.testing.assert_array_equal(out, a @ b[0].T)
    np.testing.assert_array_equal(more, a + 1)
    monkeypatch.setattr(xla, "function_of", lambda name: np.add)
    both = np.arange(12.0).reshape(3, 2, 2)
    xla._run(both, both, whole := np.zeros_like(both), how=xla.How("attention_forward", (..., ...), (2, 2), ()))
    np.testing.assert_array_equal(whole, 2 * both)


def close(found: Any, wanted: Any, tolerance: float) -> None:
    one, other = (np.asarray(array.detach().double() if hasattr(array, "detach") else array, np.float64)
                  for array in (found, wanted))  # fmt: skip
    assert one.shape == other.shape
    assert abs(one - other).max() <= tolerance * abs(other).max()


def cases(torch: Any) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]], float]]:
    """Functions, what they mean, the extents of their arguments, and tolerances."""
    functional = torch.nn.functional
    return {
        "matmul": (matmul, lambda a, b: a @ b, [(16, 24), (24, 16)], 2e-2),
        "matmul with all": (
            lambda a, b, c, d: matmul(a, b, bias=c, activation="gelu", residual=d),
            lambda a, b, c, d: functional.gelu(a @ b + c) + d,
            [(2, 4, 20), (20, 13), (13,), (2, 4, 13)],
            2e-2,
        ),
        "gated_matmul": (
            gated_matmul,
            lambda x, w, v: functional.silu(x @ w) * (x @ v),
            [(8, 16), (16, 8), (16, 8)],
            3e-2,
        ),
        "grouped_matmul": (
            lambda a, b: grouped_matmul(a, b, torch.tensor([3, 3, 14], dtype=torch.int32))[:14],
            lambda a, b: torch.cat([a[:3] @ b[0], a[3:14] @ b[2]]),
            [(16, 24), (3, 24, 16)],
            2e-2,
        ),
        "grouped_matmul along k": (
            lambda a, b: grouped_matmul(a.T, b, torch.tensor([3, 14], dtype=torch.int32)),
            lambda a, b: torch.stack([a[:3].T @ b[:3], a[3:14].T @ b[3:14]]),
            [(16, 24), (16, 16)],
            2e-2,
        ),
        "softmax": (softmax, lambda x: torch.softmax(x, -1), [(3, 64)], 2e-2),
        "layer_norm": (
            layer_norm,
            lambda x, w, b: functional.layer_norm(x, (64,), w, b),
            [(3, 64), (64,), (64,)],
            2e-2,
        ),
        "rms_norm": (rms_norm, lambda x, w: functional.rms_norm(x, (64,), w, 1e-6), [(3, 64), (64,)], 2e-2),
        "attention": (
            lambda q, k, v: attention(q, k, v, causal=True),
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
            [(1, 1, 64, 64)] * 3,
            3e-2,
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "matmul with all",
        "gated_matmul",
        "grouped_matmul",
        "grouped_matmul along k",
        "softmax",
        "layer_norm",
        "rms_norm",
        "attention",
    ],
)
def test_gradients_and_batches_in_torch(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    function, reference, extents, tolerance = cases(torch)[name]
    given = [torch.randn(extent).bfloat16() for extent in extents]
    wide = [one.float().requires_grad_() for one in given]
    wanted = reference(*wide)
    factor = torch.cos(torch.arange(wanted.numel())).reshape(wanted.shape)
    gradients = torch.autograd.grad((wanted * factor).sum(), wide)
    leaves = [one.clone().requires_grad_() for one in given]
    found = function(*leaves)
    close(found, wanted, tolerance)

    def total(*args: Any) -> Any:
        return (function(*args).float() * factor).sum()

    numbers = tuple(range(len(given)))
    for made in (torch.autograd.grad(total(*leaves), leaves), torch.func.grad(total, numbers)(*given)):
        for one, other in zip(made, gradients, strict=True):
            close(one, other, tolerance)
    batch = torch.stack([given[0], 2 * given[0]], -1)
    dimensions = (-1, *[None] * (len(given) - 1))
    found = torch.func.vmap(function, dimensions)(batch, *given[1:])
    close(
        found, torch.stack([reference(*(x.float() for x in (one, *given[1:]))) for one in batch.unbind(-1)]), tolerance
    )


@pytest.mark.slow
def test_each_operator_passes_torchs_own_check() -> None:
    torch: Any = pytest.importorskip("torch")
    register()
    ops = torch.ops.ptxlab
    x, weight = torch.randn(3, 64, requires_grad=True), torch.randn(64, requires_grad=True)
    for operator, args in (
        (ops.matmul, [torch.randn(8, 16).bfloat16().requires_grad_(), torch.randn(16, 8).bfloat16().requires_grad_()]),
        (ops.softmax, [x]),
        (ops.rms_norm, [x, weight, 1e-6]),
        (ops.add_rms_norm, [x, x.detach() + 1, weight, 1e-6]),
        (ops.quantized_rms_norm, [x.detach(), weight.detach(), 1e-6, None, None]),
        (ops.cross_entropy, [x, torch.arange(3), -100]),
    ):
        found = torch.library.opcheck(operator, args)
        assert set(found.values()) == {"SUCCESS"}


def test_graphs_of_a_training_step_have_operators_without_gradients_which_modes_see() -> None:
    torch = pytest.importorskip("torch")
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
            names.append(str(function))
            return function(*args, **(named or {}))

    def note(graph: Any, given: Any) -> Any:
        names.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return make_boxed_func(graph.forward)

    names: list[str] = []
    x = torch.randn(2, 40).requires_grad_()
    found = torch.compile(softmax, backend=aot_autograd(fw_compiler=note), fullgraph=True)(x)
    found[:, 0].sum().backward()
    wanted = torch.autograd.grad(torch.softmax(x, -1)[:, 0].sum(), x)[0]
    assert torch.allclose(x.grad, wanted, atol=1e-6)
    ours = [name for name in names if name.startswith("ptxlab")]
    assert ours[0] == "ptxlab.softmax_without_gradient.default"
    assert "ptxlab.softmax.default" not in ours
    names.clear()
    operator = torch.ops.ptxlab.softmax_without_gradient.default
    with torch.no_grad(), Seen():
        by_dispatcher = operator(x)
    assert names == ["ptxlab.softmax_without_gradient.default"]
    with torch.no_grad():
        assert torch.equal(by_dispatcher, operator(x))


def test_what_has_no_gradient_says_so_in_a_transform() -> None:
    torch: Any = pytest.importorskip("torch")
    x, targets = torch.randn(3, 64), torch.arange(3)

    def gradient(x: Any) -> Any:
        return torch.func.grad(cross_entropy)(x, targets).sum()

    with pytest.raises(ValueError, match="the gradient has none: differentiate once"):
        torch.func.grad(gradient)(x)
    weight = torch.ones(64)
    with pytest.raises(ValueError, match="`quantized_rms_norm` has no gradient"):
        torch.func.grad(lambda x: rms_norm(x, weight, quantize="row")[1].sum())(x)


def test_tensors_without_memory_have_results_without_memory() -> None:
    torch: Any = pytest.importorskip("torch")
    mode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode()
    with mode:
        x = torch.empty(3, 64)
        inside = softmax(x)
    assert (tuple(inside.shape), type(inside)) == ((3, 64), type(x))


@pytest.mark.slow
def test_jit_gradients_and_batches_in_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    a, b = (jax.random.normal(jax.random.key(n), shape).astype("bfloat16") for n, shape in ((0, (8, 20)), (1, (20, 8))))
    wide = [one.astype("float32") for one in (a, b)]
    close(jax.jit(lambda a, b: matmul(a, b, activation="relu"))(a, b), jax.nn.relu(wide[0] @ wide[1]), 2e-2)
    found = jax.grad(lambda a, b: matmul(a, b).astype("float32").sum(), (0, 1))(a, b)
    wanted = jax.grad(lambda a, b: (a @ b).sum(), (0, 1))(*wide)
    for one, other in zip(found, wanted, strict=True):
        close(one, other, 2e-2)
    x, targets = jax.random.normal(jax.random.key(2), (2, 3, 64)), jnp.arange(3)
    close(jax.vmap(softmax)(x), jax.nn.softmax(x, -1), 1e-5)
    losses = jax.jit(jax.vmap(jax.grad(cross_entropy), (0, None)))(x, targets)
    meant = jax.grad(lambda x: -jax.nn.log_softmax(x, -1)[:, jnp.arange(3), targets].mean(1).sum())
    close(losses, meant(x), 1e-4)
    with pytest.raises(ValueError, match="arrays of JAX do not change"):
        matmul(a, b, out=a)
    with pytest.raises(Exception, match="float32 is rounded to tf32"):
        matmul(*wide).block_until_ready()
