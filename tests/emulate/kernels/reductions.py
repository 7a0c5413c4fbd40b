"""Cases of `cuda/reductions.cu` and `cuda/histograms.cu`: many values to few."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, same, whole, words

BUILDS = "sm_80 sm_90 sm_80.O0"


@case("reductions", BUILDS, synchronizes="block")
def tree_sum(rng):
    x = whole(rng, -1000, 1000, 900)
    sums = np.zeros(4, np.int32)
    expected = [part.sum() for part in np.split(x, [256, 512, 768])]
    return Run([Launch("tree_sum", 4, 256, [x, sums, 900])], [same(sums, expected)])


@case("reductions", BUILDS, synchronizes="block")
def shuffle_sum(rng):
    x = floats(rng, 1333)
    total = np.zeros(1, np.float32)
    return Run([Launch("shuffle_sum", 1, 192, [x, total, 1333])], [close(total, x.sum(dtype=float), 0, 1e-3)])


@case("reductions", BUILDS, synchronizes="block")
def two_stage_sum(rng):
    x = words(rng, 3000, type=np.int32)
    total = np.zeros(1, np.int64)
    return Run([Launch("two_stage_sum", 5, 128, [x, total, 3000])], [same(total, x.sum(dtype=np.int64))])


@case("reductions", BUILDS, synchronizes="block fence")
def last_block_sum(rng):
    x = whole(rng, -99, 99, 2000, type=np.float32)
    sums, total, again = np.zeros(6, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    launches = [Launch("last_block_sum", 6, 128, [x, sums, result, 2000]) for result in (total, again)]
    return Run(launches, [same(total, x.sum()), same(again, x.sum())])


@case("reductions", BUILDS)
def group_sum(rng):
    x = whole(rng, -5000, 5000, 700)
    total, largest = np.zeros(1, np.int32), np.zeros(1, np.int32)
    checks = [same(total, x.sum()), same(largest, x.max())]
    return Run([Launch("group_sum", 6, 128, [x, total, largest, 700])], checks)


@case("reductions", BUILDS, synchronizes="block")
def place_of_largest(rng):
    x = whole(rng, 0, 40, 777, type=np.float32)
    place = np.zeros(1, np.int32)
    return Run([Launch("place_of_largest", 1, 128, [x, place, 777])], [same(place, x.argmax())])


@case("reductions", BUILDS, synchronizes="block")
def double_dot(rng):
    x, y = floats(rng, 500, type=np.float64), floats(rng, 500, type=np.float64)
    out = np.zeros(1)
    return Run([Launch("double_dot", 1, 64, [x, y, out, 500], shared=64 * 8)], [close(out, x @ y, 1e-12, 1e-12)])


@case("histograms", "sm_80 sm_80.G")
def global_histogram(rng):
    data = words(rng, 2500, type=np.uint8)
    bins = np.zeros(256, np.uint32)
    return Run([Launch("global_histogram", 3, 128, [data, bins, 2500])], [same(bins, np.bincount(data, minlength=256))])


@case("histograms", "sm_80 sm_80.G", synchronizes="block")
def shared_histogram(rng):
    data = words(rng, 2500, type=np.uint8)
    bins = np.zeros(256, np.uint32)
    return Run([Launch("shared_histogram", 3, 96, [data, bins, 2500])], [same(bins, np.bincount(data, minlength=256))])


@case("histograms", "sm_80 sm_80.G", synchronizes="block")
def warp_histogram(rng):
    data = words(rng, 600)
    bins = np.zeros(64, np.uint32)
    expected = np.bincount(data.view(np.uint8) & 63, minlength=64)
    return Run([Launch("warp_histogram", 1, 128, [data, bins, 600], shared=4 * 64 * 4)], [same(bins, expected)])
