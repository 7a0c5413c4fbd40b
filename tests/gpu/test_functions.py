"""`matmul` and `attention` on a GPU as users call them: every answer beside float64, streams, graphs, other frameworks.

Each is called twice with the same forms: the first call prepares a launch, the second only changes its addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from ptxlab.kernels import attention, matmul

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own

HALVES = {"bfloat16": 4e-3, "float16": 5e-4}
SIZES = ((1, 4096, 4096), (16, 6144, 4096), (100, 136, 200), (513, 515, 520), (7, 9, 11), (512, 512, 16384))
MASKS = ((False, 0), (True, 0), (True, 77))


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    return found


def normal(torch: Any, *shape: int, type: str = "bfloat16") -> Any:
    return torch.randn(*shape, device="cuda").to(getattr(torch, type))


def error(given: Any, wanted: Any) -> float:
    return float((given.double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_products(torch: Any, layout: str) -> None:
    for (m, n, k), (type, allowed) in product(SIZES, HALVES.items()):
        a = normal(torch, m, k, type=type) if layout[0] == "N" else normal(torch, k, m, type=type).T
        b = normal(torch, k, n, type=type) if layout[1] == "N" else normal(torch, n, k, type=type).T
        wanted = a.double() @ b.double()
        assert max(error(matmul(a, b), wanted) for _ in range(2)) <= allowed, (m, n, k, type)


def activations(torch: Any) -> dict[str | None, Callable[[Any], Any]]:
    of = torch.nn.functional
    tanh = lambda x: of.gelu(x, approximate="tanh")  # noqa: E731
    return {None: lambda x: x, "relu": torch.relu, "silu": of.silu, "gelu": of.gelu, "gelu_tanh": tanh}


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu", "gelu_tanh"])
def test_what_is_added_to_a_product(torch: Any, activation: str | None) -> None:
    function = activations(torch)[activation]
    for m, has_bias, has_residual in product((17, 256), (False, True), (False, True)):
        a, b = normal(torch, m, 512), normal(torch, 512, 264)
        added = {"bias": normal(torch, 264)} if has_bias else {}
        added |= {"residual": normal(torch, m, 264)} if has_residual else {}
        wanted = function(a.double() @ b.double() + (added["bias"].double() if has_bias else 0))
        wanted = wanted + (added["residual"].double() if has_residual else 0)
        out = torch.empty(m, 264, device="cuda", dtype=torch.bfloat16)
        assert matmul(a, b, out=out, activation=activation, **added) is out
        given = [out, *(matmul(a, b, activation=activation, **added) for _ in range(2))]
        assert max(error(one, wanted) for one in given) <= 4e-3


def reference(torch: Any, q: Any, k: Any, v: Any, causal: bool, window: int = 0) -> Any:
    shared = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(shared, 1), v.double().repeat_interleave(shared, 1)
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    row, column = (torch.arange(extent, device="cuda") for extent in scores.shape[2:])
    seen = column <= row[:, None] if causal else torch.ones_like(scores[0, 0], dtype=torch.bool)
    if window:
        seen = seen & (column > row[:, None] - window)
    return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v


@pytest.mark.parametrize("size", [64, 128, 256])
def test_attention(torch: Any, size: int) -> None:
    for (causal, window), heads, length, is_strided, type in product(MASKS, (4, 1), (300, 1024), (False, True), HALVES):
        shapes = [(2, length, count, size) if is_strided else (2, count, length, size) for count in (4, heads, heads)]
        made = [normal(torch, *shape, type=type) for shape in shapes]
        q, k, v = (one.transpose(1, 2) for one in made) if is_strided else made
        first, second = (attention(q, k, v, causal=causal, window=window) for _ in range(2))
        allowed = 8e-3 if type == "bfloat16" else 1e-3
        assert error(first, reference(torch, q, k, v, causal, window)) <= allowed
        assert torch.equal(first, second)


@pytest.mark.parametrize("lengths", [(200, 70), (70, 300), (1, 513), (4096, 4096)])
def test_attention_to_other_keys(torch: Any, lengths: tuple[int, int]) -> None:
    q, k, v = (
        normal(torch, 1, heads, length, 128) for heads, length in zip((4, 2, 2), (*lengths, lengths[1]), strict=True)
    )
    for causal in (False, True):
        assert error(attention(q, k, v, causal=causal), reference(torch, q, k, v, causal)) <= 8e-3


def test_a_result_over_what_is_read_is_refused_in_later_calls_too(torch: Any) -> None:
    a, b = normal(torch, 300, 256), normal(torch, 256, 256)
    q, k, v = (normal(torch, 1, 2, 256, 128) for _ in range(3))
    for _ in range(2):
        matmul(a[:256], b, out=torch.empty_like(b))
        attention(q, k, v, out=torch.empty_like(q))
        for out in (a[:256], b, a[44:]):
            with pytest.raises(ValueError, match="`out` overlaps"):
                matmul(a[:256], b, out=out)
        for out in (q, k, v):
            with pytest.raises(ValueError, match="`out` overlaps"):
                attention(q, k, v, out=out)


def test_streams_do_not_disturb_each_other(torch: Any) -> None:
    a, b = normal(torch, 512, 16384), normal(torch, 512, 16384).T
    q, k, v = (normal(torch, 2, 8, 1024, 128) for _ in range(3))
    wanted = matmul(a, b), attention(q, k, v, causal=True)
    torch.cuda.synchronize()
    found = []
    for side in [torch.cuda.Stream() for _ in range(4)] * 20:
        with torch.cuda.stream(side):
            found.append((matmul(a, b), attention(q, k, v, causal=True)))
    torch.cuda.synchronize()
    assert all(torch.equal(one, two) for each in found for one, two in zip(each, wanted, strict=True))


def test_graphs_replay_with_other_data(torch: Any) -> None:
    a, b = normal(torch, 512, 16384), normal(torch, 512, 16384).T
    q, k, v = (normal(torch, 2, 8, 1000, 128) for _ in range(3))

    def run() -> tuple[Any, Any]:
        return matmul(a, b, bias=a[0, :512], activation="gelu"), attention(q, k, v, causal=True)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        d, o = run()
    for _ in range(3):
        a.copy_(normal(torch, *a.shape))
        q.copy_(normal(torch, *q.shape))
        graph.replay()
        torch.cuda.synchronize()
        wanted = torch.nn.functional.gelu(a.double() @ b.double() + a[0, :512].double())
        assert error(d, wanted) <= 4e-3
        assert error(o, reference(torch, q, k, v, True)) <= 8e-3


def test_torch_compiles_both_into_one_graph(torch: Any) -> None:
    x, w, bias, added = normal(torch, 64, 256), normal(torch, 256, 512), normal(torch, 512), normal(torch, 64, 512)
    q, k, v = (normal(torch, 1, 4, 256, 64) for _ in range(3))

    def layer(x: Any, w: Any, bias: Any, added: Any) -> Any:
        return torch.relu(matmul(x * 2, w, bias=bias, activation="silu", residual=added)) + 1

    def attend(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, causal=True) * 2

    made = torch.compile(layer, fullgraph=True)(x, w, bias, added)
    wanted = torch.nn.functional.silu((x * 2).double() @ w.double() + bias.double()) + added.double()
    assert error(made, torch.relu(wanted) + 1) <= 6e-3
    made = torch.compile(attend, fullgraph=True)(q, k, v)
    assert error(made, 2 * reference(torch, q, k, v, True)) <= 8e-3


def test_arrays_of_cupy_on_a_stream_of_their_own(torch: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a, b, q = (
        cupy.random.standard_normal(shape).astype(cupy.float16) for shape in ((300, 264), (264, 520), (1, 2, 200, 64))
    )
    side = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    for _ in range(2):
        with side:
            d, o = matmul(a, b), attention(q, q, q)
        side.synchronize()
        assert error(torch.as_tensor(d), torch.as_tensor(a).double() @ torch.as_tensor(b).double()) <= 5e-4
        same = torch.as_tensor(q)
        assert error(torch.as_tensor(o), reference(torch, same, same, same, False)) <= 1e-3


def test_arrays_of_jax(torch: Any) -> None:
    jax = pytest.importorskip("jax")
    a, b = (
        jax.numpy.array(normal(torch, *shape).float().cpu().numpy(), jax.numpy.bfloat16)
        for shape in ((200, 264), (264, 136))
    )
    given, left, right = (torch.tensor(one.astype(jax.numpy.float32).tolist()).double() for one in (matmul(a, b), a, b))
    assert error(given, left @ right) <= 4e-3
