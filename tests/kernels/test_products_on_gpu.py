"""`matmul`, `grouped_matmul` and `gated_matmul` on a GPU: with torch and CuPy, in graphs and compiled functions."""

from typing import Any

import pytest

from ptxlab import gpu
from ptxlab.kernels import gated_matmul, grouped_matmul, matmul, wgmma_dual_gemm
from ptxlab.kernels.parts.shapes import Layout
from ptxlab.kernels.wgmma_gemm import product
from ptxlab.kernels.wgmma_gemm.candidates import Problem, estimate, shapes
from ptxlab.ops.products import _calls

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # other packages have their own
    pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU"),
]
ENDS = 100, 100, 350, 351, 690  # of groups; ten rows are of none
M, N, K = 700, 264, 528


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def near(torch: Any, given: Any, expected: Any, allowed: float = 4e-3) -> bool:
    """By the norm of the difference; NaN is not near."""
    difference = torch.linalg.vector_norm(given.float() - expected)
    return bool(difference <= allowed * torch.linalg.vector_norm(expected))


def grouped(torch: Any) -> tuple[Any, Any, Any]:
    a = torch.randn(M, K, device="cuda").bfloat16()
    b = (torch.randn(len(ENDS), K, N, device="cuda") / 23).bfloat16()
    return a, b, torch.tensor(ENDS, dtype=torch.int32, device="cuda")


def multiplied(torch: Any, a: Any, b: Any, ends: Any = ENDS) -> Any:
    return torch.cat([a[s:e].float() @ b[g].float() for g, (s, e) in enumerate(zip((0, *ends), ends, strict=False))])


def weights(torch: Any) -> tuple[Any, Any, Any]:
    x = torch.randn(3, 70, K, device="cuda").bfloat16()
    return x, *((torch.randn(K, N, device="cuda") / 23).bfloat16() for _ in range(2))


def gated(torch: Any, x: Any, w1: Any, w2: Any) -> Any:
    return torch.nn.functional.silu(x.float() @ w1.float()) * (x.float() @ w2.float())


def by_columns(matrices: Any) -> Any:
    return matrices.transpose(-1, -2).contiguous().transpose(-1, -2)


def test_groups_and_gates_again_and_again(torch: Any) -> None:
    a, b, offsets = grouped(torch)
    for matrices in (b, b, by_columns(b)):
        out = torch.full((M, N), 7.0, device="cuda").bfloat16()
        assert grouped_matmul(a, matrices, offsets, out=out) is out
        assert near(torch, out[: ENDS[-1]], multiplied(torch, a, b))
        assert bool((out[ENDS[-1] :] == 7).all())
        assert near(torch, grouped_matmul(a, matrices, offsets)[: ENDS[-1]], multiplied(torch, a, b))
    x, w1, w2 = weights(torch)
    for pair in ((w1, w2), (w1, w2), (by_columns(w1), by_columns(w2)), (by_columns(w1), w2)):
        assert near(torch, gated_matmul(x, *pair), gated(torch, x, w1, w2))
    assert near(torch, gated_matmul(x.half(), w1.half(), w2.half()), gated(torch, x, w1, w2), 1e-3)


def test_operands_that_tma_cannot_read_are_copied_by_the_call(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def normal(*extents: int) -> Any:
        return torch.randn(*extents, device="cuda").bfloat16()

    odd = normal(70, 1001), normal(1001, 96)
    turned = normal(1001, 2).T, normal(96, 1001).T
    for a, b in (odd, turned, (normal(3, 40, 72).transpose(0, 1), normal(72, 90))):
        expected = a.float() @ b.float()
        assert near(torch, matmul(a, b), expected)
        with monkeypatch.context() as patched:
            patched.delattr(_calls, "prepare")  # it is found by its forms
            assert near(torch, matmul(a, b), expected)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                d = matmul(a, b)
            graph.replay()
            torch.cuda.synchronize()
            assert near(torch, d, expected)


def test_8_bit_floats_with_scales(torch: Any) -> None:
    a, b, offsets = grouped(torch)
    rows, columns = torch.rand(M, device="cuda") + 0.5, torch.rand(len(ENDS), N, device="cuda") + 0.5
    small = a.to(torch.float8_e4m3fn), by_columns((b * 23).to(torch.float8_e4m3fn))
    expected = multiplied(torch, small[0].float() * rows[:, None], small[1].float() * columns[:, None])
    for _ in range(2):
        d = grouped_matmul(*small, offsets, scale_a=rows, scale_b=columns)
        assert near(torch, d[: ENDS[-1]], expected, 1e-2)
    x, w1, w2 = weights(torch)
    scales = [torch.tensor([factor], device="cuda") for factor in (1.0, 1 / 23, 2 / 23)]
    bytes = [one.to(torch.float8_e4m3fn) for one in (x, by_columns(w1 * 23), by_columns(w2 * 23))]
    factors = dict(zip(("scale_x", "scale_w1", "scale_w2"), scales, strict=True))
    expected = gated(torch, *(one.float() * factor for one, factor in zip(bytes, scales, strict=True)))
    for _ in range(2):
        assert near(torch, gated_matmul(*bytes, **factors), expected, 1e-2)


def test_a_graph_reads_offsets_when_it_is_replayed(torch: Any) -> None:
    (a, b, offsets), (x, w1, w2) = grouped(torch), weights(torch)
    d, e = (torch.empty(extents, device="cuda").bfloat16() for extents in ((M, N), (3, 70, N)))
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        grouped_matmul(a, b, offsets, out=d)
        gated_matmul(x, w1, w2, out=e)
    ends = 0, 300, 350, 351, 690
    offsets.copy_(torch.tensor(ends, device="cuda"))
    graph.replay()
    torch.cuda.synchronize()
    assert near(torch, d[: ends[-1]], multiplied(torch, a, b, ends))
    assert near(torch, e, gated(torch, x, w1, w2))


def test_torch_compiles_them(torch: Any) -> None:
    (a, b, offsets), (x, w1, w2) = grouped(torch), weights(torch)
    both = torch.compile(lambda: (grouped_matmul(a, b, offsets) * 2, gated_matmul(x, w1, w2) + 1), fullgraph=True)
    d, e = both()
    assert near(torch, d[: ENDS[-1]] / 2, multiplied(torch, a, b))
    assert near(torch, e.float() - 1, gated(torch, x, w1, w2), 1e-2)


def test_arrays_of_cupy(torch: Any) -> None:
    cupy: Any = pytest.importorskip("cupy")
    a, b, offsets = grouped(torch)
    torch.cuda.synchronize()
    d = grouped_matmul(cupy.asarray(a.half()), cupy.asarray(b.half()), cupy.asarray(offsets))
    cupy.cuda.get_current_stream().synchronize()
    assert near(torch, torch.as_tensor(d, device="cuda")[: ENDS[-1]], multiplied(torch, a, b))


def test_what_is_refused(torch: Any) -> None:
    a, b, offsets = grouped(torch)
    with pytest.raises(ValueError, match="`offsets` is on the host, and `a` on GPU 0"):
        grouped_matmul(a, b, offsets.cpu())
    with pytest.raises(ValueError, match="`out` overlaps `a`: what is written would be read"):
        grouped_matmul(a, b, offsets, out=a[:, :N])


@pytest.mark.parametrize(
    ("m", "n", "k", "layout"),
    [
        (328, 2320, 2192, "NT"),
        (3104, 96, 2120, "NT"),
        (2592, 232, 1560, "TN"),
        (1544, 320, 2696, "NN"),
        (392, 1104, 1600, "TT"),
    ],
)
def test_clusters_of_four_and_eight_share_both_operands(torch: Any, m: int, n: int, k: int, layout: str) -> None:
    along = layout[0] == "N", layout[1] == "T"
    problem = Problem(m, n, k, *along)
    a = torch.randn(m, k, device="cuda").bfloat16()
    b = torch.randn(n, k, device="cuda").bfloat16()
    sides = [one if rows else by_columns(one) for one, rows in zip((a, b), along, strict=True)]
    expected = a.float() @ b.float().T
    seen = set()
    for shape in sorted(shapes(problem), key=lambda one: estimate(problem, one)):
        way = shape.cluster, shape.beside, shape.split_k > 1
        if shape.cluster > 2 and way not in seen:
            seen.add(way)
            d = torch.full((m, n), float("nan"), device="cuda").bfloat16()
            product(sides[0], sides[1], d, shape).run(device="cuda")
            assert near(torch, d, expected)
    assert len(seen) > 3


def test_gated_products_in_parts_of_k(torch: Any) -> None:
    x = torch.randn(40, 8192, device="cuda").bfloat16()
    w1, w2 = ((torch.randn(8192, 256, device="cuda") / 90).bfloat16() for _ in range(2))
    for one, other in ((w1, w2), (by_columns(w1), by_columns(w2))):
        layout = Layout(True, one.stride(0) == 1)
        assert wgmma_dual_gemm.choose(40, 256, 8192, layout).split_k > 1
        assert near(torch, gated_matmul(x, one, other), gated(torch, x, w1, w2))
