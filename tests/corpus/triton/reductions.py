"""Reductions along rows: softmax, layer norm and its gradient, statistics, arg-max, scans, sort, histogram, atomics."""

# make: softmax sm_80 sm_90a sm_100a sm_120a
# make: softmax_wide sm_90a
# make: layer_norm sm_80 sm_90a sm_100a
# make: layer_norm_gradient sm_80 sm_90a
# make: statistics sm_80 sm_90a sm_100a
# make: scan sm_80 sm_90a sm_100a
# make: recurrence sm_80
# make: sort sm_80 sm_90a
# make: histogram sm_80 sm_90a
# make: atomics sm_80 sm_90a sm_100a
# make: cross_entropy sm_80 sm_100a
# make: transpose sm_80 sm_90a
# make: gather sm_80 sm_90a

import triton
import triton.language as tl


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + c, e / tl.sum(e, axis=0), mask=c < columns)


@triton.jit
def layer_norm(x, out, weight, bias, mean, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for c0 in range(0, columns, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + c, mask=c < columns, other=0.0).to(tl.float32)
    m = tl.sum(total, axis=0) / columns
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for c0 in range(0, columns, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + c, mask=c < columns, other=0.0).to(tl.float32)
        square += tl.where(c < columns, (v - m) * (v - m), 0.0)
    r = tl.rsqrt(tl.sum(square, axis=0) / columns + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for c0 in range(0, columns, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        inside = c < columns
        v = tl.load(x + row * columns + c, mask=inside).to(tl.float32)
        tl.store(
            out + row * columns + c,
            (v - m) * r * tl.load(weight + c, mask=inside) + tl.load(bias + c, mask=inside),
            mask=inside,
        )


@triton.jit
def layer_norm_gradient(
    dy, x, weight, mean, rstd, dx, dweight, lock, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < columns
    v = tl.load(x + row * columns + c, mask=inside, other=0).to(tl.float32)
    g = tl.load(dy + row * columns + c, mask=inside, other=0).to(tl.float32)
    w = tl.load(weight + c, mask=inside).to(tl.float32)
    r = tl.load(rstd + row)
    hat = tl.where(inside, (v - tl.load(mean + row)) * r, 0.0)
    wg = tl.where(inside, w * g, 0.0)
    a = tl.sum(hat * wg, axis=0) / columns
    b = tl.sum(wg, axis=0) / columns
    tl.store(dx + row * columns + c, (wg - hat * a - b) * r, mask=inside)
    mine = lock + row % GROUP
    while tl.atomic_cas(mine, 0, 1) == 1:
        pass
    partial = dweight + row % GROUP * columns + c
    tl.store(partial, tl.load(partial, mask=inside, other=0.0) + g * hat, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(mine, 0)


@triton.jit
def statistics(x, out, index, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)[:, None]
    c = tl.arange(0, N)[None, :]
    v = tl.load(x + tl.program_id(0) * M * N + r * N + c)
    rows = tl.arange(0, M)
    tl.store(out + rows, tl.max(v, axis=1) + tl.min(v, axis=1) + tl.sum(v, axis=1))
    tl.store(index + rows, tl.argmax(v, axis=1) + tl.argmin(v, axis=1) + tl.xor_sum(v.to(tl.int32), axis=1))


@triton.jit
def scan(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, axis=1) + tl.cumprod(v, axis=0, reverse=True))


@triton.jit
def combine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, combine)
    tl.store(out + i, h)


@triton.jit
def sort(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.sort(tl.load(x + at), descending=True)
    tl.store(out + at, tl.flip(v, 1))


@triton.jit
def histogram(x, out, N: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(v, BINS))


@triton.jit
def atomics(f, h, i, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(f + at % 7, 1.5, mask=inside, sem="relaxed", scope="gpu")
    tl.atomic_add(h + at, tl.full([BLOCK], 0.5, tl.float16), mask=inside, sem="release")
    old = tl.atomic_max(i + at, at, mask=inside, sem="acquire", scope="cta") + tl.atomic_min(
        i + at, at, mask=inside, scope="sys"
    )
    old += (
        tl.atomic_and(i + at, 15, mask=inside)
        + tl.atomic_or(i + at, 3, mask=inside)
        + tl.atomic_xor(i + at, 5, mask=inside)
    )
    tl.store(i + n + at, old + tl.atomic_cas(i + at, old, at) + tl.atomic_xchg(i + at, at, mask=inside), mask=inside)


@triton.jit
def cross_entropy(logits, labels, loss, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for c0 in tl.range(0, columns, BLOCK, num_stages=3):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(logits + row * columns + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(v, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(v - new), axis=0)
        largest = new
    target = tl.load(logits + row * columns + tl.load(labels + row)).to(tl.float32)
    tl.store(loss + row, tl.log(total) + largest - target)


@triton.jit
def transpose(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=(r < m)[:, None] & (c < n)[None, :])
    tl.store(out + c[:, None] * m + r[None, :], tl.trans(v), mask=(c < n)[:, None] & (r < m)[None, :])


@triton.jit
def gather(x, index, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), axis=1))


BUILDS = {
    "softmax": (softmax, {"x": "*fp32", "out": "*fp32", "stride": "i32:16", "columns": "i32", "BLOCK": 1024}, {}),
    "softmax_wide": (
        softmax,
        {"x": "*fp16", "out": "*fp16", "stride": "i32:16", "columns": "i32", "BLOCK": 16384},
        {"num_warps": 16},
    ),
    "layer_norm": (
        layer_norm,
        {
            "x": "*fp16",
            "out": "*fp16",
            "weight": "*fp16",
            "bias": "*fp16",
            "mean": "*fp32",
            "rstd": "*fp32",
            "columns": "i32:16",
            "eps": "fp32",
            "BLOCK": 1024,
        },
        {"num_warps": 8},
    ),
    "layer_norm_gradient": (
        layer_norm_gradient,
        {
            "dy": "*bf16",
            "x": "*bf16",
            "weight": "*bf16",
            "mean": "*fp32",
            "rstd": "*fp32",
            "dx": "*bf16",
            "dweight": "*fp32",
            "lock": "*i32",
            "columns": "i32:16",
            "GROUP": 64,
            "BLOCK": 1024,
        },
        {},
    ),
    "statistics": (statistics, {"x": "*fp32", "out": "*fp32", "index": "*i32", "M": 32, "N": 64}, {}),
    "scan": (scan, {"x": "*fp32", "out": "*fp32", "M": 16, "N": 128}, {}),
    "recurrence": (recurrence, {"a": "*fp32", "b": "*fp32", "out": "*fp32", "N": 512}, {}),
    "sort": (sort, {"x": "*i32", "out": "*i32", "M": 4, "N": 64}, {}),
    "histogram": (histogram, {"x": "*i32", "out": "*i32", "N": 1024, "BINS": 128}, {}),
    "atomics": (atomics, {"f": "*fp32", "h": "*fp16", "i": "*i32", "n": "i32", "BLOCK": 256}, {}),
    "cross_entropy": (
        cross_entropy,
        {"logits": "*bf16", "labels": "*i64", "loss": "*fp32", "columns": "i32:16", "BLOCK": 2048},
        {"num_warps": 8},
    ),
    "transpose": (transpose, {"x": "*fp32", "out": "*fp32", "m": "i32:16", "n": "i32:16", "M": 64, "N": 32}, {}),
    "gather": (gather, {"x": "*fp32", "index": "*i32", "out": "*fp32", "M": 32, "N": 64}, {}),
}
