# ruff: noqa: E501, N803
"""Kernels of public projects that were drawn by a seed: how each is launched, and what it computes, in NumPy.

`tests.equal.strangers` draws, compiles and compares them. Their sources are not part of this repository.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

RANDOM = np.random.default_rng(38)
Results = dict[int, Any] | Any
"""What a kernel computes: by the number of the argument, or of the one array that it writes."""


@dataclass(frozen=True)
class Stranger:
    """A kernel, its launch, and `wanted`, which takes all arguments in their order.

    A kernel whose paths or addresses depend on floats has no `wanted`: it is compared with itself as the compiler
    makes it without contraction, which must not be different.
    """

    project: str
    file: str
    entry: str
    grid: Any
    block: Any
    args: Sequence[Any]
    wanted: Callable[..., Results] | None
    shared: int = 0
    options: Sequence[str] = ()
    target: str = "sm_90"
    mistake: str = ""
    """What is wrong with the kernel itself, where that is known."""
    instance: Sequence[str] = field(default=())
    """Template instances that nothing in the file asks for."""

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.project} {self.file} {self.entry.partition('<')[0]}"


def f(*shape: int, type: Any = np.float32) -> Any:
    """Numbers."""
    return RANDOM.standard_normal(shape).astype(type)


def p(*shape: int, type: Any = np.float32) -> Any:
    """Positive numbers."""
    return (RANDOM.random(shape) + 0.5).astype(type)


def h(*shape: int) -> Any:
    return f(*shape, type=np.float16)


def b(*shape: int) -> Any:
    return f(*shape, type=ml_dtypes.bfloat16)


def i(most: int, *shape: int) -> Any:
    return RANDOM.integers(0, most, shape).astype(np.int32)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normed(x: Any, eps: float = 1e-5) -> tuple[Any, Any, Any]:
    """Rows without mean, of variance 1; the mean, and the reciprocal of the deviation."""
    mean = x.mean(-1, keepdims=True)
    rest = x - mean
    scale = 1 / np.sqrt((rest * rest).mean(-1, keepdims=True) + eps)
    return rest * scale, mean, scale


def attention(q: Any, k: Any, v: Any, *_: Any) -> Results:
    return {3: softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v}


def attention_of_columns(q: Any, k: Any, v: Any, *_: Any) -> Results:
    """V is stored by columns: a row has one element of each key."""
    return attention(q, k, v.reshape(*v.shape[:-2], v.shape[-1], v.shape[-2]).swapaxes(-1, -2))


def scanned(x: Any) -> Any:
    """Sums of all elements up to each, along the last axis."""
    return x @ np.triu(np.ones((x.shape[-1],) * 2, np.float32))


# llm.c, dev/cuda.


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


# SGEMM_CUDA.


def sgemm(file: str, entry: str, grid: Any, block: Any, m: int, n: int, k: int, **more: Any) -> Stranger:
    return Stranger("SGEMM_CUDA", f"src/kernels/{file}.cuh", entry, grid, block,
                    [m, n, k, 0.5, f(m, k), f(k, n), 3.0, f(m, n)],
                    lambda m, n, k, alpha, x, y, beta, c: {7: alpha * (x @ y) + beta * c},
                    instance=[entry] if "<" in entry else (),
                    options=("-include=cuda_runtime.h", "-DCEIL_DIV(M, N)=(((M) + (N)-1) / (N))", *(["-DWARPSIZE=32"] if file.startswith("12") else [])), **more)  # fmt: skip


SGEMM = [
    sgemm("10_kernel_warptiling", "sgemmWarptiling<64, 64, 16, 32, 32, 1, 4, 4, 128>", (1, 2), 128, 128, 64, 32),
    sgemm("12_kernel_double_buffering", "runSgemmDoubleBuffering2<64, 64, 16, 32, 32, 1, 4, 4, 128>", (1, 1), 128, 64, 64,
          48),
    sgemm("1_naive", "sgemm_naive", (2, 2), (8, 8), 14, 10, 21),
    sgemm("2_kernel_global_mem_coalesce", "sgemm_global_mem_coalesce<8>", (2, 2), 64, 14, 10, 21),
    sgemm("4_kernel_1D_blocktiling", "sgemm1DBlocktiling<64, 64, 8, 8>", (1, 1), 512, 64, 64, 24),
    sgemm("6_kernel_vectorize", "sgemmVectorize<128, 128, 8, 8, 8>", (1, 1), 256, 128, 128, 16),
    sgemm("7_kernel_resolve_bank_conflicts", "sgemmResolveBankConflicts<128, 128, 8, 8, 8>", (1, 1), 256, 128, 128, 24),
    sgemm("9_kernel_autotuned", "sgemmAutotuned<128, 128, 16, 8, 8>", (1, 1), 256, 128, 128, 16),
]  # fmt: skip


# LeetCUDA, kernels.


def leet(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    more["instance"] = [entry] if "<" in entry else ()
    return Stranger("LeetCUDA", f"{file}.cu", entry, *rest, **more)


def each(
    file: str, entry: str, count: int, width: int, type: Any, wanted: Callable[[Any], Any], **more: Any
) -> Stranger:
    """Of each element a function; each thread has some."""
    return leet(file, entry, 1, -(-count // width), [f(count, type=type), f(count, type=type), count],
                lambda x, y, n: {1: wanted(x)}, **more)  # fmt: skip


def product(file: str, entry: str, grid: Any, block: Any, m: int, n: int, k: int, type: Any = np.float16,
            shared: int = 0) -> Stranger:  # fmt: skip
    return leet(file, entry, grid, block, [f(m, k, type=type), f(k, n, type=type), f(m, n, type=type), m, n, k],
                lambda x, y, *_: {2: x @ y}, shared=shared)  # fmt: skip


def flash(
    file: str,
    entry: str,
    more: str,
    tiles: str = "4, 1, 4, 1, 1, 8, 1, 8",
    block: int = 128,
    length: int = 64,
    rows: int = 64,
    reference: Callable[..., Results] = attention,
) -> Stranger:
    """Attention of one head; a block has so many rows of Q."""
    return leet(f"flash-attn/mma/{file}", f"{entry}<64, 16, 8, 16, {tiles}, {more}>", (length // rows, 1), block,
                [*(h(1, 1, length, 64) for _ in range(4)), length, 1], reference, shared=65536)  # fmt: skip


def norm_of(entry: str, width: int, K: int = 64) -> Stranger:
    return leet("layer-norm/layer_norm", f"{entry}<{K // width}>", 2, K // width, [h(2, K), h(2, K), 0.5, 2.0, 2, K],
                lambda x, y, g, bias, *_: {1: normed(x)[0] * g + bias})  # fmt: skip


def summed(entry: str, threads: int, x: Any, symbols: bool = True) -> Stranger:
    return leet("reduce/block_all_reduce", f"{entry}<{threads}>", 2, threads, [x, f(1), x.size],
                lambda x, y, n: {1: y + x.sum()})  # fmt: skip


def shrunk(x: Any) -> Any:
    return np.where(x > 0.5, x, np.where(x < -0.5, x, 0.0))


def hard_swish(x: Any) -> Any:
    return np.where(x >= 3.0, x, np.where(x <= -3.0, 0.0, x * (x + 3) / 6))


def sigmoid(x: Any) -> Any:
    low, high = (float(np.float16(one)) for one in (-9.704060527839234, 11.089866488461016))
    return 1 / (1 + np.exp(-np.minimum(np.maximum(x, low), high)))


def row(x: Any, y: Any, m: int, n: int) -> Results:
    return {1: x.T}


E5M2 = f(100, type=ml_dtypes.float8_e5m2)
LEETCUDA = [
    leet("elementwise/elementwise", "elementwise_add_f32_kernel", 2, 32, [f(50), f(50), f(50), 50],
         lambda x, y, z, n: {2: x + y}),
    leet("embedding/embedding", "embedding_f16x8_kernel", 3, 4, [i(9, 3), h(9, 32), h(3, 32), 3, 32],
         lambda at, w, *_: {2: w[at]}),
    leet("embedding/embedding", "embedding_f32x4_pack_kernel", 3, 8, [i(9, 3), f(9, 32), f(3, 32), 3, 32],
         lambda at, w, *_: {2: w[at]}),
    flash("basic/flash_attn_mma_share_kv_F32F16F16F32", "flash_attn_mma_stages_split_q_shared_kv_acc_f32_kernel",
          "1, 1, 8, 8, 8"),
    flash("basic/flash_attn_mma_split_kv", "flash_attn_mma_stages_split_kv_kernel", "1, 8", "2, 4, 2, 4, 2, 2, 2, 2", 256, 128),
    flash("basic/flash_attn_mma_split_q", "flash_attn_mma_stages_split_q_kernel", "1, 8", length=128),
    flash("basic/flash_attn_mma_tiling_qk_F32F16F16F32", "flash_attn_mma_stages_split_q_tiling_qk_acc_f32_kernel",
          "1, 1, 8, 8, 8"),
    flash("others/flash_attn_mma_share_qkv_Os2g", "flash_attn_mma_stages_split_q_shared_qkv_Os2g_kernel", "1, 8, 8, 8"),
    flash("swizzle/flash_attn_mma_share_kv_swizzle_qkv", "flash_attn_mma_stages_split_q_shared_kv_swizzle_qkv_kernel",
          "1, 1, 0, 0, 0", "8, 1, 8, 1, 1, 8, 1, 8", 256, 128, 128, attention_of_columns),
    flash("swizzle/flash_attn_mma_tiling_qk_swizzle_q", "flash_attn_mma_stages_split_q_tiling_qk_swizzle_q_kernel",
          "1, 1, 0, 8, 8"),
    flash("swizzle/flash_attn_mma_tiling_qk_swizzle_qk", "flash_attn_mma_stages_split_q_tiling_qk_swizzle_qk_kernel",
          "1, 1, 0, 0, 8"),
    each("hardshrink/hardshrink", "hardshrink_f16x2_kernel", 40, 2, np.float16, shrunk),
    each("hardshrink/hardshrink", "hardshrink_f16x8_kernel", 40, 8, np.float16, shrunk),
    each("hardshrink/hardshrink", "hardshrink_f32x4_kernel", 40, 4, np.float32, shrunk),
    each("hardswish/hardswish", "hardswish_f32x4_kernel", 40, 4, np.float32, hard_swish),
    product("hgemm/mma/basic/hgemm_mma", "hgemm_mma_m16n8k16_naive_kernel<16, 8, 16>", (2, 2), 32, 32, 16, 48),
    product("hgemm/mma/basic/hgemm_mma_stage",
            "hgemm_mma_m16n8k16_mma2x4_warp4x4_stages_kernel<16, 8, 16, 2, 4, 4, 4, 0, 0, 2, true>", (1, 1), 256, 128, 128,
            64),
    product("hgemm/mma/basic/hgemm_mma_stage",
            "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_kernel<16, 8, 16, 2, 4, 4, 4, 2, 0, 0, 2, true, true>",
            (1, 1), 256, 128, 128, 96, shared=65536),
    product("hgemm/naive/hgemm", "hgemm_t_8x8_sliced_k_f16x8_pack_bcf_kernel<128, 128, 8, 8, 8, 8>", (1, 1), (16, 16), 128,
            128, 16),
    product("hgemm/naive/hgemm_async", "hgemm_t_8x8_sliced_k32_f16x8_pack_dbuf_kernel<128, 128, 32, 8, 8, 8>", (1, 1),
            (16, 16), 128, 128, 64),
    product("hgemm/wmma/hgemm_wmma", "hgemm_wmma_m16n16k16_mma4x2_kernel<16, 16, 16, 4, 2>", (2, 1), 256, 64, 64, 48),
    product("hgemm/wmma/hgemm_wmma_stage",
            "hgemm_wmma_m16n16k16_mma4x2_warp4x4_stages_dsmem_kernel<16, 16, 16, 4, 2, 4, 4, 1, 0, 0, 2, false>", (1, 1), 256,
            256, 128, 48, shared=65536),
    leet("hgemv/hgemv", "hgemv_k16_f16_kernel<2>", 1, (32, 4), [h(7, 16), h(16), h(7), 7, 16],
         lambda w, x, *_: {2: w @ x}),
    norm_of("layer_norm_f16_f16_kernel", 1),
    norm_of("layer_norm_f16x2_f16_kernel", 2),
    norm_of("layer_norm_f16x8_pack_f32_kernel", 8, 256),
    leet("mat-transpose/mat_transpose", "mat_transpose_f32x4_col2row2d_kernel", (2, 2), (8, 8), [f(13, 36), f(36, 13), 13, 36],
         row),
    leet("mat-transpose/mat_transpose", "mat_transpose_f32x4_row2col_kernel", 2, 64, [f(16, 20), f(20, 16), 16, 20], row),
    leet("mat-transpose/mat_transpose", "mat_transpose_f32x4_shared_bcf_col2row2d_kernel", (1, 2), (16, 16),
         [f(32, 64), f(64, 32), 32, 64], row),
    each("notes-v1", "relu", 40, 1, np.float32, lambda x: np.maximum(x, 0)),
    leet("notes-v1", "sgemv_k16<2>", 1, (32, 4), [f(7, 16), f(16), f(7), 7, 16], lambda w, x, *_: {2: w @ x}),
    leet("nvidia-nsight/elementwise", "elementwise_add_f32_kernel", 2, 32, [f(50), f(50), f(50), 50],
         lambda x, y, z, n: {2: x + y}),
    each("nvidia-nsight/relu", "relu_f16x8_kernel", 40, 8, np.float16, lambda x: np.maximum(x, 0)),
    summed("block_all_reduce_sum_bf16x2_bf16_kernel", 64, b(200)),
    summed("block_all_reduce_sum_f16_f16_kernel", 64, h(100)),
    summed("block_all_reduce_sum_f32_f32_kernel", 64, f(100)),
    summed("block_all_reduce_sum_fp8_e5m2_f16_kernel", 64, E5M2),
    each("relu/relu", "relu_f16x2_kernel", 40, 2, np.float16, lambda x: np.maximum(x, 0)),
    product("sgemm/sgemm_async", "sgemm_t_8x16_sliced_k16_f32x4_bcf_dbuf_kernel<128, 256, 16, 8, 16, 0>", (1, 1), (16, 16),
            128, 256, 32, np.float32),
    product("sgemm/sgemm_wmma_tf32_stage",
            "sgemm_wmma_m16n16k8_mma4x2_warp2x4_stages_dsmem_kernel<16, 16, 8, 4, 2, 2, 4, 0, 0, 2, false>", (1, 1), 256, 128,
            128, 32, np.float32, shared=65536),
    leet("sgemv/sgemv", "sgemv_k16_f32_kernel<2>", 1, (32, 4), [f(7, 16), f(16), f(7), 7, 16],
         lambda w, x, *_: {2: w @ x}),
    each("sigmoid/sigmoid", "sigmoid_f16x2_kernel", 40, 2, np.float16, sigmoid),
    each("swish/swish", "swish_f32x4_kernel", 40, 4, np.float32, lambda x: x / (1 + np.exp(-x))),
    product("swizzle/hgemm_mma_swizzle", "hgemm_mma_m16n8k16_naive_smem_swizzle_kernel<16, 8, 16>", (2, 2), 32, 32, 16, 48),
]  # fmt: skip


# PolyBench/GPU, CUDA: sizes are macros.

N, M = 20, 12
SIZES = [f"-D{name}={value}" for name, value in
         {"N": N, "M": M, "NI": N, "NJ": M, "NK": 9, "NL": 7, "NM": 5, "NX": N, "NY": M, "NP": 8, "NQ": 10, "NR": 3}.items()]  # fmt: skip


def poly(file: str, entry: str, grid: Any, block: Any, args: Sequence[Any], wanted: Callable[..., Results]) -> Stranger:
    sizes = [one for one in SIZES if file in ("ADI/adi", "COVAR/covariance", "GESUMMV/gesummv") or one[:4] != "-DM="]
    return Stranger("polybench", f"{file}.cu", entry, grid, block, args, wanted, options=("-I../../common", *sizes))


def adi(n: int, a: Any, c: Any, x: Any) -> Results:
    x = x.copy()
    for at in range(n - 2, 0, -1):
        x[:, at] = (x[:, at] - x[:, at - 1] * a[:, at - 1]) / c[:, at - 1]
    return {3: x}


def orthogonal(ni: int, nj: int, a: Any, r: Any, q: Any, k: int) -> Results:
    made = (q[:, k : k + 1] * a).sum(0)
    chosen = np.arange(nj) > k
    rows = np.arange(r.shape[0])[:, None] == k
    return {3: np.where(rows & chosen, made, r), 2: np.where(chosen, a - q[:, k : k + 1] * made, a)}


def covariance(m: int, n: int, out: Any, data: Any) -> Results:
    return {2: data.T @ data}


ROWS = (2, 3)
POLYBENCH = [
    poly("2MM/2mm", "mm2_kernel1", ROWS, (8, 8), [N, M, 9, 7, 1.5, 2.5, f(N, M), f(N, 9), f(9, M)],
         lambda *a: {6: a[4] * (a[7] @ a[8])}),
    poly("2MM/2mm", "mm2_kernel2", ROWS, (8, 8), [N, M, 9, 7, 1.5, 2.5, f(N, M), f(M, 7), f(N, 7)],
         lambda *a: {8: a[5] * a[8] + a[6] @ a[7]}),
    poly("3MM/3mm", "mm3_kernel1", ROWS, (8, 8), [N, M, 9, 7, 5, f(N, 9), f(9, M), f(N, M)], lambda *a: {7: a[5] @ a[6]}),
    poly("ADI/adi", "adi_kernel3", 1, 32, [N, f(N, N), p(N, N), f(N, N)], adi),
    poly("ATAX/atax", "atax_kernel2", 1, 32, [N, M, f(N, M), f(M), f(N)], lambda nx, ny, x, y, t: {3: t @ x}),
    poly("BICG/bicg", "bicg_kernel1", 1, 32, [N, M, f(N, M), f(N), f(M)], lambda nx, ny, x, r, s: {4: r @ x}),
    poly("COVAR/covariance", "covar_kernel", 1, 32, [M, N, f(M, M), f(N, M)], covariance),
    poly("COVAR/covariance", "reduce_kernel", ROWS, (8, 8), [M, N, f(M), f(N, M)],
         lambda m, n, mean, data: {3: data - mean}),
    poly("DOITGEN/doitgen", "doitgen_kernel1", (4, 16), (32, 8), [f(1, 128, 128), f(1, 128, 128), f(128, 128), 0],
         lambda s, x, c, r: {0: x @ c}),
    poly("FDTD-2D/fdtd2d", "fdtd_step2_kernel", ROWS, (8, 8), [N, M, f(N, M), f(N, M), f(N, M), 0],
         lambda nx, ny, ex, ey, hz, t: {2: np.where(np.arange(M) > 0, ex - 0.5 * (hz - np.roll(hz, 1, 1)), ex)}),
    poly("GESUMMV/gesummv", "gesummv_kernel", 1, 32, [N, 1.5, 2.5, f(N, N), f(N, N), f(N), f(N), f(N)],
         lambda n, alpha, beta, x, y, t, v, out: {5: t + x @ v, 7: alpha * (t + x @ v) + beta * (out + y @ v)}),
    poly("GRAMSCHM/gramschmidt", "gramschmidt_kernel3", 1, 32, [N, M, f(N, M), f(N, M), f(N, M), 3], orthogonal),
    poly("SYR2K/syr2k", "syr2k_kernel", (3, 3), (8, 8), [N, M, 1.5, 2.5, f(N, M), f(N, M), f(N, N)],
         lambda ni, nj, alpha, beta, x, y, c: {6: beta * c + alpha * (x @ y.T + y @ x.T)}),
    poly("SYRK/syrk", "syrk_kernel", (3, 3), (8, 8), [N, M, 1.5, 2.5, f(N, M), f(N, N)],
         lambda ni, nj, alpha, beta, x, c: {5: beta * c + alpha * (x @ x.T)}),
]  # fmt: skip


# HeCBench.


def bench(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    return Stranger("HeCBench", file, entry, *rest, **more)


def cosines(out: Any, x: Any, *_: Any) -> Results:
    at = np.arange(8)
    rows = np.cos((2 * at + 1) * at[:, None] * np.pi / 16) * np.where(at == 0, np.sqrt(1 / 8), 0.5)[:, None]
    parts = x.reshape(2, 8, 4, 8).transpose(0, 2, 1, 3)
    return {0: (rows @ parts @ rows.T).transpose(0, 2, 1, 3).reshape(16, 32)}


def from_cosines(out: Any, x: Any, *_: Any) -> Results:
    at = np.arange(8)
    rows = np.cos((2 * at + 1) * at[:, None] * np.pi / 16) * np.where(at == 0, np.sqrt(1 / 8), 0.5)[:, None]
    parts = x.reshape(2, 8, 4, 8).transpose(0, 2, 1, 3)
    return {0: (rows.T @ parts @ rows).transpose(0, 2, 1, 3).reshape(16, 32)}


def bilateral(x: Any, out: Any, w: int, rows: int, area: float, intensity: float, spatial: float) -> Results:
    y, across = np.mgrid[:rows, :w]
    total, weight = 0.0, 0.0
    for one in range(-2, 3):
        for two in range(-2, 3):
            k, m = np.abs(across + one), np.abs(y + two)
            k, m = np.where(k > w - 1, w - 1 - one, k), np.where(m > rows - 1, rows - 1 - two, m)
            other = x[m, k]
            near = ((k - across) ** 2 + (m - y) ** 2) / (2 * spatial)
            share = area * np.exp(-(x - other) * (x - other) / (2 * intensity) - near)
            total, weight = total + other * share, weight + share
    return {1: total / weight}


def neurons(n: int, items: int, dt: float, code: Any, v: Any, ref: Any, rc: float, tau: float, bias: Any, gain: Any,
            spikes: Any) -> Results:  # fmt: skip
    current = (bias + gain * code[:, None]).reshape(-1)
    change = np.float32(-np.expm1(np.float32(-dt / rc))) * (current - v)
    v = np.maximum(v + change, 0)
    ref = ref - dt
    v = v * np.maximum(np.minimum(ref * (-1 / dt) + 1, 1.0), 0.0)
    fires = v > 1.0
    return {4: np.where(fires, 0.0, v), 5: np.where(fires, tau + dt * (1 - (v - 1) / change), ref),
            10: np.where(fires, 1 / dt, 0.0)}  # fmt: skip


def walsh(out: Any, x: Any, stride: int) -> Results:
    rows = x.reshape(2, -1, 4, stride)
    a, c, d, e = (rows[:, :, n] for n in range(4))
    made = [a + d + c + e, a + d - c - e, a - d + c - e, a - d - c + e]
    return {0: np.stack(made, axis=2).reshape(2, -1)}


def blocks_scanned(out: Any, x: Any, size: int, sums: Any) -> Results:
    rows = x.reshape(-1, size)
    found = scanned(rows)
    return {0: (found - rows).reshape(-1), 3: found[:, -1]}


def segments(entry: str, size: int) -> Stranger:
    """Keys of three segments are sorted, and values with them."""
    kernel = f"{entry}<float, int, int>"
    starts = np.arange(3, dtype=np.int32) * size
    return bench("segsort-cuda/src/bb_comput_s.cuh", kernel, 1, 128,
                 [f(3 * size), i(99, 3 * size), f(3 * size), i(99, 3 * size), starts, starts + size - 1,
                  np.arange(3, dtype=np.int32), 3], None, instance=[kernel])  # fmt: skip


STREAM = [f(96, type=np.float64) for _ in range(3)]
HECBENCH = [
    bench("babelstream-cuda/main.cu", "add_kernel<double>", 3, 32, STREAM, lambda x, y, z: {2: x + y}),
    bench("babelstream-cuda/main.cu", "triad_kernel<double>", 3, 32, STREAM,
          lambda x, y, z: {0: y + 0.4 * z}),
    bench("bilateral-cuda/main.cu", "bilateralFilter<2>", (2, 2), (8, 8), [f(10, 11), f(10, 11), 11, 10, 0.75, 2.0, 4.0],
          bilateral, instance=["bilateralFilter<2>"]),
    bench("dct8x8-cuda/kernels.cu", "DCT8x8_kernel", (1, 1), (32, 2), [f(16, 32), f(16, 32), 32, 16, 32], cosines, mistake="threads of a warp exchange shared memory, and nothing orders them"),
    bench("dct8x8-cuda/kernels.cu", "IDCT8x8_kernel", (1, 1), (32, 2), [f(16, 32), f(16, 32), 32, 16, 32], from_cosines, mistake="threads of a warp exchange shared memory, and nothing orders them"),
    bench("eigenvalue-cuda/kernels.cu", "recalculateEigenIntervals", 1, 4,
          [f(8), np.array([-9, 0, 0, 9], np.float32), np.array([2, 2], np.uint32), f(4), f(3), 4, 0.001], None),
    bench("fwt-cuda/kernels.cu", "fwtBatch2Kernel", (2, 2), 16, [f(2, 128), f(2, 128), 8], walsh),
    bench("kmeans-cuda/cluster.cu", "feature_transpose", 2, 32, [f(7, 50), f(50, 7), 7, 50], lambda y, x, *_: {0: x.T}),
    bench("lif-cuda/main.cu", "lif", 1, 64, [60, 20, 0.001, p(3), p(60), p(60), 0.02, 0.002, f(20), p(20), f(60)], neurons),
    bench("scan-cuda/main.cu", "scan<float, 64>", 2, 32, [3, f(3, 64), f(3, 64)], lambda n, y, x: {1: scanned(x) - x},
          instance=["scan<float, 64>"]),
    bench("scan2-cuda/main.cu", "ScanLargeArrays", 2, 16, [f(64), f(64), 32, f(2)], blocks_scanned, shared=128),
    bench("scan2-cuda/main.cu", "blockAddition", 2, 32, [f(2), f(64)], lambda x, y: {1: y + np.repeat(x, 32)}),
    segments("gen_bk128_wp16_tc4_r33_r64_strd", 64),
    segments("gen_bk128_wp2_tc4_r5_r8_orig", 8),
    segments("gen_bk128_wp8_tc4_r17_r32_strd", 32),
    bench("shuffle-cuda/main.cu", "transpose_shfl", 3, 8, [f(24), f(24)],
          lambda y, x: {0: np.flip(x.reshape(3, 8), 1).reshape(-1)}),
    bench("softmax-cuda/main.cu", "softMax2", 1, 128, [4, 50, f(4, 50), f(4, 50)], lambda n, m, x, y: {3: softmax(x)}),
    bench("softmax-online-cuda/main.cu", "softmax_forward_online_kernel", 1, 128, [f(4, 50), f(4, 50), 4, 50],
          lambda y, x, *_: {0: softmax(x)}),
    bench("threadfence-cuda/main.cu", "sum", 3, 32, [f(90), 90, np.zeros(1, np.uint32), f(3)],
          lambda x, n, count, y: {3: np.concatenate([x.sum(keepdims=True), x.reshape(-1)[32:64].sum(keepdims=True), x[64:].sum(keepdims=True)])}),
    bench("zerocopy-cuda/main.cu", "vectorAddGPU", 2, 32, [f(50), f(50), f(50), 50], lambda x, y, z, n: {2: x + y}),
]  # fmt: skip


# Rodinia.


def rodinia(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    more["options"] = ("-I{root}/cuda-samples/Common",) if file.startswith("cfd") else ()
    return Stranger("rodinia", file, entry, *rest, **more)


def adjusted(delta: Any, hid: int, ly: Any, n: int, w: Any, old: Any) -> Results:
    change = np.float32(0.3) * delta * ly[:, None] + np.float32(0.3) * old
    chosen = np.broadcast_to((np.arange(17) > 0), (17, 17)) & (np.arange(17)[:, None] > 0)
    first = np.broadcast_to((np.arange(17) > 0), (17, 17)) & (np.arange(17)[:, None] == 0)
    change = np.where(first, np.float32(0.3) * delta + np.float32(0.3) * old, change)
    return {4: np.where(chosen | first, w + change, w), 5: np.where(chosen | first, change, old)}


def stepped(j: int, n: int, old: Any, new: Any, factors: Any, fluxes: Any) -> Results:
    return {3: old + fluxes * (factors / (3 + 1 - j))}


def state(variables: Any) -> tuple[Any, ...]:
    """Density, momentum, energy, the square of the speed, pressure, the speed of sound."""
    density, momentum, energy = variables[0], variables[1:4], variables[4]
    speed = (momentum * momentum).sum(0) / (density * density)
    gamma = 1.4  # of NumPy's function as the arrays are, f32 or f64
    pressure = (gamma - 1) * (energy - 0.5 * density * speed)
    return density, momentum, energy, speed, pressure, np.sqrt(gamma * pressure / density)


def step_factors(n: int, variables: Any, areas: Any, out: Any) -> Results:
    _, _, _, speed, _, sound = state(variables)
    return {3: 0.5 / (np.sqrt(areas) * (np.sqrt(speed) + sound))}


def fluxes(n: int, around: Any, normals: Any, variables: Any, fx: Any, fy: Any, fz: Any, fe: Any, out: Any) -> Results:
    density, momentum, energy, speed, _, sound = state(variables)
    total = [0.0] * 5
    for j in range(4):
        at = around[j]
        normal = normals[j::4]
        length = np.sqrt((normal * normal).sum(0))
        factor = -length * np.float32(0.2) * 0.5 * (np.sqrt(speed) + np.sqrt(speed[at]) + sound + sound[at])
        own = (density, *(momentum[n] for n in range(3)), energy)
        parts = [factor * (one - one[at]) for one in own]
        flux = (momentum, fx, fy, fz, fe)
        for number, one in enumerate(flux):
            parts[number] = parts[number] + (0.5 * normal * (one[:, at] + one)).sum(0)
        total = [x + y for x, y in zip(total, parts, strict=True)]
    return {8: np.stack(total)}


def flow(type: Any) -> list[Any]:
    around = np.stack([RANDOM.permutation(32) for _ in range(4)]).astype(np.int32)
    variables = np.concatenate([p(1, 32, type=type), f(3, 32, type=type), 9 + p(1, 32, type=type)])
    return [
        32,
        around,
        f(12, 32, type=type),
        variables.astype(type),
        *(f(3, 32, type=type) for _ in range(4)),
        f(5, 32, type=type),
    ]


def decomposed(m: Any, n: int, offset: int) -> Results:
    rest = m[16:, 16:] - m[16:, :16] @ m[:16, 16:]
    return {0: np.concatenate([m[:16], np.concatenate([m[16:, :16], rest], axis=1)])}


def weights(w: Any, n: int, partial: Any, cdf: Any, u: Any, seed: Any) -> Results:
    w = w / partial[0]
    number = np.int32(np.uint32(1103515245 * int(seed[0]) + 12345 & 0xFFFFFFFF).view(np.int32))
    first = abs(float(np.fmod(number, 2**31 - 1))) / (2**31 - 1) / n
    return {0: w, 3: scanned(w), 4: first + np.arange(n) / n}


FLOW = flow(np.float64)
RODINIA = [
    rodinia("backprop/backprop_cuda_kernel.cu", "bpnn_adjust_weights_cuda", (1, 1), (16, 16),
            [f(17), 16, f(17), 16, f(17, 17), f(17, 17)], adjusted),
    rodinia("cfd/euler3d.cu", "cuda_time_step", 1, 32, [1, 32, f(5, 32), f(5, 32), f(32), f(5, 32)], stepped),
    rodinia("cfd/pre_euler3d.cu", "cuda_compute_flux", 1, 32, flow(np.float32), fluxes),
    rodinia("cfd/pre_euler3d_double.cu", "cuda_compute_flux", 1, 32, FLOW, fluxes),
    rodinia("cfd/pre_euler3d_double.cu", "cuda_compute_step_factor", 1, 32, [32, FLOW[3], p(32, type=np.float64),
                                                                             f(32, type=np.float64)], step_factors),
    rodinia("lud/cuda/lud_kernel.cu", "lud_internal", (1, 1), (16, 16), [f(32, 32), 32, 0], decomposed),
    rodinia("particlefilter/ex_particle_CUDA_float_seq.cu", "normalize_weights_kernel", 1, 64,
            [p(50, type=np.float64), 50, p(1, type=np.float64), f(50, type=np.float64), f(50, type=np.float64), i(99, 50)],
            weights),
    rodinia("particlefilter/ex_particle_CUDA_float_seq.cu", "likelihood_kernel", 1, 32,
            [*(p(20, type=np.float64) for _ in range(5)), np.zeros(60, np.int32), i(3, 6), p(20, type=np.float64),
             i(255, 600).astype(np.uint8), *(p(20, type=np.float64) for _ in range(2)), 20, 3, 600, 1, 10, 2, i(99, 20),
             p(1, type=np.float64)], None),
    rodinia("srad/srad_v2/srad_kernel.cu", "srad_cuda_1", (2, 2), (16, 16), [*(p(32, 32) for _ in range(6)), 32, 32, 0.5],
            None, mistake="blocks at the border read rows before the first and after the last one, and do not use them"),
]  # fmt: skip


# cuda-samples.


def sample(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    more["options"] = ("-I../../../Common", "-DUINT_MAX=0xffffffffu")
    return Stranger("cuda-samples", f"Samples/{file}", entry, *rest, **more)


def box(x: Any, y: Any, w: int, rows: int, r: int) -> Results:
    at = np.clip(np.arange(w)[:, None] + np.arange(-r, r + 1), 0, w - 1)
    return {1: x[:, at].sum(-1) * np.float32(1 / (2 * r + 1))}


SAMPLES = [
    sample("0_Introduction/matrixMulDrv/matrixMul_kernel.cu", "matrixMul_bs8_64bit", (3, 2), (8, 8),
           [f(16, 24), f(16, 32), f(32, 24), 32, 24], lambda c, x, y, *_: {0: x @ y}),
    sample("2_Concepts_and_Techniques/boxFilter/boxFilter_kernel.cu", "d_boxfilter_x_global", 1, 8,
           [f(8, 20), f(8, 20), 20, 8, 3], box),
    sample("2_Concepts_and_Techniques/reduction/reduction_kernel.cu", "reduce1<float>", 2, 64, [f(100), f(2), 100],
           lambda x, y, n: {1: np.stack([x[:64].sum(), x[64:].sum()])}, shared=256),
    sample("2_Concepts_and_Techniques/segmentationTreeThrust/kernels.cuh", "makeNewEdges", 1, 32,
           [i(20, 15).astype(np.uint32), i(99, 40).astype(np.uint32), i(40, 20).astype(np.uint32), f(20),
            np.zeros(15, np.uint32), f(15), 15], lambda at, m, e, w, n, y, c: {5: w[at]}),
    sample("2_Concepts_and_Techniques/threadFenceReduction/threadFenceReduction_kernel.cuh", "reduceSinglePass<64, false>", 3,
           64, [f(300), f(3), 300], lambda x, y, n: {1: np.concatenate([x.sum(keepdims=True), y[1:]])}, shared=512,
           mistake="no fence orders the last block's reads after the `atomicInc` that says it is the last",
           instance=["reduceSinglePass<64, false>"]),
    sample("3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu", "MatrixMulNaiveLargeChunk<16>", (2, 2),
           (16, 16), [f(32, 32), f(32, 32), f(32, 32), 32, 32], lambda c, x, y, *_: {0: x @ y},
           mistake="B is read at the place of A; the sample's own B is one number everywhere"),
    sample("3_CUDA_Features/graphMemoryNodes/graphMemoryNodes.cu", "negateArray", 2, 32, [f(50), f(50), 50],
           lambda x, y, n: {1: -x}),
    sample("4_CUDA_Libraries/conjugateGradientCudaGraphs/conjugateGradientCudaGraphs.cu", "initVectors", 1, 32,
           [f(50), f(50), 50], lambda x, y, n: {0: np.ones(50), 1: np.zeros(50)}),
    sample("5_Domain_Specific/NV12toBGRandResize/utils.cu", "floatToChar", 1, 32,
           [100 * p(60), np.zeros(60, np.uint8), 4, 5, 1], None),
    sample("5_Domain_Specific/fluidsGL/fluidsGL_kernels.cu", "advectParticles_k", (1, 1), (8, 2),
           [(p(4, 8, 2) - 0.5), f(4, 8, 2), 8, 4, 0.1, 2, 64], None),
]  # fmt: skip

STRANGERS = [*LLM, *SGEMM, *LEETCUDA, *POLYBENCH, *HECBENCH, *RODINIA, *SAMPLES]

_TEXTURES = "it reads or writes textures or surfaces, which are not arrays"
_REFERENCES = "its file has texture references, which CUDA has no more"
LEFT_OUT = {
    "llm.c attention_forward.cu fp32_to_lowp_kernel": "it is compiled with cuDNN only",
    "LeetCUDA openai-triton/merge-attn-states/cuda_merge_attn_states.cu merge_attn_states_kernel": "NVRTC has no `std::isinf`",
    "HeCBench asta-cuda/main.cu PTTWAC_soa_asta": "blocks wait for others by atomic flags, in an order that has no formula",
    "HeCBench gmm-cuda/gaussian_kernel.cu estep2": "its arrays are in a structure of pointers",
    "HeCBench particles-cuda/particles_kernels.cu calcHashK": "its results are integers",
    "HeCBench quicksort-cuda/QuicksortKernels.cuh gqsort_kernel": "its arguments are records that its program makes",
    "HeCBench word2vec-cuda/cbow.cu device_cbow": "threads update words that others read, in any order",
    "rodinia hybridsort/bucketsort_kernel.cu bucketsort": _REFERENCES,
    "rodinia kmeans/kmeans_cuda_kernel.cu invert_mapping": _REFERENCES,
    "rodinia dwt2d/components.cu c_CopySrcToComponent": "its data are integers",
    "cuda-samples Samples/0_Introduction/simpleAWBarrier/simpleAWBarrier.cu normVecByDotProductAWBarrier": "it needs a cooperative launch",
    "cuda-samples Samples/2_Concepts_and_Techniques/eigenvalues/bisect_kernel_large.cuh bisectKernelLarge": "its arguments are lists of intervals that earlier kernels make",
    "cuda-samples Samples/5_Domain_Specific/Mandelbrot/Mandelbrot_cuda.cu MandelbrotDS1": "it has no array of floats",
    "cuda-samples Samples/5_Domain_Specific/SobolQRNG/sobol_gpu.cu sobolGPU_kernel": "its inputs are integers",
    "cuda-samples Samples/0_Introduction/simpleSurfaceWrite/simpleSurfaceWrite.cu surfaceWriteKernel": _TEXTURES,
    "cuda-samples Samples/0_Introduction/simpleTextureDrv/simpleTexture_kernel.cu transformKernel": _TEXTURES,
    "cuda-samples Samples/4_CUDA_Libraries/lineOfSight/lineOfSight.cu computeAngles_kernel": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/NV12toBGRandResize/bgr_resize.cu resizeBGRplanarBatchKernel": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/volumeFiltering/volumeFilter_kernel.cu d_filter_surface3d": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/volumeFiltering/volumeRender_kernel.cu d_preintegrate": _TEXTURES,
}
"""Kernels that were drawn, too, and why they are not compared."""
