"""Kernels of public projects, each from its `.cu` file; `tests.corpus.cuda_files` runs them."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.corpus.cuda_sample import RANDOM, Array, Sample, floats, zeros

LLM = "dev/cuda"


def llm(file: str, entry: str, *rest: Any, **more: Any) -> Sample:
    return Sample(f"{LLM}/{file}.cu", entry, *rest, repository="llm.c", options=("-std=c++17",), **more)


def learn(file: str, entry: str, *rest: Any, **more: Any) -> Sample:
    return Sample(f"{file}.cu", entry, *rest, repository="learn-cuda", options=("-std=c++17",), **more)


def softmax(rows: Array) -> Array:
    shifted = np.exp(rows.astype(np.float64) - rows.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def layer_norm(*args: Any) -> Array:
    rows, weight, bias = (array.astype(np.float64) for array in args[3:6])
    centred = rows - rows.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def gelu(_: Array, x: Array, *rest: Any) -> Array:
    x = x.astype(np.float64)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def adamw(weights: Array, grads: Array, m: Array, v: Array, *rest: Any) -> Array:
    w, g, m, v = (array.astype(np.float64) for array in (weights, grads, m, v))
    rate, beta1, beta2, first, second, eps, decay = rest[1:]
    m, v = (beta1 * m + (1 - beta1) * g) / first, (beta2 * v + (1 - beta2) * g * g) / second
    updated: Array = w - rate * (m / (np.sqrt(v) + eps) + decay * w)
    return updated


def matmul(_: Array, x: Array, weight: Array, bias: Array, *rest: Any) -> Array:
    return x.astype(np.float64) @ weight.astype(np.float64).T + bias


def attended(q: Array, k: Array, v: Array, *rest: Any, causal: bool = False) -> Array:
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(q.shape[-2], dtype=bool) | (not causal), scores, -np.inf)) @ v


def blurred(image: Array, _: Array, width: int, height: int, size: int) -> Array:
    wide = np.pad(image[0].astype(np.float64), size // 2)
    return sum(wide[i : i + height, j : j + width] for i in range(size) for j in range(size)) / size**2


def bf16(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(ml_dtypes.bfloat16)


ROWS = (8, 512)
NORM = [zeros(*ROWS), zeros(8), zeros(8), floats(*ROWS), floats(512), floats(512), 8, 512]
HEADS = [RANDOM.standard_normal((2, 2, 64, 32)).astype(np.float32) for _ in range(3)]
PROJECTS = [
    *(llm("softmax_forward", name, 8, block, [zeros(*ROWS), floats(*ROWS), *ROWS], 0,
          lambda _, given, *rest: softmax(given), launch={"shared": shared}, known=known)
      for name, block, shared, known in (
          ("softmax_forward_kernel2", 128, 512, ""),
          ("softmax_forward_kernel4", 128, 16, "no barrier between the last read of the maximum and the first sum"),
          ("softmax_forward_kernel7", 128, 32, "reads past the row are of its last element, which another one stores"),
          ("softmax_forward_online_kernel8", 32, 0, ""))),
    *(llm("layernorm_forward", name, grid, block, NORM, 0, layer_norm, tolerance=1e-5)
      for name, grid, block in (("layernorm_forward_kernel3", 2, 128), ("layernorm_forward_kernel5", 8, 128))),
    llm("gelu_forward", "gelu_forward_kernel2", 2, 64, [bf16(1024), bf16(1024), 1024], 0, gelu, tolerance=4e-3,
        target="sm_90"),
    llm("adamw", "adamw_kernel2", 4, 128, [floats(500), floats(500), floats(500), floats(500), 500, 0.01, 0.9, 0.99,
                                           0.1, 0.01, 1e-8, 0.1], 0, adamw, tolerance=1e-5),
    llm("crossentropy_forward", "crossentropy_forward_kernel1", 1, 32,
        [zeros(4, 4), floats(4, 4, 50) + np.float32(0.1), RANDOM.integers(0, 50, (4, 4)).astype(np.int32), 4, 4, 50], 0,
        lambda _, given, wanted, *rest: -np.log(np.take_along_axis(given, wanted[..., None], -1)), tolerance=1e-5),
    llm("encoder_forward", "encoder_forward_kernel3", 2, 128,
        [bf16(2, 16, 64), RANDOM.integers(0, 50, (2, 16)).astype(np.int32), bf16(50, 64), bf16(16, 64), 2, 16, 64], 0,
        lambda _, tokens, table, places, *rest: table.astype(np.float64)[tokens] + places, tolerance=4e-3),
    llm("matmul_forward", "matmul_forward_kernel4", (1, 1), (16, 16),
        [zeros(128, 128), floats(128, 64), floats(128, 64), floats(128), 64, 128], 0, matmul),
    llm("attention_forward", "attention_forward_kernel2", (2, 2), 32,
        [*HEADS, 64, 32, 2, 2, 32, 32, 32**-0.5, zeros(2, 2, 64), np.full((2, 2, 64), -np.inf, np.float32),
         zeros(2, 2, 64, 32)], 12, partial(attended, causal=True), launch={"shared": 4 * 4 * 32 * 32}, tolerance=1e-4),
    *(Sample("sum.cu", f"{name}<1024, 4>", 1, 1024, [RANDOM.integers(0, 99, 16000).astype(np.int32),
                                                     np.zeros(1, np.int32), 4000], 1,
             lambda given, *rest: [given.sum()], repository="fast.cu", options=("-std=c++17",), known=known)
      for name, known in (("sumKernel3", ""), ("sumKernel4", "32 lanes execute `redux.sync` with the mask 0xff"))),
    Sample("src/runner.cu", "sgemmWarptiling", (2, 2), 128,
           [256, 256, 32, 1.0, floats(256, 32), floats(32, 256), 0.0, zeros(256, 256)], 7,
           lambda m, n, k, alpha, a, b, *rest: a.astype(np.float64) @ b.astype(np.float64), repository="SGEMM_CUDA",
           options=("-std=c++17",)),
    learn("03_sum/sum", "sum_v6_kernel", (2, 4), 128, [floats(4, 1000), zeros(4), 4, 1000, 512], 1,
          lambda given, *rest: given.astype(np.float64).sum(1), launch={"shared": 512}),
    learn("04_softmax/softmax", "softmax_online_kernel", 4, 128, [floats(4, 300), zeros(4, 300), 4, 300], 1,
          lambda given, *rest: softmax(given), launch={"shared": 1024}),
    learn("06_box_blur/box_blur", "box_blur_kernel_v1", (3, 2), (16, 16),
          [floats(1, 20, 40), zeros(1, 20, 40), 40, 20, 5], 1, blurred),
    learn("07_attention/attention_v1", "attention_v1_kernel", 1, 128,
          [bf16(1, 128, 128), bf16(1, 128, 128), bf16(1, 128, 128), bf16(1, 128, 128), 1, 128, 128], 3, attended,
          launch={"shared": 32768}, tolerance=1e-2),
]  # fmt: skip
