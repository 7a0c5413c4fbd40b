"""Every function of `ptxlab.kernels` on a GPU: right again and again, in streams, graphs, threads, and compiled.

Each is called with the same forms several times: the first call prepares a launch, later ones only change addresses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ptxlab import kernels

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own

Function = Callable[..., Any]


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    return found


class Case:
    """A function, the arrays that change, and the right answer."""

    def __init__(self, function: Function, exact: Function, *given: Any, most: float = 8e-3) -> None:
        self.function, self.exact, self.given, self.most = function, exact, given, most

    def call(self, *given: Any) -> Any:
        found = self.function(*(given or self.given))
        return found[0] if isinstance(found, tuple) else found

    def is_right(self, found: Any, *given: Any) -> bool:
        wanted = self.exact(*(given or self.given)).double()
        return float((found.double() - wanted).norm()) <= self.most * float(wanted.norm())


def attend(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())


def dq(torch: Any, q: Any, do: Any) -> Any:
    wide = q.double().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(attend(torch, wide, q, q), wide, do.float())[0]


def products(torch: Any, normal: Function) -> dict[str, Case]:
    of, f8, one = torch.nn.functional, torch.float8_e4m3fn, torch.ones(1, device="cuda")
    a, b, w = normal(64, 512), normal(512, 128), normal(512, 128)
    ends = torch.tensor([16, 16, 50, 64], dtype=torch.int32, device="cuda")
    matrix = kernels.quantize(torch.randn(64, 256, device="cuda"), "nvfp4").pack()
    weights = kernels.quantized_matvec(matrix, torch.eye(256, device="cuda").bfloat16()).T  # exact: one weight each

    def grouped(a: Any, b: Any, ends: Any) -> Any:
        places = [0, *ends.tolist()]
        return torch.cat([a[x:y].float() @ b[g].float() for g, (x, y) in enumerate(zip(places, places[1:]))])  # noqa: B905, RUF007

    return {
        "matmul": Case(kernels.matmul, lambda a, b: a.double() @ b.double(), a, b),
        "matmul, split": Case(kernels.matmul, lambda a, b: a.double() @ b.double(), normal(64, 8192), normal(8192, 64)),
        "matmul, 3 dimensions": Case(
            lambda a, b, c: kernels.matmul(a, b, bias=c, activation="gelu", residual=a[..., :128]),
            lambda a, b, c: of.gelu(a.double() @ b.double() + c.double()) + a[..., :128].double(),
            normal(2, 32, 512).contiguous(), b, normal(128),
        ),
        "scaled_matmul": Case(
            lambda a, b: kernels.scaled_matmul(a, b, one, one),
            lambda a, b: a.double() @ b.double(),
            a.to(f8), b.T.contiguous().to(f8).T,
        ),
        "grouped_matmul": Case(kernels.grouped_matmul, grouped, a, normal(4, 512, 128), ends),
        "grouped_matmul along k": Case(
            lambda a, b, ends: kernels.grouped_matmul(a.T, b, ends),
            lambda a, b, ends: torch.stack([
                a[x:y].double().T @ b[x:y].double() for x, y in zip([0, *ends.tolist()], ends.tolist())  # noqa: B905
            ]),
            normal(64, 512), normal(64, 136), ends,
        ),
        "gated_matmul": Case(
            kernels.gated_matmul, lambda x, a, b: of.silu(x.double() @ a.double()) * (x.double() @ b.double()), a, b, w
        ),
        "quantized_matvec": Case(
            lambda x: kernels.quantized_matvec(matrix, x), lambda x: x.double() @ weights.double().T, normal(256)
        ),
    }  # fmt: skip


def attentions(torch: Any, normal: Function) -> dict[str, Case]:
    q, do = normal(1, 2, 300, 64), normal(1, 2, 300, 64)
    starts = torch.tensor([0, 300], dtype=torch.int32, device="cuda")
    length = torch.tensor([300], dtype=torch.int32, device="cuda")
    cache, one = normal(1, 300, 2, 64), torch.ones(1, device="cuda")
    table = torch.arange(4, dtype=torch.int32, device="cuda").flip(0)[None]  # pages in an order that is not theirs

    def in_order(cache: Any) -> tuple[Any, Any]:
        return (cache.flip(0).flatten(0, 1)[:300],) * 2

    def backward(q: Any, do: Any) -> Any:
        o, lse = kernels.attention(q, q, q, return_lse=True)
        return kernels.attention_backward(do, q, q, q, o, lse)

    return {
        "attention": Case(kernels.attention, lambda *given: attend(torch, *given), q, q + 1, q * 2),
        "attention, packed": Case(
            lambda x: kernels.attention(x, x, x, cu_seqlens_q=starts),
            lambda x: attend(torch, *(x.transpose(0, 1),) * 3).transpose(0, 1),
            normal(300, 2, 64),
        ),
        "attention of 8 bits": Case(
            lambda *given: kernels.attention(*given, scale_q=one, scale_k=one, scale_v=one),
            lambda *given: attend(torch, *(x.bfloat16() for x in given)),
            *(x.to(torch.float8_e4m3fn) for x in (q, q + 1, q * 2)), most=5e-2,
        ),
        "attention_backward": Case(backward, lambda q, do: dq(torch, q, do), q, do, most=2e-2),
        "decode_attention": Case(
            lambda t, k: kernels.decode_attention(t, k, k, length),
            lambda t, k: attend(torch, t[:, :, None], k.transpose(1, 2), k.transpose(1, 2))[:, :, 0],
            normal(1, 2, 64), cache,
        ),
        "prefill_attention": Case(
            lambda x, k: kernels.prefill_attention(x, k, k, starts, length, table, causal=False),
            lambda x, k: attend(torch, *(one.transpose(0, 1) for one in (x, *in_order(k)))).transpose(0, 1),
            normal(300, 2, 64), normal(4, 80, 2, 64),
        ),
    }  # fmt: skip


def rows(torch: Any, normal: Function) -> dict[str, Case]:
    of = torch.nn.functional
    x, w, b = normal(64, 1000), normal(1000), normal(1000)
    targets = torch.randint(0, 1000, (64,), device="cuda")
    return {
        "softmax": Case(kernels.softmax, lambda x: torch.softmax(x.double(), -1), x),
        "layer_norm": Case(
            kernels.layer_norm, lambda x, w, b: of.layer_norm(x.double(), (1000,), w.double(), b.double()), x, w, b
        ),
        "rms_norm": Case(kernels.rms_norm, lambda x, w: of.rms_norm(x.double(), (1000,), w.double(), 1e-6), x, w),
        "rms_norm, residual": Case(
            lambda x, w, r: kernels.rms_norm(x, w, residual=r),
            lambda x, w, r: of.rms_norm((x + r).double(), (1000,), w.double(), 1e-6),
            x, w, normal(64, 1000),
        ),
        "cross_entropy": Case(kernels.cross_entropy, lambda x, t: of.cross_entropy(x.double(), t), x, targets),
    }  # fmt: skip


NAMES = [
    "matmul", "matmul, split", "matmul, 3 dimensions", "scaled_matmul", "grouped_matmul",
    "grouped_matmul along k", "gated_matmul",
    "quantized_matvec", "attention", "attention, packed", "attention of 8 bits", "attention_backward",
    "decode_attention", "prefill_attention", "softmax", "layer_norm", "rms_norm", "rms_norm, residual",
    "cross_entropy",
]  # fmt: skip


def case_of(torch: Any, name: str) -> Case:
    def normal(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").bfloat16()

    return {**products(torch, normal), **attentions(torch, normal), **rows(torch, normal)}[name]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_first_and_then_called_again_and_again(torch: Any, name: str) -> None:
    case = case_of(torch, name)
    torch.compiler.reset()
    compiled = torch.compile(lambda *given: case.call(*given) * 2, fullgraph=True)
    assert case.is_right(compiled(*case.given) / 2)
    for _ in range(3):
        given = [one.clone() for one in case.given]
        assert case.is_right(case.call(*given), *given)


@pytest.mark.parametrize("name", NAMES)
def test_streams_and_threads(torch: Any, name: str) -> None:
    case = case_of(torch, name)
    wanted = case.call()
    torch.cuda.synchronize()
    found: list[Any] = []

    def run() -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            found.extend(case.call() for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert len(found) == 60
    is_exact = name != "attention_backward"  # its sums have no order
    assert all(torch.equal(one, wanted) if is_exact else case.is_right(one) for one in found)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_that_are_recorded_by_first_calls_and_run_at_the_same_time(torch: Any, name: str) -> None:
    cases = [case_of(torch, name) for _ in range(2)]
    side = torch.cuda.Stream()
    graphs, found = [torch.cuda.CUDAGraph() for _ in cases], []
    torch.cuda.synchronize()
    for graph, case in zip(graphs, cases, strict=True):
        with torch.no_grad(), torch.cuda.graph(graph, stream=side):
            found.append(case.call())
    with torch.cuda.stream(side):  # between: what graphs count in is not what streams count in
        eager = cases[0].call()
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()
    for _ in range(20):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    assert cases[0].is_right(eager)
    assert all(case.is_right(one) for case, one in zip(cases, found, strict=True))


def test_a_thread_in_which_no_context_is_current(torch: Any) -> None:
    case = case_of(torch, "softmax")
    wanted = case.call()
    out = torch.empty_like(case.given[0])
    torch.cuda.synchronize()
    thread = threading.Thread(target=kernels.softmax, args=(case.given[0],), kwargs={"out": out})
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert torch.equal(out, wanted)
