# ruff: noqa: E501
"""Kernels of HeCBench."""

from typing import Any

import numpy as np

from tests.equal.projects.stranger import Results, Stranger, f, i, p, scanned, softmax


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
