"""`quantized_matvec` on tensors of torch: streams, graphs, `torch.compile`, and addresses that change."""

from typing import Any

import pytest

from ptxlab.kernels import quantize, quantized_matvec

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("default")  # other packages have their own


def error(y: Any, weights: Any, x: Any) -> float:
    wanted = x.double() @ weights.values().T
    return float((y.double() - wanted).norm() / wanted.norm())


@pytest.mark.gpu
@pytest.mark.parametrize("format", ["nvfp4", "mxfp4", "int4", "fp8"])
@pytest.mark.parametrize(("rows", "columns"), [(1000, 4096), (4096, 2304), (20, 14336)])
def test_it_is_right_on_a_gpu(format: str, rows: int, columns: int) -> None:
    weights = quantize(torch.randn(rows, columns, device="cuda"), format)
    packed = weights.pack()
    for count in (1, 3, 17, 1):
        x = torch.randn(count, columns, device="cuda").to(torch.bfloat16)
        assert error(quantized_matvec(packed, x), weights, x) < 4e-3
        out = torch.full((count, rows), float("nan"), device="cuda", dtype=torch.bfloat16)
        assert quantized_matvec(packed, x, out=out) is out
        assert error(out, weights, x) < 4e-3


@pytest.mark.gpu
def test_in_a_graph_and_compiled() -> None:
    weights = quantize(torch.randn(512, 1024, device="cuda"), "nvfp4")
    packed, x = weights.pack(), torch.randn(1024, device="cuda").to(torch.bfloat16)
    quantized_matvec(packed, x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = quantized_matvec(packed, x)
    x.copy_(torch.randn(1024, device="cuda"))
    graph.replay()
    torch.cuda.synchronize()
    assert error(y, weights, x) < 4e-3
    compiled = torch.compile(lambda x: quantized_matvec(packed, x) * 2, fullgraph=True)
    assert error(compiled(x) / 2, weights, x) < 4e-3


@pytest.mark.gpu
def test_arrays_on_different_devices_are_refused() -> None:
    packed = quantize(torch.randn(16, 128), "int4").pack()
    with pytest.raises(ValueError, match="`weights` is on the host, and `x` on GPU 0"):
        quantized_matvec(packed, torch.zeros(128, device="cuda", dtype=torch.bfloat16))
