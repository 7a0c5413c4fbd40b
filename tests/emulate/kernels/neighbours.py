"""Cases of `cuda/stencils.cu`: what an element becomes depends on those around it."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, same, whole, words


@case("stencils", "sm_80", synchronizes="block")
def stencil_1d(rng):
    x = whole(rng, -100, 100, 300)
    out = np.zeros_like(x)
    return Run([Launch("stencil_1d", 3, 128, [x, out, 300])], [same(out, np.convolve(x, np.ones(7, int), "same"))])


@case("stencils", "sm_80")
def heat_2d(rng):
    x = floats(rng, 21, 35)
    once, twice = np.zeros_like(x), np.zeros_like(x)

    def step(now):
        out = now.copy()
        around = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
        out[1:-1, 1:-1] += 0.2 * (around - 4 * now[1:-1, 1:-1])
        return out

    launches = [Launch("heat_2d", (3, 6), (16, 4), [a, b, 21, 35, 0.2]) for a, b in [(x, once), (once, twice)]]
    return Run(launches, [close(twice, step(step(x)), 0, 1e-5)])


@case("stencils", "sm_80", synchronizes="block")
def laplace_3d(rng):
    x = whole(rng, -50, 50, 7, 15, 21, type=np.float32)
    out = np.zeros_like(x)
    expected = np.zeros_like(x)
    inner = x[1:-1, 1:-1, 1:-1]
    expected[1:-1, 1:-1, 1:-1] = (
        x[:-2, 1:-1, 1:-1]
        + x[2:, 1:-1, 1:-1]
        + x[1:-1, :-2, 1:-1]
        + x[1:-1, 2:, 1:-1]
        + x[1:-1, 1:-1, :-2]
        + x[1:-1, 1:-1, 2:]
        - 6 * inner
    )
    return Run([Launch("laplace_3d", (3, 2), (8, 8), [x, out, 21, 15, 7])], [same(out, expected)])


@case("stencils", "sm_80")
def convolve_2d(rng):
    x = words(rng, 19, 26, type=np.uint8)
    out = np.zeros((19, 26), np.float32)
    line = np.array([1, 4, 6, 4, 1])
    padded = np.pad(x.astype(int), 2, "edge")
    expected = sum(line[j] * line[i] * padded[j : j + 19, i : i + 26] for j in range(5) for i in range(5))
    return Run([Launch("convolve_2d", (4, 3), (8, 8), [x, out, 19, 26])], [same(out, expected / 256)])


@case("stencils", "sm_80", synchronizes="block")
def game_of_life(rng):
    board = whole(rng, 0, 2, 18, 25, type=np.uint8)
    expected = board.astype(int)
    for _ in range(5):
        alive = sum(np.roll(expected, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
        expected = (alive == 3) | ((alive == 2) & (expected == 1))
        expected = expected.astype(int)
    launch = Launch("game_of_life", 1, 128, [board, 18, 25, 5], shared=2 * 18 * 25)
    return Run([launch], [same(board, expected)])
