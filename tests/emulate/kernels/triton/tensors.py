"""Kernels in Triton: addition, softmax, layer norm, products on tensor cores, attention, sums, sorting, histograms."""

# make: triton_add sm_80
# make: triton_softmax sm_80
# make: triton_layer_norm sm_80
# make: triton_matmul sm_80
# make: triton_matmul_tf32 sm_80
# make: triton_attention sm_80
# make: triton_running_sum sm_80
# make: triton_column_maxima sm_80
# make: triton_sort sm_80
# make: triton_histogram sm_80
# make: triton_random sm_80
# make: triton_spin sm_80
# ruff: noqa: N803

import triton
import triton.language as tl


@triton.jit
def triton_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def triton_softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), at < columns)


@triton.jit
def triton_layer_norm(x, gain, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(gain + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, result.to(tl.float16), inside)


@triton.jit
def triton_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    sums = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        va = tl.load(a + rm[:, None] * K + (k + rk)[None, :], (rm[:, None] < M) & (k + rk[None, :] < K), other=0.0)
        vb = tl.load(b + (k + rk)[:, None] * N + rn[None, :], (k + rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        sums = tl.dot(va, vb, sums)
    tl.store(c + rm[:, None] * N + rn[None, :], sums, (rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def triton_attention(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rm = tl.program_id(0) * M + tl.arange(0, M)
    rn = tl.arange(0, N)
    rd = tl.arange(0, D)
    base = tl.program_id(1) * length * D
    vq = tl.load(q + base + rm[:, None] * D + rd[None, :])
    largest = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    sums = tl.zeros([M, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * M, N):
        at = start + rn
        vk = tl.load(k + base + at[None, :] * D + rd[:, None])
        scores = tl.where(rm[:, None] >= at[None, :], tl.dot(vq, vk) * scale, -1.0e6)
        new = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.math.exp2(scores - new[:, None])
        shrink = tl.math.exp2(largest - new)
        total = total * shrink + tl.sum(powers, 1)
        vv = tl.load(v + base + at[:, None] * D + rd[None, :])
        sums = tl.dot(powers.to(tl.float16), vv, sums * shrink[:, None])
        largest = new
    tl.store(out + base + rm[:, None] * D + rd[None, :], sums / total[:, None])


@triton.jit
def triton_running_sum(x, out, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    tl.store(out + at, tl.cumsum(tl.load(x + at, inside, other=0), 0), inside)


@triton.jit
def triton_column_maxima(x, values, places, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.program_id(0) * C + tl.arange(0, C)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    block = tl.load(x + r[:, None] * columns + c[None, :], inside, other=-float("inf"))
    most, at = tl.max(block, 0, return_indices=True)
    tl.store(values + c, most, c < columns)
    tl.store(places + c, at, c < columns)


@triton.jit
def triton_sort(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def triton_histogram(x, bins, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, at < n, other=BINS - 1), BINS)
    tl.atomic_add(bins + tl.arange(0, BINS), counts)


@triton.jit
def triton_random(out, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randint(seed, at))


@triton.jit
def triton_spin(lock, total, x, BLOCK: tl.constexpr):
    """One number a program is added under a lock that is not a part of the number."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sum = tl.sum(tl.load(x + at), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + sum)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


MATMUL = {"M": "i32", "N": "i32:16", "K": "i32:16", "BM": 32, "BN": 32, "BK": 32}

BUILDS = {
    "triton_add": (triton_add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": 256}, {}),
    "triton_softmax": (triton_softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": 256}, {}),
    "triton_layer_norm": (
        triton_layer_norm,
        {
            "x": "*fp16",
            "gain": "*fp32",
            "bias": "*fp32",
            "out": "*fp16",
            "columns": "i32",
            "epsilon": "fp32",
            "BLOCK": 512,
        },
        {"num_warps": 2},
    ),
    "triton_matmul": (triton_matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32"} | MATMUL, {"num_stages": 3}),
    "triton_matmul_tf32": (
        triton_matmul,
        {"a": "*fp32", "b": "*fp32", "c": "*fp32"} | MATMUL,
        {"num_stages": 2, "num_warps": 2},
    ),
    "triton_attention": (
        triton_attention,
        {
            "q": "*fp16",
            "k": "*fp16",
            "v": "*fp16",
            "out": "*fp32",
            "length": "i32:16",
            "scale": "fp32",
            "M": 32,
            "N": 32,
            "D": 32,
        },
        {"num_stages": 2, "num_warps": 2},
    ),
    "triton_running_sum": (triton_running_sum, {"x": "*i32", "out": "*i32", "columns": "i32", "BLOCK": 512}, {}),
    "triton_column_maxima": (
        triton_column_maxima,
        {"x": "*fp32", "values": "*fp32", "places": "*i32", "rows": "i32", "columns": "i32", "R": 32, "C": 16},
        {},
    ),
    "triton_sort": (triton_sort, {"x": "*i32", "out": "*i32", "BLOCK": 128}, {"num_warps": 2}),
    "triton_histogram": (
        triton_histogram,
        {"x": "*i32", "bins": "*i32", "n": "i32", "BLOCK": 512, "BINS": 32},
        {},
    ),
    "triton_random": (triton_random, {"out": "*i32", "seed": "i32", "BLOCK": 256}, {}),
    "triton_spin": (triton_spin, {"lock": "*i32", "total": "*i32", "x": "*i32", "BLOCK": 64}, {"num_warps": 1}),
}
