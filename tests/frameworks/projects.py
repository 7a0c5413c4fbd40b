"""Triton kernels of well-known projects, with tensors small enough for the emulator."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch.nn import functional
from torch.testing import assert_close

from tests.frameworks.real import program
from tests.frameworks.tutorials import half, with_gradients

LIGER = "Liger-Kernel:src::liger_kernel.ops."
FLASH = "flash-attention:.::flash_attn.ops.triton."
MAMBA = "mamba:.::mamba_ssm.ops.triton."
FLA = "flash-linear-attention:.::fla."


def leaf(*shape: int) -> torch.Tensor:
    """Random f32 that needs a gradient."""
    return torch.randn(*shape).requires_grad_()


def same(found: Any, wanted: Any, leaves: list[torch.Tensor], tolerance: float = 1e-4) -> None:
    """Whether two functions have the same results and gradients."""
    gradient = torch.randn_like(wanted())
    right = with_gradients(wanted, leaves, gradient)  # first: a kernel may write gradients over what it is given
    for one, other in zip(with_gradients(found, leaves, gradient), right, strict=True):
        assert_close(one, other, atol=tolerance, rtol=tolerance)


def root_mean_square(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMS norm."""
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


@program(LIGER + "rms_norm")
def liger_rms_norm(m: Any, target: str) -> None:
    x, weight = leaf(9, 300), leaf(300)
    same(lambda: m.LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False),
         lambda: root_mean_square(x, weight), [x, weight])  # fmt: skip


@program(LIGER + "layer_norm")
def liger_layer_norm(m: Any, target: str) -> None:
    x, weight, bias = leaf(9, 300), leaf(300), leaf(300)
    same(lambda: m.LigerLayerNormFunction.apply(x, weight, bias, 1e-6),
         lambda: functional.layer_norm(x, (300,), weight, bias, 1e-6), [x, weight, bias])  # fmt: skip


@program(LIGER + "swiglu")
def liger_swiglu(m: Any, target: str) -> None:
    importlib.import_module("torch.distributed.tensor")
    a, b = leaf(7, 333), leaf(7, 333)
    same(lambda: m.LigerSiLUMulFunction.apply(a, b), lambda: functional.silu(a) * b, [a, b])


@program(LIGER + "geglu")
def liger_geglu(m: Any, target: str) -> None:
    a, b = leaf(7, 333), leaf(7, 333)
    same(lambda: m.LigerGELUMulFunction.apply(a, b), lambda: functional.gelu(a, approximate="tanh") * b, [a, b])


@program(LIGER + "softmax")
def liger_softmax(m: Any, target: str) -> None:
    x = leaf(11, 500)
    same(lambda: m.LigerSoftmaxFunction.apply(x), lambda: torch.softmax(x, -1), [x])


@program(LIGER + "sparsemax")
def liger_sparsemax(m: Any, target: str) -> None:
    x = torch.randn(6, 100)

    def reference(x: torch.Tensor) -> torch.Tensor:
        ordered, _ = torch.sort(x, descending=True)
        sums = ordered.cumsum(-1) - 1
        count = torch.arange(1, x.shape[-1] + 1)
        support = (ordered * count > sums).sum(-1, keepdim=True)
        return (x - sums.gather(-1, support - 1) / support).clamp(min=0)

    assert_close(m.LigerSparsemaxFunction.apply(x, -1), reference(x))


@program(LIGER + "cross_entropy")
def liger_cross_entropy(m: Any, target: str) -> None:
    x, labels = leaf(9, 1000), torch.randint(0, 1000, (9,))
    labels[3] = -100
    given = x.detach().clone().requires_grad_()  # the kernel writes the gradient over its input
    loss = m.LigerCrossEntropyFunction.apply(given, labels, None, -100, 0.0, 0.1, "mean", None, False)[0]
    loss.backward()
    wanted = functional.cross_entropy(x, labels, label_smoothing=0.1)
    wanted.backward()
    assert_close(loss, wanted)
    assert_close(given.grad, x.grad)


@program(LIGER + "rope")
def liger_rope(m: Any, target: str) -> None:
    q, k = torch.randn(2, 4, 10, 64), torch.randn(2, 2, 10, 64)
    angles = torch.arange(10)[:, None] / 10000 ** (torch.arange(0, 64, 2) / 64)
    cos, sin = (torch.cat([part, part], -1)[None] for part in (angles.cos(), angles.sin()))

    def rotated(x: torch.Tensor) -> torch.Tensor:
        turned = torch.cat([-x[..., 32:], x[..., :32]], -1)
        return x * cos[:, None] + turned * sin[:, None]

    found = m.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin)
    assert_close(found[0], rotated(q))
    assert_close(found[1], rotated(k))


@program(LIGER + "group_norm")
def liger_group_norm(m: Any, target: str) -> None:
    x, weight, bias = leaf(3, 8, 50), leaf(8), leaf(8)
    same(lambda: m.LigerGroupNormFunction.apply(x, weight, bias, 8, 4, 1e-6),
         lambda: functional.group_norm(x, 4, weight, bias, 1e-6), [x, weight, bias], 1e-3)  # fmt: skip


@program(LIGER + "dyt")
def liger_dyt(m: Any, target: str) -> None:
    x, alpha, gamma, beta = leaf(5, 256), leaf(1), leaf(256), leaf(256)
    same(lambda: m.LigerDyTFunction.apply(x, alpha, gamma, beta),
         lambda: torch.tanh(x * alpha) * gamma + beta, [x, alpha, gamma, beta], 1e-3)  # fmt: skip


@program(LIGER + "relu_squared")
def liger_relu_squared(m: Any, target: str) -> None:
    x = leaf(5, 256)
    same(lambda: m.LigerReLUSquaredFunction.apply(x), lambda: functional.relu(x) ** 2, [x])


@program(LIGER + "kl_div")
def liger_kl_div(m: Any, target: str) -> None:
    x, y = torch.log_softmax(torch.randn(6, 400), -1).requires_grad_(), torch.softmax(torch.randn(6, 400), -1)
    found = m.LigerKLDivLossFunction.apply(x, y, "batchmean", False, 1e-10)
    assert_close(found, functional.kl_div(x, y, reduction="batchmean"))


@program(FLASH + "layer_norm")
def flash_layer_norm(m: Any, target: str) -> None:
    x, residual, weight, bias = leaf(9, 200), leaf(9, 200), leaf(200), leaf(200)
    same(lambda: m.layer_norm_fn(x, weight, bias, residual=residual, eps=1e-6),
         lambda: m.layer_norm_ref(x, weight, bias, residual=residual, eps=1e-6),
         [x, residual, weight, bias])  # fmt: skip


@program(FLASH + "cross_entropy")
def flash_cross_entropy(m: Any, target: str) -> None:
    x, labels = leaf(9, 1000), torch.randint(0, 1000, (9,))
    same(lambda: m.cross_entropy_loss(x, labels, label_smoothing=0.1)[0],
         lambda: functional.cross_entropy(x, labels, label_smoothing=0.1, reduction="none"), [x])  # fmt: skip


@program(FLASH + "rotary")
def flash_rotary(m: Any, target: str) -> None:
    x, angles = torch.randn(2, 10, 3, 64), torch.rand(10, 32)
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., :32], x[..., 32:]
    c, s = cos[None, :, None], sin[None, :, None]
    wanted = torch.cat([first * c - second * s, first * s + second * c], -1)
    assert_close(m.apply_rotary(x, cos, sin), wanted)


@program(MAMBA + "selective_state_update")
def mamba_state_update(m: Any, target: str) -> None:
    state, x, dt, z = torch.randn(2, 70, 16), torch.randn(2, 70), torch.randn(2, 70), torch.randn(2, 70)
    a, b, c, d = -torch.rand(70, 16), torch.randn(2, 16), torch.randn(2, 16), torch.randn(70)
    other, how = state.clone(), {"D": d, "z": z, "dt_bias": torch.randn(70), "dt_softplus": True}
    found = m.selective_state_update(state, x, dt, a, b, c, **how)
    wanted = m.selective_state_update_ref(other, x, dt, a, b, c, **how)
    assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    assert_close(state, other, atol=1e-4, rtol=1e-4)


@program(MAMBA + "layernorm_gated")
def mamba_gated_norm(m: Any, target: str) -> None:
    x, z, weight = leaf(9, 256), leaf(9, 256), leaf(256)
    same(lambda: m.rmsnorm_fn(x, weight, None, z=z, norm_before_gate=False),
         lambda: m.rms_norm_ref(x, weight, None, z=z, norm_before_gate=False), [x, z, weight], 1e-3)  # fmt: skip


@program(MAMBA + "ssd_chunk_state")
def mamba_chunk_state(m: Any, target: str) -> None:
    b, x = torch.randn(1, 128, 1, 32), torch.randn(1, 128, 2, 32)
    dt, sums = torch.rand(1, 2, 2, 64), -torch.rand(1, 2, 2, 64).cumsum(-1)
    assert_close(m.chunk_state(b, x, dt, sums), m.chunk_state_ref(b, x, dt, sums), atol=5e-2, rtol=1e-2)


@program(MAMBA + "ssd_bmm")
def mamba_chunk_product(m: Any, target: str) -> None:
    a, b = half(1, 128, 1, 32), half(1, 128, 1, 32)
    found = m._bmm_chunk_fwd(a, b, 64)
    wanted = torch.einsum("bcmgk,bcngk->bcgmn", *(one.reshape(1, 2, 64, 1, 32).float() for one in (a, b)))
    assert_close(found.float(), wanted, atol=2e-2, rtol=1e-2)


@program(FLA + "ops.utils.cumsum")
def fla_cumsum(m: Any, target: str) -> None:
    x = torch.randn(2, 64, 3)
    found = m.chunk_local_cumsum(x, chunk_size=16)
    assert_close(found, x.reshape(2, 4, 16, 3).cumsum(2).reshape(2, 64, 3))


@program(FLA + "ops.utils.softmax")
def fla_softmax(m: Any, target: str) -> None:
    x = torch.randn(4, 100)
    assert_close(m.softmax_fwd(x), torch.softmax(x, -1))


@program(FLA + "ops.simple_gla.fused_recurrent")
def fla_recurrent(m: Any, target: str) -> None:
    q, k, v = (torch.randn(1, 20, 2, 32) for _ in range(3))
    g = -torch.rand(1, 20, 2)
    found, _ = m.fused_recurrent_simple_gla(q, k, v, g=g, scale=1.0)
    state, wanted = torch.zeros(1, 2, 32, 32), []
    for t in range(20):
        state = state * g[:, t, :, None, None].exp() + k[:, t, :, :, None] * v[:, t, :, None, :]
        wanted.append((q[:, t, :, :, None] * state).sum(-2))
    assert_close(found, torch.stack(wanted, 1), atol=1e-3, rtol=1e-3)


@program("triton:python/triton_kernels::triton_kernels.swiglu")
def triton_kernels_swiglu(m: Any, target: str) -> None:
    x = torch.randn(40, 128)
    found = m.swiglu(x, 1.0, m.PrecisionConfig(limit=2.0))
    wanted = m.swiglu_torch(x, 1.0, m.PrecisionConfig(limit=2.0))
    assert_close(found, wanted, atol=1e-4, rtol=1e-4)
