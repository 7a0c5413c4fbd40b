"""Cases of `cuda/scans.cu`: prefix sums and compaction."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, same, same_set, whole

BUILDS = "sm_80 sm_80.O0"


@case("scans", BUILDS, synchronizes="block")
def hillis_steele(rng):
    x = whole(rng, -100, 100, 180)
    out = np.zeros_like(x)
    return Run([Launch("hillis_steele", 1, 192, [x, out, 180], shared=2 * 192 * 4)], [same(out, x.cumsum())])


@case("scans", BUILDS, synchronizes="block")
def blelloch(rng):
    x = whole(rng, -100, 100, 501)
    out = np.zeros_like(x)
    return Run([Launch("blelloch", 1, 256, [x, out, 501])], [same(out, x.cumsum() - x)])


@case("scans", BUILDS, synchronizes="block")
def shuffle_scan(rng):
    x = whole(rng, -100, 100, 600)
    out = np.zeros_like(x)
    return Run([Launch("shuffle_scan", 1, 608, [x, out, 600])], [same(out, x.cumsum())])


@case("scans", BUILDS, synchronizes="block")
def look_back_scan(rng):
    x = whole(rng, -100, 100, 800)
    out, states, tickets = np.zeros_like(x), np.zeros(7, np.uint64), np.zeros(1, np.uint32)
    launch = Launch("look_back_scan", 7, 128, [x, out, states, tickets, 800])
    return Run([launch], [same(out, x.cumsum()), same(tickets, 7)])


@case("scans", BUILDS)
def compact_by_ballot(rng):
    x = whole(rng, -50, 50, 500)
    out, count = np.zeros_like(x), np.zeros(1, np.int32)
    checks = [same_set(out, x[x > 0]), same(count, (x > 0).sum())]
    return Run([Launch("compact_by_ballot", 4, 128, [x, out, count, 500])], checks)
