"""Triton's and Gluon's tutorials, with tensors small enough for the emulator."""

from __future__ import annotations

import itertools
import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from tests.frameworks.real import program

HOPPER = ("sm_90a",)
BLACKWELL = ("sm_100a",)
SINCE_HOPPER = ("sm_90a", "sm_100a", "sm_120a")
TRITON = "triton:python/tutorials/"
GLUON = TRITON + "gluon/"


def half(*shape: int) -> torch.Tensor:
    """Random f16."""
    return torch.randn(shape).half()


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In f32, as f16."""
    return (a.float() @ b.float()).half()


@program(TRITON + "01-vector-add.py")
def vector_add(m: Any, target: str) -> None:
    x, y = torch.rand(9843), torch.rand(9843)
    assert torch.equal(m.add(x, y), x + y)


@program(TRITON + "02-fused-softmax.py")
def fused_softmax(m: Any, target: str) -> None:
    x = torch.randn(182, 781)
    assert_close(m.softmax(x), torch.softmax(x, 1))


@program(TRITON + "03-matrix-multiplication.py")
def matrix_multiplication(m: Any, target: str) -> None:
    a, b = half(192, 160), half(160, 224)
    assert_close(m.matmul(a, b), product(a, b), atol=1e-2, rtol=1e-2)
    activated = torch.nn.functional.leaky_relu(a.float() @ b.float())
    assert_close(m.matmul(a, b, activation="leaky_relu").float(), activated, atol=2e-2, rtol=1e-2)
    if target != "sm_80":  # the tutorial's own condition is torch's
        a, b = half(128, 128).to(torch.float8_e5m2), half(128, 128).to(torch.float8_e5m2).T
        assert_close(m.matmul(a, b), product(a, b), atol=0.125, rtol=0)


@program(TRITON + "04-low-memory-dropout.py")
def dropout(m: Any, target: str) -> None:
    x, keep = torch.randn(1000), (torch.rand(1000) > 0.5).to(torch.int32)
    assert_close(m.dropout(x, keep, 0.5), torch.where(keep > 0, x / 0.5, 0.0))
    first, again, other = (m.seeded_dropout(x, 0.5, seed) for seed in (123, 123, 512))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert ((first == 0) | torch.isclose(first, x * 2)).all()


@program(TRITON + "05-layer-norm.py")
def layer_norm(m: Any, target: str) -> None:
    rows, n = 37, 517
    x = (torch.randn(rows, n) * 0.5 - 2.3).half().requires_grad_()
    weight, bias = (torch.rand(n).half().requires_grad_() for _ in range(2))
    gradient = 0.1 * half(rows, n)
    found = with_gradients(lambda: m.layer_norm(x, (n,), weight, bias, 1e-5), [x, weight, bias], gradient)
    wanted = with_gradients(
        lambda: torch.nn.functional.layer_norm(x, (n,), weight, bias, 1e-5), [x, weight, bias], gradient
    )
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, atol=1e-2, rtol=0)


def with_gradients(function: Any, leaves: list[torch.Tensor], gradient: torch.Tensor) -> list[torch.Tensor]:
    """A result and the gradients of what it was computed from."""
    for leaf in leaves:
        leaf.grad = None
    result = function()
    result.backward(gradient)
    return [result.detach(), *(leaf.grad.clone() for leaf in leaves)]  # type: ignore[union-attr]


@program(TRITON + "06-fused-attention.py")
def fused_attention(m: Any, target: str) -> None:
    n, scale = 256, 0.5
    for causal in (False, True):
        q, k, v = ((0.5 * half(1, 2, n, 64)).requires_grad_() for _ in range(3))
        gradient = half(1, 2, n, 64)

        def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = causal) -> torch.Tensor:
            scores = torch.matmul(q.float(), k.float().transpose(2, 3)) * scale
            if causal:
                scores = scores.masked_fill(torch.tril(torch.ones(n, n)) == 0, float("-inf"))
            return torch.matmul(torch.softmax(scores, -1), v.float()).half()

        wanted = with_gradients(lambda q=q, k=k, v=v: reference(q, k, v), [q, k, v], gradient)
        for specialized in (False, True) if target == "sm_100a" else (False,):
            found = with_gradients(
                lambda q=q, k=k, v=v, c=causal, s=specialized: m.attention(q, k, v, c, scale, s), [q, k, v], gradient
            )
            for one, other in zip(found, wanted, strict=True):
                assert_close(one, other, atol=1e-2, rtol=0)


@program(TRITON + "07-extern-functions.py")
def extern_functions(m: Any, target: str) -> None:
    x, out = torch.rand(3001), torch.zeros(3001)
    m.asin_kernel[(3,)](x, out, 3001, BLOCK_SIZE=1024)
    assert_close(out, torch.asin(x))


@program(TRITON + "08-grouped-gemm.py")
def grouped_gemm(m: Any, target: str) -> None:
    sizes = [(128, 256, 128), (256, 128, 64)]
    a, b = [half(rows, k) for rows, _, k in sizes], [half(k, columns) for _, columns, k in sizes]
    results = [m.group_gemm_fn(a, b)]
    if m.supports_tma():
        results.append(m.group_gemm_tma_fn(a, [one.T.contiguous() for one in b]))
    for found in results:
        for one, left, right in zip(found, a, b, strict=True):
            assert_close(one, product(left, right), atol=1e-2, rtol=1e-2)


@program(TRITON + "09-persistent-matmul.py")
def persistent_matmul(m: Any, target: str) -> None:
    a, b = half(256, 128), half(192, 128)
    wanted = product(a, b.T)
    assert_close(m.matmul(a, b.T), wanted, atol=1e-2, rtol=1e-2)
    assert_close(m.matmul_persistent(a, b.T), wanted, atol=1e-2, rtol=1e-2)
    kernels = [(m.matmul_tma, m.HAS_HOST_TENSOR_DESC), (m.matmul_tma_clc, m.HAS_TMA_CLC)]
    kernels += [(m.matmul_tma_persistent, m.HAS_HOST_TENSOR_DESC)]
    kernels += [(m.matmul_descriptor_persistent, m.HAS_TENSOR_DESC)]
    for (kernel, is_there), specialized in itertools.product(kernels, (False, True)):
        if not is_there or (specialized and not m.HAS_WARP_SPECIALIZE):
            continue
        if specialized and m.is_hopper() and kernel != m.matmul_descriptor_persistent:
            continue
        assert_close(kernel(a, b, specialized), wanted, atol=1e-2, rtol=1e-2)


@program(TRITON + "10-block-scaled-matmul.py", ("sm_100a", "sm_120a"))
def block_scaled_matmul(m: Any, target: str) -> None:
    m.cublas = None
    for kind in ("mxfp4", "mxfp8", "nvfp4") if target == "sm_120a" else ("mxfp4", "mxfp8", "nvfp4", "mixed"):
        found = m.initialize_block_scaled(128, 256, 512, kind, compute_reference=True)
        *descriptors, rep_m, rep_n, rep_k, configs, reference = found[:9]
        if target == "sm_120a":  # the tutorial's tiles need a B200's shared memory
            configs["num_stages"] = 1
        shape = (128, 256, 512)
        out = m.block_scaled_matmul(*descriptors, torch.float16, *shape, rep_m, rep_n, rep_k, configs)
        assert_close(reference, out.float(), atol=1e-3, rtol=1e-3)


@program(TRITON + "11-programmatic-dependent-launch.py", SINCE_HOPPER)
def dependent_launch(m: Any, target: str) -> None:
    x, y = torch.rand(5000), torch.rand(5000)
    assert torch.equal(m.add(x, y, True), x + y)


# Gluon: the tutorials' own tests, with small sizes.


@program(GLUON + "01-intro.py")
def gluon_intro(m: Any, target: str) -> None:
    m.test_copy_scalar()
    m.test_memcpy(64, 500)
    x, y = torch.randn(3000), torch.empty(3000)
    m.memcpy_autotune(x, y)
    assert torch.equal(x, y)


@program(GLUON + "02-layouts.py")
def gluon_layouts(m: Any, target: str) -> None:
    m.test_memcpy_1d(128, 1000, 4)
    m.test_memcpy_2d(128, 256, 100, 200, True, 4)
    m.test_memcpy_2d_inout(60, 80, True, False)


@program(GLUON + "03-async-copy.py")
def gluon_async_copy(m: Any, target: str) -> None:
    m.test_memcpy_1d_cpasync(1000, 256)
    m.test_elementwise_add(50, 100, 32, 32)
    m.test_elementwise_add_cpasync(50, 100, 32, 32)
    m.test_elementwise_add_pipelined(50, 200, 32, 64, 3)


@program(GLUON + "04-tma.py", SINCE_HOPPER)
def gluon_tma(m: Any, target: str) -> None:
    m.test_memcpy_1d_tma(64, 500)
    m.test_elementwise_add_pipelined(50, 200, 32, 64, 3)
    if hasattr(m, "test_tma_message_passing"):
        m.test_tma_message_passing(16)


@program(GLUON + "05-wgmma.py", HOPPER)
def gluon_wgmma(m: Any, target: str) -> None:
    m.test_small_mma(64, 32, 32, False, 16, 4)
    m.test_small_mma(64, 32, 32, True, 16, 4)
    m.test_blocked_matmul(208, 128, 304, 64, 64, 64, True, 4)
    m.test_blocked_matmul_pipelined(208, 128, 304, 128, 128, 128, 8)


@program(GLUON + "06-tcgen05.py", BLACKWELL)
def gluon_tcgen05(m: Any, target: str) -> None:
    m.test_tmem_example_kernel(64, 64, 4)
    for in_memory, commit in itertools.product((False, True), (False, True)):
        m.test_small_mma(64, 128, 128, in_memory, commit, 4)
    m.test_blocked_matmul(208, 128, 304, 64, 64, 64, True, 4)
    m.test_blocked_matmul_pipelined(208, 128, 304, 64, 64, 64, 4)


@program(GLUON + "07-persistence.py", ("sm_90a", "sm_100a"))
def gluon_persistence(m: Any, target: str) -> None:
    warps = 8 if target == "sm_90a" else 4
    m.test_pipelined_matmul(200, 304, 208, 128, 256, 64, 3, warps)
    m.test_persistent_matmul(200, 304, 208, 128, 256, 64, 3, warps, m.schedulers[0])
    m.test_persistent_matmul_pipelined(208, 200, 304, 64, 64, 64, 3, 4, m.schedulers[-1])


@program(GLUON + "08-warp-specialization.py", SINCE_HOPPER)
def gluon_warp_specialization(m: Any, target: str) -> None:
    m.test_elementwise_add_warp_specialized(100, 200, 32, 64, 2, 2, 4)
    if target == "sm_100a":
        m.test_matmul_warp_specialized(208, 304, 304, 128, 256, 64, 3, 4, 4, m.t7.schedulers[0])


@program(GLUON + "09-tma-gather-scatter.py", BLACKWELL)
def gluon_gather_scatter(m: Any, target: str) -> None:
    given, rows = torch.randn(128, 128), torch.tensor([5, -1, 127, 128, 0, 64, 31, 99], dtype=torch.int32)
    there = (rows >= 0) & (rows < 128)  # the tutorial's own test has Triton instrument the kernel
    wanted = given[torch.where(there, rows, 0).long(), 48:64] * there[:, None]
    assert torch.equal(m.async_gather(given, rows, 48, 8, 16), wanted)
    out, parts = torch.zeros(128, 128), torch.randn(8, 16)
    rows = torch.tensor([5, 6, 127, 1, 0, 64, 31, 99], dtype=torch.int32)
    m.async_scatter(out, rows, 48, parts, 8, 16)
    assert torch.equal(out[rows.long(), 48:64], parts)
    x, weight = torch.randn(256, 256).bfloat16(), torch.randn(256, 128).bfloat16()
    first, last = torch.randperm(256).int(), torch.randperm(256).int()
    found = m.matmul_fused_gather_scatter(x, first, weight, last)
    wanted = torch.empty(256, 128)
    wanted[last.long()] = x[first.long()].float() @ weight.float()
    assert_close(found.float(), wanted, atol=1e-1, rtol=1e-2)


@program(GLUON + "10-tcgen05-copy.py", BLACKWELL)
def gluon_tcgen05_copy(m: Any, target: str) -> None:
    for shape in m.configs[:2]:
        m.test_tcgen05_copy_nvmma_shared(*shape, torch.float32, 128)
    m.test_matmul_accumulate(256, 128, 256, 128, 128, 64, 3, torch.float16)


@program(GLUON + "11-tcgen05-mma-scaled.py", BLACKWELL)
def gluon_mma_scaled(m: Any, target: str) -> None:
    for a, b in (("mxfp8", "mxfp8"), ("mxfp4", "mxfp4"), ("nvfp4", "nvfp4"), ("mxfp8", "mxfp4")):
        m.test_simple_mma_scaled(128, 128, 256, a, b, 128, 128)
    m.test_mma_scaled_packed_block(128, 128, 256, "nvfp4", "nvfp4", 128, 128)
    m.test_mma_scaled_tcgen05_copy(128, 128, 256, "mxfp4", "mxfp4", 128, 128)
    m.test_mma_scaled_pipelined(128, 128, 384, "nvfp4", "nvfp4", m.mma_scaled_warp_specialized_kernel)


@program(GLUON + "11-tcgen05-mma-scaled.py", BLACKWELL, finds="use-after-free")
def gluon_mma_scaled_pipelined(m: Any, target: str) -> None:
    """After the last tile scale factors are copied all the same, and nothing waits before tensor memory is freed."""
    m.test_mma_scaled_pipelined(128, 128, 384, "mxfp8", "mxfp8", m.mma_scaled_pipelined_kernel)


@program(GLUON + "12-cluster-launch-control.py", BLACKWELL)
def gluon_launch_control(m: Any, target: str) -> None:
    a, b = half(304, 304), half(304, 304)
    for uses in (True, False):
        c = torch.zeros(304, 304).half()
        m.run_matmul_kernel(a, b, c, use_clc=uses)
        assert_close(c, product(a, b), atol=1e-2, rtol=1e-2)


@program(GLUON + "13-conv-im2col.py", ("sm_90a", "sm_100a"))
def gluon_im2col(m: Any, target: str) -> None:
    m.test_tma_im2col_simple()
    m.test_tma_im2col_padded()
    m.test_tma_im2col_offset()
    m.test_tma_im2col_multi_batch()
    m.test_tma_im2col_multi_batch_padded()


@program(GLUON + "13-conv-im2col.py", ("sm_90a", "sm_100a"), finds="data-race")
def gluon_conv(m: Any, target: str) -> None:
    """Copies of the next step are started before the wait for the MMA that still reads the only buffer."""
    m.test_conv2d_tma_im2col(1, 8, 8, 64, 64, 3, 3, 1, 1)


@program(GLUON + "14-multicta.py", ("sm_90a", "sm_100a"))
def gluon_multicta(m: Any, target: str) -> None:
    m.test_multicta_softmax_f32(64, 256)
    m.test_tma_multicast_copy()
    if target == "sm_100a":
        m.test_two_cta_tcgen05()
        m.test_tma_tcgen05()


# Scripts as they are, from the first line to the last.


def output_of(path: str) -> str:
    """What a script prints."""
    with redirect_stdout(StringIO()) as shown:
        runpy.run_path(path, run_name="__main__")
    return shown.getvalue()


@program(TRITON + "04-low-memory-dropout.py")
def script_dropout(m: Any, target: str) -> None:
    rows = [line.split()[-10:] for line in output_of(m.__file__).splitlines() if line.startswith("output (seed")]
    assert rows[0] == rows[1] != rows[2]


@program(TRITON + "07-extern-functions.py")
def script_extern_functions(m: Any, target: str) -> None:
    found = re.findall(r"maximum difference between torch and triton is (\S+)", output_of(m.__file__))
    assert len(found) == 2
    assert all(float(one) < 1e-6 for one in found)


@program(GLUON + "01-intro.py")
def script_gluon_tests(m: Any, target: str) -> None:
    assert pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", m.__file__]) == 0
