"""Algorithms that schedules are tried on."""

# ruff: noqa: B007, F821 - the names of sizes and loops are those of the algorithms
# mypy: ignore-errors

from ptxlab.schedule import algorithm, bf16, e4m3, e5m2, f16, f32, nvfp4, s8, s32, u8


@algorithm
def matmul(a: f32["m", "k"], b: f32["k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[x, j] for x in range(k))


@algorithm
def matmul_by_columns(a: f32["m", "k"], b: f32["n", "k"], c: f32["m", "n"], alpha: f32, beta: f32):
    for i, j in grid(m, n):
        c[i, j] = alpha * sum(a[i, x] * b[j, x] for x in range(k)) + beta * c[i, j]


@algorithm
def matmul_of_halves(a: bf16["m", "k"], b: bf16["k", "n"], c: bf16["m", "n"], bias: f32["n"]):
    for i, j in grid(m, n):
        c[i, j] = max(sum(a[i, x] * b[x, j] for x in range(k)) + bias[j], 0.0)


@algorithm
def linear(a: f16["m", "k"], b: f16["n", "k"], c: f16["m", "n"], bias: f32["n"], y: f32["m", "n"]):
    for i, j in grid(m, n):
        t = sum(a[i, x] * b[j, x] for x in range(k))
        c[i, j] = t + bias[j]
        y[i, j] = tanh(t)


@algorithm
def linear_of_eights(a: e4m3["m", "k"], b: e5m2["n", "k"], c: bf16["m", "n"], scale: f32):
    for i, j in grid(m, n):
        c[i, j] = scale * sum(a[i, x] * b[j, x] for x in range(k))


@algorithm
def batched(a: f32["g", "m", "k"], b: f32["g", "k", "n"], c: f32["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = sum(a[h, i, x] * b[h, x, j] for x in range(k))


@algorithm
def gemv(a: f32["m", "n"], x: f32["n"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(a[i, j] * x[j] for j in range(n))


@algorithm
def gemv_transposed(a: f16["m", "n"], x: f16["m"], y: f32["n"]):
    for j in range(n):
        y[j] = sum(a[i, j] * x[i] for i in range(m))


@algorithm
def scale(x: f32["n"], y: f32["n"], alpha: f32):
    for i in range(n):
        y[i] = alpha * x[i] + y[i]


@algorithm
def gelu(x: f32["m", "n"], y: f32["m", "n"]):
    for i, j in grid(m, n):
        t = x[i, j]
        y[i, j] = 0.5 * t * (1.0 + tanh(0.7978845608 * (t + 0.044715 * t * t * t)))


@algorithm
def add_rows(x: f32["m", "n"], bias: f32["n"], y: f32["m", "n"], z: f32["m", "n"]):
    for i, j in grid(m, n):
        s = x[i, j] + bias[j]
        y[i, j] = s
        z[i, j] = s * s


@algorithm
def transpose(x: f32["m", "n"], y: f32["n", "m"]):
    for i, j in grid(m, n):
        y[j, i] = x[i, j]


@algorithm
def reverse(x: f32["m", "n"], y: f32["m", "n"]):
    for i, j in grid(m, n):
        y[i, j] = x[i, n - 1 - j]


@algorithm
def row_sum(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(x[i, j] for j in range(n))


@algorithm
def row_range(x: f32["m", "n"], low: f32["m"], high: f32["m"]):
    for i in range(m):
        low[i] = min(x[i, j] for j in range(n))
        high[i] = max(abs(x[i, j]) for j in range(n))


@algorithm
def column_mean(x: f32["m", "n"], y: f32["n"]):
    for j in range(n):
        y[j] = sum(x[i, j] for i in range(m)) / m


@algorithm
def softmax(x: f32["m", "n"], y: f32["m", "n"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        total = sum(exp(x[i, j] - top) for j in range(n))
        for j in range(n):
            y[i, j] = exp(x[i, j] - top) / total


@algorithm
def rms_norm(x: bf16["m", "n"], w: f32["n"], y: bf16["m", "n"]):
    for i in range(m):
        squares = sum(x[i, j] * x[i, j] for j in range(n))
        factor = rsqrt(squares / n + 1e-5)
        for j in range(n):
            y[i, j] = x[i, j] * factor * w[j]


@algorithm
def layer_norm(x: f32["m", "n"], y: f32["m", "n"]):
    for i in range(m):
        mean = sum(x[i, j] for j in range(n)) / n
        spread = sum((x[i, j] - mean) * (x[i, j] - mean) for j in range(n)) / n
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * rsqrt(spread + 1e-5)


@algorithm
def convolution(x: f32["h+2", "w+2"], f: f32[3, 3], y: f32["h", "w"]):
    for i, j in grid(h, w):
        y[i, j] = sum(x[i + p, j + q] * f[p, q] for p in range(3) for q in range(3))


@algorithm
def convolution_same(x: f32["h", "w"], f: f32[3, 3], y: f32["h", "w"]):
    for i, j in grid(h, w):
        y[i, j] = sum(
            (x[i + p - 1, j + q - 1] if 0 <= i + p - 1 < h and 0 <= j + q - 1 < w else 0.0) * f[p, q]
            for p in range(3)
            for q in range(3)
        )


@algorithm
def causal_sums(x: f32["n", "n"], y: f32["n"], z: f32["n", "n"]):
    for i in range(n):
        y[i] = sum(x[i, j] for j in range(n) if j <= i)
        for h in range(n):
            if h >= i:
                z[i, h] = x[i, h] * 2.0


@algorithm
def linear_of_fours(a: nvfp4["m", "k"], b: nvfp4["n", "k"], c: f16["m", "n"], bias: f32["n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k)) + bias[j]


@algorithm
def log_sum(x: f32["m", "n"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp((x[i, j] - top) * 0.5)
        y[i] = top + 2.0 * log(sum(p for j in range(n)))
        z[i] = sum(p * x[i, j] for j in range(n))


@algorithm
def weighted(s: f32["m", "n"], v: f32["n", "k"], o: f32["m", "k"]):
    for i in range(m):
        top = max(s[i, j] for j in range(n))
        for j in range(n):
            p = exp(s[i, j] - top)
        total = sum(p for j in range(n))
        for c in range(k):
            o[i, c] = sum(p * v[j, c] for j in range(n)) / total


@algorithm
def nearest(x: f32["m", "d"], y: f32["n", "d"], least: f32["m"], mean: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = sqrt(sum((x[i, p] - y[j, p]) ** 2 for p in range(d)))
        least[i] = min(t for j in range(n))
        mean[i] = sum(t for j in range(n)) / n


@algorithm
def centred(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = x[i, j] * 2.0
        mean = sum(t for j in range(n)) / n
        y[i] = sum(abs(t - mean) for j in range(n))


@algorithm
def gemv_of_bytes(w: s8["m", "n"], scale: f32["m"], x: f32["n"], y: f32["m"]):
    for i in range(m):
        y[i] = scale[i] * sum(w[i, j] * x[j] for j in range(n))


@algorithm
def product_of_bytes(a: bf16["m", "k"], w: u8["n", "k"], scale: f32["n"], zero: f32["n"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = scale[j] * sum(a[i, x] * (w[j, x] - zero[j]) for x in range(k))


@algorithm
def limited(x: f32["n"], low: f32["n"], high: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = max(min(x[i], high[i]), low[i], 0.0)


@algorithm
def depthwise(x: f32["b", "c", "h+2", "w+2"], k: f32["c", 3, 3], y: f32["b", "c", "h", "w"]):
    for n, d, i, j in grid(b, c, h, w):
        y[n, d, i, j] = sum(x[n, d, i + p, j + q] * k[d, p, q] for p in range(3) for q in range(3))


@algorithm
def adam(p: f32["n"], g: f32["n"], first: f32["n"], second: f32["n"], rate: f32):
    for i in range(n):
        a = 0.9 * first[i] + 0.1 * g[i]
        b = 0.99 * second[i] + 0.01 * g[i] ** 2
        first[i] = a
        second[i] = b
        p[i] = p[i] - rate * a / (sqrt(b) + 1.0)


@algorithm
def products(a: bf16["g", "m", "k"], b: bf16["g", "n", "k"], c: bf16["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = sum(a[h, i, x] * b[h, j, x] for x in range(k))


@algorithm
def gated(x: bf16["m", "k"], w: bf16["n", "k"], v: bf16["n", "k"], y: bf16["m", "n"]):
    for i, j in grid(m, n):
        s = sum(x[i, p] * w[j, p] for p in range(k))
        t = sum(x[i, q] * v[j, q] for q in range(k))
        y[i, j] = s / (1.0 + exp(-s)) * t


@algorithm
def largest(a: bf16["m", "k"], b: bf16["n", "k"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = sum(a[i, p] * b[j, p] for p in range(k))
        y[i] = max(t for j in range(n))
        z[i] = sum(t * t for j in range(n))


@algorithm
def attention(q: bf16["h", "m", 32], k: bf16["h", "n", 32], v: bf16["h", "n", 16], o: bf16["h", "m", 16], scale: f32):
    for g, i in grid(h, m):
        for j in range(n):
            s = sum(q[g, i, x] * k[g, j, x] for x in range(32))
        top = max(s for j in range(n))
        for j in range(n):
            p = exp((s - top) * scale)
        total = sum(p for j in range(n))
        for c in range(16):
            o[g, i, c] = sum(p * v[g, j, c] for j in range(n)) / total


@algorithm
def causal(q: bf16["m", 32], k: bf16["m", 32], v: bf16["m", 16], o: f32["m", 16]):
    for i in range(m):
        for j in range(m):
            s = sum(q[i, x] * k[j, x] for x in range(32))
        top = max(s for j in range(m) if i <= j)
        for j in range(m):
            p = exp((s - top) * 0.25)
        total = sum(p for j in range(m) if i <= j)
        for c in range(16):
            o[i, c] = sum(p * v[j, c] for j in range(m) if i <= j) / total


@algorithm
def embedding(ids: s32["m"], table: f16["v", "n"], y: f32["m", "n"]):
    for i in range(m):
        row = ids[i]
        for j in range(n):
            y[i, j] = table[row, j]


@algorithm
def bags(ids: s32["m", "k"], table: f32["v", "n"], weights: f32["m", "k"], y: f32["m", "n"]):
    for i, j in grid(m, n):
        y[i, j] = sum(weights[i, x] * table[ids[i, x], j] for x in range(k))


@algorithm
def ragged_sums(lengths: s32["m"], x: f32["m", "n"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        y[i] = sum(x[i, j] for j in range(n) if j < lengths[i])
        top = max(x[i, j] for j in range(n))
        z[i] = top if lengths[i] > 2 else lengths[i] * 2


@algorithm
def product_of_experts(expert: s32["m"], a: f32["m", "k"], b: f32["e", "k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[expert[i], x, j] for x in range(k))


@algorithm
def permuted(p: s32["n"], ids: s32["m"], x: f32["n"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        y[i] = x[ids[i] - 2] if ids[i] > 1 else ids[i] + 0.5
        if ids[i] != 3:
            z[i] = x[p[ids[i]]]


@algorithm
def experts(a: bf16["m", "k"], b: bf16["e", "n", "k"], which: s32["g"], c: bf16["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = sum(a[i, x] * b[which[h], j, x] for x in range(k))


@algorithm
def pointwise(a: bf16["m", "k"], b: bf16["g", "k", "n"], c: bf16["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = max(sum(a[i, x] * b[h, x, j] for x in range(k)), 0.0)


@algorithm
def upsample(x: f32["m", "n"], y: f32["2 * m", "3 * n"]):
    for i, j in grid(m, n):
        for p, q in grid(2, 3):
            y[2 * i + p, 3 * j + 2 - q] = x[i, j] * (p + 1)


ALGORITHMS = [
    matmul, matmul_by_columns, matmul_of_halves, linear, batched, gemv, gemv_transposed, scale, gelu, add_rows,
    transpose, reverse, row_sum, row_range, column_mean, softmax, rms_norm, layer_norm, convolution, convolution_same,
    causal_sums, linear_of_eights, nearest, gemv_of_bytes, product_of_bytes, limited, depthwise, adam,
    products, gated, largest, embedding, bags, ragged_sums, product_of_experts, permuted,
    experts, pointwise, upsample,
]  # fmt: skip
NEED_STEPS = [centred, linear_of_fours, log_sum, weighted, attention, causal]  # one thread alone does not compute these
