# ruff: noqa: E501, N803
"""Kernels of LeetCUDA, `kernels`."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.equal.projects.stranger import Results, Stranger, attention, attention_of_columns, b, f, h, i, normed


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
