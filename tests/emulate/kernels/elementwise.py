"""Cases of `cuda/elementwise.cu`: one element in, one element out; and transposes."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, from_bf16, same, to_bf16, whole, words

BUILDS = "sm_80 sm_90 sm_80.G sm_80.O0"


@case("elementwise", BUILDS)
def vector_add(rng):
    x, y = floats(rng, 1000), floats(rng, 1000)
    out = np.zeros_like(x)
    return Run([Launch("vector_add", 4, 256, [x, y, out, 1000])], [same(out, x + y)])


@case("elementwise", BUILDS)
def saxpy_strided(rng):
    x, y = floats(rng, 1001), floats(rng, 1001)
    return Run([Launch("saxpy_strided", 3, 96, [x, y, 2.5, 1001])], [close(y, 2.5 * x + y, 1e-6, 1e-6)])


@case("elementwise", BUILDS)
def saxpy_by_four(rng):
    x, y = floats(rng, 515), floats(rng, 515)
    return Run([Launch("saxpy_by_four", 2, 128, [x, y, -0.75, 515])], [close(y, -0.75 * x + y, 1e-6, 1e-6)])


@case("elementwise", BUILDS)
def blend_bytes(rng):
    a, b = words(rng, 333, type=np.uint8), words(rng, 333, type=np.uint8)
    out = np.zeros_like(a)
    expected = (a.astype(int) * 77 + b.astype(int) * 178 + 127) // 255
    return Run([Launch("blend_bytes", 6, 64, [a, b, out, 77, 333])], [same(out, expected)])


@case("elementwise", BUILDS)
def add_shorts_saturated(rng):
    a, b = words(rng, 200, type=np.int16), words(rng, 200, type=np.int16)
    out = np.zeros_like(a)
    expected = np.clip(a.astype(int) + b, -32768, 32767)
    return Run([Launch("add_shorts_saturated", 1, 256, [a, b, out, 200])], [same(out, expected)])


@case("elementwise", BUILDS)
def half2_axpy(rng):
    x, y = floats(rng, 300, type=np.float16), floats(rng, 300, type=np.float16)
    expected = (np.float64(np.float16(1.7)) * x.astype(np.float64) + y.astype(np.float64)).astype(np.float16)
    return Run([Launch("half2_axpy", 2, 96, [x, y, 1.7, 150])], [same(y, expected)])


@case("elementwise", BUILDS)
def bf16_average(rng):
    x, y = to_bf16(floats(rng, 250)), to_bf16(floats(rng, 250))
    out = np.zeros_like(x)
    expected = to_bf16((from_bf16(x) + from_bf16(y)) * np.float32(0.5))
    return Run([Launch("bf16_average", 1, 256, [x, y, out, 250])], [same(out, expected)])


@case("elementwise", BUILDS)
def half_to_integers(rng):
    x = (floats(rng, 128) * 100).astype(np.float16)
    rounded, floored = np.zeros(128, np.int32), np.zeros(128, np.int32)
    checks = [same(rounded, np.rint(x)), same(floored, np.floor(x))]
    return Run([Launch("half_to_integers", 2, 64, [x, rounded, floored, 128])], checks)


@case("transposes", "sm_80 sm_80.O0")
def naive_transpose(rng):
    x = floats(rng, 37, 53)
    out = np.zeros((53, 37), np.float32)
    return Run([Launch("naive_transpose", (4, 5), (16, 8), [x, out, 37, 53])], [same(out, x.T)])


@case("transposes", "sm_80 sm_80.O0", synchronizes="block")
def tiled_transpose(rng):
    x = floats(rng, 37, 53, type=np.float64)
    out = np.zeros((53, 37))
    return Run([Launch("tiled_transpose", (4, 3), (16, 16), [x, out, 37, 53])], [same(out, x.T)])


@case("transposes", "sm_80 sm_80.O0", synchronizes="block")
def padded_transpose(rng):
    x = whole(rng, 0, 65536, 70, 45, type=np.uint16)
    out = np.zeros((45, 70), np.uint16)
    return Run([Launch("padded_transpose", (2, 3), (32, 8), [x, out, 70, 45])], [same(out, x.T)])
