"""Cases of `cuda/numeric.cu`: FFT, gravity, random points, Mandelbrot's set, roots and elementary functions."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, same

BUILDS = "sm_80 sm_80.use_fast_math"


@case("numeric", BUILDS, synchronizes="block")
def fft(rng):
    x = floats(rng, 256, 2)
    out = np.zeros_like(x)
    expected = np.fft.fft(x[:, 0] + 1j * x[:, 1])
    expected = np.stack([expected.real, expected.imag], 1)
    return Run([Launch("fft", 1, 128, [x, out, 8], shared=256 * 8)], [close(out, expected, 1e-4, 1e-4)])


@case("numeric", BUILDS, synchronizes="block")
def bodies(rng):
    positions = floats(rng, 100, 4)
    forces = np.zeros((100, 3), np.float32)
    p = positions.astype(np.float64)
    apart = p[None, :, :3] - p[:, None, :3]
    distance = np.sqrt((apart**2).sum(2) + 0.01)
    expected = (p[None, :, 3, None] * apart / distance[:, :, None] ** 3).sum(1)
    return Run([Launch("bodies", 2, 64, [positions, forces, 100, 0.01])], [close(forces, expected, 1e-3, 1e-2)])


@case("numeric", BUILDS)
def points_in_circle(rng):
    seed = int(rng.integers(1 << 60))
    inside = np.zeros(1, np.uint32)
    state = np.arange(192, dtype=np.uint64) + np.uint64(seed)
    hits = 0
    for _ in range(20):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        x = state >> np.uint64(33)
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        y = state >> np.uint64(33)
        hits += np.count_nonzero(x * x + y * y < np.uint64(1 << 62))
    return Run([Launch("points_in_circle", 3, 64, [seed, 20, inside])], [same(inside, hits)])


@case("numeric", BUILDS)
def mandelbrot(rng):
    height, width, limit, one = 18, 30, 60, 1 << 20
    steps = np.zeros((height, width), np.uint16)
    cx = np.broadcast_to(np.arange(width) * 3 * one // width - 2 * one, (height, width))
    cy = np.broadcast_to((np.arange(height) * 2 * one // height - one)[:, None], (height, width))
    x, y, expected = np.zeros_like(cx), np.zeros_like(cy), np.zeros_like(cx)
    for _ in range(limit):
        going = x * x + y * y < 4 * one * one
        expected = expected + going
        x, y = np.where(going, (x * x - y * y >> 20) + cx, x), np.where(going, (2 * x * y >> 20) + cy, y)
    return Run([Launch("mandelbrot", (4, 3), (8, 8), [steps, height, width, limit])], [same(steps, expected)])


@case("numeric", BUILDS)
def cube_roots(rng):
    a = rng.random(100) * 1000
    out = np.zeros_like(a)
    return Run([Launch("cube_roots", 2, 64, [a, out, 100])], [close(out, np.cbrt(a), 1e-13)])


@case("numeric", "sm_80")
def elementary(rng):
    return elementary_within(rng, 1e-5)


@case("numeric", "sm_80.use_fast_math")
def elementary_fast(rng):
    return elementary_within(rng, 1e-3)


def elementary_within(rng, bound):
    """The same formula for the careful and for the fast functions."""
    x = floats(rng, 150)
    out = np.zeros_like(x)
    v = x.astype(np.float64)
    expected = np.exp(-v * v) * np.cos(3 * v) + np.log1p(v * v) - np.tanh(v) + (np.abs(v) + 0.5) ** 1.7
    expected += v / (1 + np.sqrt(np.abs(v)))
    return Run([Launch("elementary", 3, 64, [x, out, 150])], [close(out, expected, bound, bound)])
