"""Cases of `cuda/matmuls.cu`, `cuda/wmma.cu` and `cuda/mma.cu`: products on ordinary and on tensor cores."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, from_bf16, same, to_bf16, whole


@case("matmuls", "sm_80")
def matrix_vector(rng):
    a, x = whole(rng, -9, 9, 21, 100, type=np.float32), whole(rng, -9, 9, 100, type=np.float32)
    y = np.zeros(21, np.float32)
    return Run([Launch("matrix_vector", 6, (32, 4), [a, x, y, 21, 100])], [same(y, a @ x)])


@case("matmuls", "sm_80")
def naive_matmul(rng):
    a, b, c = floats(rng, 19, 33), floats(rng, 33, 27), np.zeros((19, 27), np.float32)
    return Run([Launch("naive_matmul", (2, 3), (16, 8), [a, b, c, 19, 27, 33])], [close(c, a @ b, 1e-5, 1e-4)])


@case("matmuls", "sm_80", synchronizes="block")
def tiled_matmul(rng):
    a, b, c = floats(rng, 35, 41), floats(rng, 41, 30), np.zeros((35, 30), np.float32)
    return Run([Launch("tiled_matmul", (2, 3), (16, 16), [a, b, c, 35, 30, 41])], [close(c, a @ b, 1e-5, 1e-4)])


@case("matmuls", "sm_80", synchronizes="block")
def register_matmul(rng):
    a, b, c = floats(rng, 64, 40), floats(rng, 40, 96), np.zeros((64, 96), np.float32)
    return Run([Launch("register_matmul", (3, 2), 64, [a, b, c, 96, 40])], [close(c, a @ b, 1e-5, 1e-4)])


@case("matmuls", "sm_80", synchronizes="block")
def double_matmul(rng):
    a, b, c = floats(rng, 24, 24, type=np.float64), floats(rng, 24, 24, type=np.float64), np.zeros((24, 24))
    return Run([Launch("double_matmul", (3, 3), (8, 8), [a, b, c, 24])], [close(c, a @ b, 1e-13, 1e-13)])


@case("wmma", "sm_80 sm_90")
def wmma_half(rng):
    a, b, c = floats(rng, 32, 64, type=np.float16), floats(rng, 64, 48, type=np.float16), np.zeros((32, 48), np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Run([Launch("wmma_half", (3, 2), 32, [a, b, c, 48, 64])], [close(c, expected, 1e-4, 1e-4)])


@case("wmma", "sm_80 sm_90", synchronizes="warp")
def wmma_half_sums(rng):
    """Whole numbers below 2048, which halves hold exactly."""
    a, b = whole(rng, -3, 4, 32, 48, type=np.float16), whole(rng, -3, 4, 8, 48, type=np.float16)
    c = whole(rng, -99, 99, 32, 8, type=np.float16)
    expected = a.astype(int) @ b.T.astype(int) + c.astype(int)
    return Run([Launch("wmma_half_sums", 1, 32, [a, b, c, 48])], [same(c, expected)])


@case("wmma", "sm_80 sm_90")
def wmma_bf16(rng):
    a, b, c = to_bf16(floats(rng, 16, 32)), to_bf16(floats(rng, 16, 32)), floats(rng, 16, 16)
    expected = from_bf16(a).astype(np.float64) @ from_bf16(b).T.astype(np.float64) + c
    return Run([Launch("wmma_bf16", 1, 32, [a, b, c, 32])], [close(c, expected, 1e-4, 1e-4)])


@case("wmma", "sm_80 sm_90")
def wmma_tf32(rng):
    a, b, c = floats(rng, 16, 24), floats(rng, 24, 16), np.zeros((16, 16), np.float32)
    expected = to_tf32(a).astype(np.float64) @ to_tf32(b).astype(np.float64)
    return Run([Launch("wmma_tf32", 1, 32, [a, b, c, 24])], [close(c, expected, 1e-4, 1e-4)])


def to_tf32(x):
    """The nearest numbers of ten fraction bits, ties away from zero."""
    return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@case("wmma", "sm_80 sm_90")
def wmma_bytes(rng):
    a, b = whole(rng, -128, 128, 16, 64, type=np.int8), whole(rng, -128, 128, 16, 64, type=np.int8)
    c = np.zeros((16, 16), np.int32)
    return Run([Launch("wmma_bytes", 1, 32, [a, b, c, 64])], [same(c, (a.astype(int) @ b.T.astype(int)).T)])


@case("wmma", "sm_80 sm_90")
def wmma_double(rng):
    a, b, c = floats(rng, 8, 20, type=np.float64), floats(rng, 20, 8, type=np.float64), np.zeros((8, 8))
    return Run([Launch("wmma_double", 1, 32, [a, b, c, 20])], [close(c, a @ b, 1e-13, 1e-13)])


@case("mma", "sm_80 sm_90", synchronizes="block copy")
def mma_pipelined(rng):
    a, b, c = floats(rng, 64, 80, type=np.float16), floats(rng, 80, 96, type=np.float16), np.zeros((64, 96), np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Run([Launch("mma_pipelined", (3, 2), 128, [a, b, c, 96, 80])], [close(c, expected, 1e-4, 1e-4)])


@case("mma", "sm_80 sm_90")
def mma_bytes(rng):
    a, b = whole(rng, -128, 128, 16, 96, type=np.int8), whole(rng, -128, 128, 8, 96, type=np.int8)
    c = np.zeros((16, 8), np.int32)
    return Run([Launch("mma_bytes", 1, 32, [a, b, c, 96])], [same(c, a.astype(int) @ b.T.astype(int))])


@case("mma", "sm_80 sm_90", synchronizes="warp")
def transpose_by_matrix_moves(rng):
    x = floats(rng, 8, 8, type=np.float16)
    out = np.zeros_like(x)
    return Run([Launch("transpose_by_matrix_moves", 1, 32, [x, out])], [same(out, x.T)])
