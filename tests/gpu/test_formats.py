"""Products of fp8, int8 and tf32 on a GPU as users call them: every answer beside float64, graphs, compiled functions.

Each is called twice with the same forms: the first call prepares a launch, the second only changes its addresses.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from ptxlab.kernels import matmul, scaled_matmul

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own

SIZES = ((16, 7168, 4096), (128, 7168, 2048), (100, 136, 208), (513, 515, 520), (7, 9, 11), (2048, 2048, 2048))
OUT = {"bf16": 4e-3, "f16": 4e-3, "f32": 4e-3}


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    return found


def eights(torch: Any, rows: int, columns: int, type: str = "float8_e4m3fn") -> Any:
    return torch.randn(rows, columns, device="cuda").to(getattr(torch, type))


def error(given: Any, wanted: Any) -> float:
    return float((given.double() - wanted).norm() / wanted.norm())


def blocks(torch: Any, rows: int, columns: int) -> Any:
    return torch.rand(-(-rows // 128), -(-columns // 128), device="cuda") + 0.5


def wide(scales: Any, rows: int, columns: int) -> Any:
    """A scale for each element."""
    return scales.double().repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns]


@pytest.mark.parametrize("out_type", OUT)
def test_a_scale_of_each_matrix(torch: Any, out_type: str) -> None:
    two, half = torch.full((), 2.0, device="cuda"), torch.full((1, 1), 0.5, device="cuda")
    for (m, n, k), type in product(SIZES, ("float8_e4m3fn", "float8_e5m2")):
        a, b = eights(torch, m, k, type), eights(torch, n, k).T
        wanted = a.double() @ b.double()
        given = [scaled_matmul(a, b, two, half, out_type=out_type) for _ in range(2)]
        assert max(error(one, wanted) for one in given) <= OUT[out_type], (m, n, k, type)


def test_scales_of_blocks(torch: Any) -> None:
    for (m, n, k), by_rows in product((*SIZES, (64, 7168, 1100), (300, 4096, 16384)), (False, True)):
        a, b = eights(torch, m, k), eights(torch, n, k).T
        scale_a, scale_b = torch.rand(m, -(-k // 128), device="cuda") + 0.5, blocks(torch, k, n)
        if not by_rows:
            scale_a, scale_b = scale_a.T.contiguous().T, scale_b.T.contiguous().T
        left = a.double() * scale_a.double().repeat_interleave(128, 1)[:, :k]
        wanted = left @ (b.double() * wide(scale_b, k, n))
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        assert scaled_matmul(a, b, scale_a, scale_b, out=out) is out
        given = [out, *(scaled_matmul(a, b, scale_a, scale_b, out_type="f32") for _ in range(2))]
        assert max(error(one, wanted) for one in given) <= 4e-3, (m, n, k)


def test_int8_is_exact_and_f32_is_rounded_to_tf32(torch: Any) -> None:
    for m, n, k in SIZES:
        a = torch.randint(-128, 128, (m, k), device="cuda", dtype=torch.int8)
        b = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8).T
        for one in (b, b, b.contiguous()):
            assert torch.equal(matmul(a, one).double(), a.double() @ b.double())
        a, b = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda").T
        bias = torch.randn(n, device="cuda")
        for one in (b, b, b.contiguous()):
            given = matmul(a, one, bias=bias, allow_tf32=True)
            assert error(given, a.double() @ b.double() + bias.double()) <= 5e-4


def test_graphs_and_compiled_functions(torch: Any) -> None:
    a, b = eights(torch, 64, 512), eights(torch, 256, 512).T
    one, scale_a, scale_b = torch.ones(1, device="cuda"), torch.ones(64, 4, device="cuda"), blocks(torch, 512, 256)
    by_blocks = a.double() @ (b.double() * wide(scale_b, 512, 256))
    graph = torch.cuda.CUDAGraph()
    scaled_matmul(a, b, one, one), scaled_matmul(a, b, scale_a, scale_b)
    with torch.cuda.graph(graph):
        whole, parts = scaled_matmul(a, b, one, one), scaled_matmul(a, b, scale_a, scale_b)
    a.copy_(eights(torch, 64, 512))
    by_blocks = a.double() @ (b.double() * wide(scale_b, 512, 256))
    graph.replay()
    assert error(whole, a.double() @ b.double()) <= 4e-3
    assert error(parts, by_blocks) <= 4e-3
    compiled = torch.compile(lambda a, b: scaled_matmul(a, b, scale_a, scale_b) * 2, backend="eager", fullgraph=True)
    assert error(compiled(a, b), 2 * by_blocks) <= 4e-3


def test_what_is_refused(torch: Any) -> None:
    a, b, one = eights(torch, 16, 64), eights(torch, 32, 64).T, torch.ones(1, device="cuda")
    with pytest.raises(ValueError, match="`scale_a` is on the host, and `a` on GPU 0"):
        scaled_matmul(a, b, one.cpu(), one)
    with pytest.raises(TypeError, match="`scale_b` is a float, not an array"):
        scaled_matmul(a, b, one, 1.0)
    with pytest.raises(ValueError, match="`scale_a` is 16 by 2: both scales are one number, or this is 16 by 1"):
        scaled_matmul(a, b, torch.ones(16, 2, device="cuda"), one)
