"""Cases of `cuda/warps.cu`: what the threads of a warp do together."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, floats, same, same_set, whole

BUILDS = "sm_80 sm_90"


def mask_of(lanes):
    """The lanes where this holds, as bits."""
    return sum(1 << int(lane) for lane in np.nonzero(lanes)[0])


@case("warps", BUILDS)
def votes(rng):
    x = whole(rng, 0, 100, 3, 32)
    x[1] = 95
    out = np.zeros((3, 32, 2), np.uint32)
    expected = np.zeros_like(out)
    for block, row in enumerate(x):
        odd = np.nonzero(row % 2)[0]
        expected[block, :, 0] = mask_of(row % 2)
        expected[block, :, 1] = int((row > 0).all()) | int((row > 90).any()) << 1
        expected[block, odd[0], 1] |= 4
    return Run([Launch("votes", 3, 32, [x, out])], [same(out, expected)])


@case("warps", BUILDS)
def matches(rng):
    x = whole(rng, -3, 3, 2, 32)
    x[1] = -7
    same_lanes, alike = np.zeros((2, 32), np.uint32), np.zeros((2, 32), np.int32)
    expected = [[mask_of(row == v) for v in row] for row in x]
    all_alike = [[int((row == row[0]).all())] * 32 for row in x]
    return Run([Launch("matches", 2, 32, [x, same_lanes, alike])], [same(same_lanes, expected), same(alike, all_alike)])


@case("warps", BUILDS)
def reduced(rng):
    x = whole(rng, -1000, 1000, 32)
    out = np.zeros((2, 16, 6), np.int32)
    expected = np.zeros_like(out)
    for half, row in enumerate(x.reshape(2, 16)):
        bits = [np.bitwise_and.reduce(row), np.bitwise_or.reduce(row), np.bitwise_xor.reduce(row)]
        expected[half] = [row.sum(), row.min(), row.max(), *bits]
    return Run([Launch("reduced", 1, 32, [x, out])], [same(out, expected)])


@case("warps", BUILDS)
def shuffles(rng):
    x = floats(rng, 32, type=np.float64)
    out = np.zeros((32, 4))
    lane = np.arange(32)
    base, k = lane // 8 * 8, lane % 8
    places = [base + lane * 3 % 8, np.where(k >= 3, lane - 3, lane), np.where(k < 6, lane + 2, lane), base + (k ^ 5)]
    return Run([Launch("shuffles", 1, 32, [x, out])], [same(out, np.stack([x[at] for at in places], 1))])


@case("warps", BUILDS)
def tiles(rng):
    x = whole(rng, 0, 100, 120)
    out = np.zeros_like(x)
    tile = np.pad(x, (0, 8)).reshape(16, 8)
    expected = (tile.cumsum(1) - tile) * 1000 + tile.sum(1, keepdims=True) + (tile > 90).any(1, keepdims=True)
    expected += (np.arange(16) % 8 * 1000000)[:, None]
    return Run([Launch("tiles", 2, 64, [x, out, 120])], [same(out, expected.ravel()[:120])])


@case("warps", BUILDS)
def collect_odd(rng):
    x = whole(rng, 0, 1000, 250)
    out, count = np.zeros_like(x), np.zeros(1, np.int32)
    odd = x[x % 2 == 1]
    return Run([Launch("collect_odd", 3, 96, [x, out, count, 250])], [same_set(out, odd), same(count, len(odd))])


@case("warps", BUILDS, synchronizes="warp")
def separate_ways(rng):
    x = whole(rng, 0, 1000, 32)
    out = np.zeros_like(x)
    expected = np.where(np.arange(32) % 2, np.roll(x, -2) * 3, np.roll(x, 2) + 7)
    return Run([Launch("separate_ways", 1, 32, [x, out])], [same(out, expected)])
