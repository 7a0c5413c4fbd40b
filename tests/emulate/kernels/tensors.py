"""Cases of `triton/tensors.py`: kernels as Triton compiles them, with the two scratch pointers that it adds."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, same, shared_bytes, whole
from tests.emulate.kernels.rows import softmax_of


def launch(entry, grid, warps, args, build=""):
    """A launch with the shared memory that the file asks for."""
    return Launch(entry, grid, 32 * warps, [*args, 0, 0], shared=shared_bytes(f"{build or entry}.sm_80"))


@case("triton_add", "sm_80")
def triton_add(rng):
    x, y = floats(rng, 1000), floats(rng, 1000)
    out = np.zeros_like(x)
    return Run([launch("triton_add", 4, 4, [x, y, out, 1000])], [same(out, x + y)])


@case("triton_softmax", "sm_80", synchronizes="block")
def triton_softmax(rng):
    x = floats(rng, 3, 200) * 3
    out = np.zeros_like(x)
    return Run([launch("triton_softmax", 3, 4, [x, out, 200])], [close(out, softmax_of(x), 1e-4, 1e-6)])


@case("triton_layer_norm", "sm_80", synchronizes="block")
def triton_layer_norm(rng):
    x, gain, bias = (floats(rng, 3, 300) + 2).astype(np.float16), floats(rng, 300), floats(rng, 300)
    out = np.zeros_like(x)
    v = x.astype(np.float64)
    expected = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * gain + bias
    checks = [close(out, expected, 2e-3, 2e-3)]
    return Run([launch("triton_layer_norm", 3, 2, [x, gain, bias, out, 300, 1e-5])], checks)


@case("triton_matmul", "sm_80", synchronizes="block copy")
def triton_matmul(rng):
    a, b, c = floats(rng, 50, 80, type=np.float16), floats(rng, 80, 48, type=np.float16), np.zeros((50, 48), np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Run([launch("triton_matmul", (2, 2), 4, [a, b, c, 50, 48, 80])], [close(c, expected, 1e-4, 1e-4)])


@case("triton_matmul_tf32", "sm_80", synchronizes="block copy")
def triton_matmul_tf32(rng):
    """Numbers of seven bits, which tf32 holds exactly."""
    a, b = whole(rng, -64, 64, 33, 64, type=np.float32), whole(rng, -64, 64, 64, 32, type=np.float32)
    c = np.zeros((33, 32), np.float32)
    arguments = [a, b, c, 33, 32, 64]
    return Run([launch("triton_matmul", (2, 1), 2, arguments, "triton_matmul_tf32")], [same(c, a @ b)])


@case("triton_attention", "sm_80", synchronizes="block copy")
def triton_attention(rng):
    q, k, v = (floats(rng, 2, 64, 32, type=np.float16) for _ in range(3))
    out = np.zeros((2, 64, 32), np.float32)
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * (0.25 * np.log(2))
    scores = np.where(np.tri(64, dtype=bool), scores, -np.inf)
    expected = softmax_of(scores) @ v.astype(np.float64)
    return Run([launch("triton_attention", (2, 2), 2, [q, k, v, out, 64, 0.25])], [close(out, expected, 2e-3, 2e-3)])


@case("triton_running_sum", "sm_80", synchronizes="block")
def triton_running_sum(rng):
    x = whole(rng, -99, 99, 2, 500)
    out = np.zeros_like(x)
    return Run([launch("triton_running_sum", 2, 4, [x, out, 500])], [same(out, x.cumsum(1))])


@case("triton_column_maxima", "sm_80", synchronizes="block")
def triton_column_maxima(rng):
    x = floats(rng, 29, 40)
    values, places = np.zeros(40, np.float32), np.zeros(40, np.int32)
    checks = [same(values, x.max(0)), same(places, x.argmax(0))]
    return Run([launch("triton_column_maxima", 3, 4, [x, values, places, 29, 40])], checks)


@case("triton_sort", "sm_80", synchronizes="block")
def triton_sort(rng):
    x = whole(rng, -999, 999, 2, 128)
    out = np.zeros_like(x)
    return Run([launch("triton_sort", 2, 2, [x, out])], [same(out, np.sort(x))])


@case("triton_histogram", "sm_80", synchronizes="block")
def triton_histogram(rng):
    x, bins = whole(rng, 0, 31, 900), np.zeros(32, np.int32)
    expected = np.bincount(x, minlength=32)
    expected[31] += 1024 - 900
    return Run([launch("triton_histogram", 2, 4, [x, bins, 900])], [same(bins, expected)])


@case("triton_random", "sm_80")
def triton_random(rng):
    seed, out = int(rng.integers(1 << 31)), np.zeros(512, np.int32)
    return Run([launch("triton_random", 2, 4, [out, seed])], [same(out, philox(seed, 512).view(np.int32))])


def philox(seed, count):
    """The first words of Philox 4x32-10 for counters from zero."""
    low = np.uint64(0xFFFFFFFF)
    c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    keys = [np.uint64(seed), np.uint64(0)]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            second >> np.uint64(32) ^ c[1] ^ keys[0],
            second & low,
            first >> np.uint64(32) ^ c[3] ^ keys[1],
            first & low,
        ]
        keys = [keys[0] + np.uint64(0x9E3779B9) & low, keys[1] + np.uint64(0xBB67AE85) & low]
    return c[0].astype(np.uint32)


@case("triton_spin", "sm_80", synchronizes="fence")
def triton_spin(rng):
    lock, total, x = np.zeros(1, np.int32), np.zeros(1, np.int32), whole(rng, -99, 99, 320)
    return Run([launch("triton_spin", 5, 1, [lock, total, x])], [same(total, x.sum()), same(lock, 0)])
