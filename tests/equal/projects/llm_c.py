# ruff: noqa: E501, N803
"""Kernels of llm.c, `dev/cuda`."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.equal.projects.stranger import Results, Stranger, b, f, i, normed, p, softmax


def llm(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    return Stranger("llm.c", f"{file}.cu", entry, *rest, **more)


def softmax_gradient(out: Any, datt: Any, att: Any, *rest: Any, unit: int = 1) -> Results:
    """Of causal attention; a thread writes so many elements, beyond the diagonal zeros."""
    scale = rest[-1] if isinstance(rest[-1], float) else 1 / np.sqrt(rest[2] / rest[3])
    at = np.arange(att.shape[-1])
    mask = (at <= at[:, None]).astype(np.float32)
    att, datt = att * mask, datt * mask
    found = (datt - (att * datt).sum(-1, keepdims=True)) * att * scale
    return {0: np.where(at // unit * unit <= at[:, None], found, out)}


def residual_norm(
    residual: Any, normal: Any, mean: Any, rstd: Any, a: Any, c: Any, w: Any, bias: Any, *_: Any
) -> Results:
    total = a + c
    rows, m, s = normed(total)
    return {0: total, 1: rows * w + bias, 2: m, 3: s}


def norm_gradient(dinp: Any, dw: Any, db: Any, dout: Any, inp: Any, w: Any, mean: Any, rstd: Any) -> Results:
    norm = (inp - mean[:, None]) * rstd[:, None]
    d = w * dout
    rest = d - d.mean(-1, keepdims=True) - norm * (d * norm).mean(-1, keepdims=True)
    return {0: dinp + rest * rstd[:, None], 1: dw + (dout * norm).sum(0), 2: db + dout.sum(0)}


def classified(dlogits: Any, losses: Any, probs: Any, logits: Any, dlosses: Any, targets: Any, B: int, T: int, V: int,
               P: int) -> Results:  # fmt: skip
    rows = softmax(logits[:, :V])
    chosen = np.eye(V, dtype=np.float32)[targets]
    gradient = (rows - chosen) * dlosses[:, None]
    return {0: np.concatenate([gradient, dlogits[:, V:]], axis=1), 1: -np.log((rows * chosen).sum(-1))}


def split_heads(q: Any, k: Any, v: Any, inp: Any, B: int, N: int, NH: int, d: int) -> Results:
    parts = inp.reshape(B, N, 3, NH, d).transpose(2, 0, 3, 1, 4)
    return {0: parts[0], 1: parts[1], 2: parts[2]}


GELU = np.float32(np.sqrt(2 / np.pi))
NORM = [f(4, 48), f(4), f(4), f(4, 48), f(48), f(48), 4, 48]
GRADIENT = [b(4, 64), b(64), b(64), b(4, 64), b(4, 64), b(64), b(4), p(4, type=ml_dtypes.bfloat16)]


def layer_norm(out: Any, mean: Any, rstd: Any, inp: Any, w: Any, bias: Any, *_: Any) -> Results:
    rows, m, s = normed(inp)
    return {0: rows * w + bias, 1: m, 2: s}


def residual(C: int, type: Any) -> list[Any]:
    rows = [f(3, C, type=type), f(3, C, type=type)]
    return [*rows, f(3, type=type), f(3, type=type), f(3, C, type=type), f(3, C, type=type), f(C, type=type),
            f(C, type=type), 2, C]  # fmt: skip


LLM = [
    llm("attention_backward", "softmax_autoregressive_backward_kernel2", (1, 2), 32,
        [f(2, 20, 20), f(2, 20, 20), f(2, 20, 20), 1, 20, 32, 2], softmax_gradient),
    llm("attention_backward", "softmax_autoregressive_backward_kernel4", (1, 2), 96,
        [f(2, 24, 24), f(2, 24, 24), f(2, 24, 24), 1, 24, 32, 2], partial(softmax_gradient, unit=8)),
    llm("attention_backward", "softmax_autoregressive_backward_kernel7<64>", (20, 2), 64,
        [f(2, 20, 20), f(2, 20, 20), f(2, 20, 20), 1, 20, 32, 0.25], softmax_gradient),
    llm("attention_backward", "unpermute_kernel_backward", 2, 64, [f(2, 3, 5, 4), f(2, 5, 3, 4), 2, 5, 3, 4],
        lambda a, x, *_: a + x.transpose(0, 2, 1, 3)),
    llm("attention_forward", "permute_kernel", 2, 64, [f(2, 3, 5, 4), f(2, 3, 5, 4), f(2, 3, 5, 4), f(2, 5, 3, 3, 4), 2,
                                                       5, 3, 4], split_heads),
    llm("classifier_fused", "fused_classifier_kernel5<true, false>", 2, 32,
        [f(2, 304), f(2), f(2, 304), f(2, 304), f(2), i(300, 2), 1, 2, 300, 304], classified,
        instance=["fused_classifier_kernel5<true, false>"]),
    llm("encoder_forward", "encoder_forward_kernel1", 1, 32, [b(2, 6, 8), i(9, 2, 6), b(9, 8), b(6, 8), 2, 6, 8],
        lambda _, at, table, places, *__: table[at] + places),
    llm("encoder_forward", "encoder_forward_kernel3", 1, 32, [b(2, 6, 8), i(9, 2, 6), b(9, 8), b(6, 8), 2, 6, 8],
        lambda _, at, table, places, *__: table[at] + places),
    llm("fused_residual_forward", "fused_residual_forward2", 1, 3, residual(40, ml_dtypes.bfloat16), residual_norm),
    llm("fused_residual_forward", "fused_residual_forward_kernel4", 1, (32, 3), residual(256, ml_dtypes.bfloat16),
        residual_norm),
    llm("fused_residual_forward", "fused_residual_forward_kernel5", 1, (32, 3), residual(256, ml_dtypes.bfloat16),
        residual_norm, shared=5 * 256 * 2),
    llm("fused_residual_forward", "residual_forward_kernel1", 2, 64, [b(100), b(100), b(100), 100],
        lambda _, x, y, n: x + y),
    llm("gelu_forward", "gelu_forward_kernel1", 1, 64, [b(50), b(50), 50],
        lambda _, x, n: 0.5 * x * (1 + np.tanh(GELU * (x + np.float32(0.044715) * x * x * x)))),
    llm("global_norm", "norm_kernel1<__nv_bfloat16>", 2, 96, [f(1), b(500), 500], lambda out, x, n: out + (x * x).sum()),
    llm("global_norm", "norm_kernel2<__nv_bfloat16>", 2, 96, [f(1), b(500), 500], lambda out, x, n: out + (x * x).sum()),
    llm("layernorm_backward", "copy_to_dweight_dbias<__nv_bfloat16>", 1, 32, [40, b(40), b(40), f(40), f(40)],
        lambda n, x, y, a, c: {1: a, 2: c}),
    llm("layernorm_backward", "layernorm_backward_kernel2<...>", 1, 128,
        [*GRADIENT, 1, 4, 64, f(64), f(64)],
        lambda *a: {0: (g := norm_gradient(a[0], a[11], a[12], *a[3:8]))[0], 11: g[1], 12: g[2]}, shared=512),
    llm("layernorm_backward", "layernorm_backward_kernel4<...>", 2, 64, [*GRADIENT, 1, 4, 64],
        lambda *a: norm_gradient(*a[:8]), shared=512),
    llm("layernorm_backward", "layernorm_backward_kernel9", 2, 64,
        [b(4, 256), b(256), b(256), np.zeros(4096, np.float32), b(4, 256), b(4, 256), b(256), b(4), p(4, type=ml_dtypes.bfloat16),
         1, 4, 256], lambda *a: norm_gradient(*a[:3], *a[4:9]), shared=4 * (2 * 256 + 2 * 64 + 1),
        mistake="no fence orders the last block's reads of the sums after the `atomicInc` that says it is the last"),
    llm("layernorm_forward", "layernorm_forward_kernel4", 2, 64, NORM, layer_norm),
    llm("layernorm_forward", "layernorm_forward_kernel5", 4, 64, NORM, layer_norm),
    llm("matmul_backward", "matmul_backward_bias_kernel_faster", 6, 32, [f(6), f(70, 6), 7, 10, 6],
        lambda _, x, *__: x.sum(0), shared=128),
    llm("matmul_backward", "matmul_backward_bias_kernel_naive", 1, 32, [f(6), f(70, 6), 7, 10, 6],
        lambda _, x, *__: x.sum(0)),
    llm("matmul_backward_bias", "matmul_backward_bias_kernel1", 6, 32, [b(6), b(70, 6), 7, 10, 6],
        lambda y, x, *__: y + x.sum(0), shared=128),
    llm("matmul_backward_bias", "matmul_backward_bias_kernel3", 6, 64, [b(6), b(70, 6), 7, 10, 6],
        lambda y, x, *__: y + x.sum(0)),
    llm("matmul_backward_bias", "matmul_backward_bias_kernel7", (1, 2), (32, 16), [f(256), b(70, 256), 7, 10, 256, 512],
        lambda y, x, *__: y + x.sum(0), shared=1024,
        mistake="threads return before the barrier that orders their atomic sums before the reads of them"),
    llm("matmul_forward", "matmul_forward_kernel1", (2, 2), (8, 8), [f(14, 9), f(14, 20), f(9, 20), f(9), 14, 20, 9],
        lambda _, x, w, bias, *__: x @ w.T + bias),
    llm("nccl_all_reduce", "set_vector", 1, 64, [f(50), 50, 2.5], lambda *_: np.full(50, 2.5)),
    llm("softmax_forward", "softmax_forward_kernel1", 1, 32, [f(4, 30), f(4, 30), 4, 30],
        lambda _, x, *__: softmax(x)),
]  # fmt: skip
