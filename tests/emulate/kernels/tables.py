"""Cases of `cuda/tables.cu`: hashing, bisection, search in text, graphs."""

import numpy as np

from tests.emulate.kernels.case import Check, Launch, Run, case, same, same_set, whole

BUILDS = "sm_80 sm_80.O0"


@case("tables", BUILDS)
def hash_table(rng):
    keys, wanted = whole(rng, 0, 120, 400, type=np.uint32), np.arange(150, dtype=np.uint32)
    slots, counts = np.full(257, 0xFFFFFFFF, np.uint32), np.zeros(257, np.uint32)
    out = np.zeros(150, np.uint32)
    launches = [
        Launch("hash_count", 4, 128, [keys, slots, counts, 257, 400]),
        Launch("hash_look_up", 3, 64, [wanted, slots, counts, out, 257, 150]),
    ]
    return Run(launches, [same(out, np.bincount(keys, minlength=150)), total(counts, 400)])


def total(array: np.ndarray, expected: int) -> Check:
    """The elements sum up to `expected`."""

    def check(printed: str) -> None:
        assert array.sum() == expected

    return check


@case("tables", BUILDS)
def bisect(rng):
    numbers = np.sort(whole(rng, -(1 << 40), 1 << 40, 333, type=np.int64))
    wanted = np.concatenate([numbers[::7], whole(rng, -(1 << 41), 1 << 41, 50, type=np.int64)])
    places = np.zeros(len(wanted), np.int32)
    launch = Launch("bisect", 2, 64, [numbers, 333, wanted, places, len(wanted)])
    return Run([launch], [same(places, np.searchsorted(numbers, wanted))])


@case("tables", BUILDS)
def find_pattern(rng):
    text = whole(rng, ord("a"), ord("c"), 500, type=np.uint8)
    expected = [i for i in range(497) if bytes(text[i : i + 4]) == b"abba"]
    places, count = np.full(500, -1, np.int32), np.zeros(1, np.int32)
    launch = Launch("find_pattern", 4, 128, [text, 500, places, count])
    return Run([launch], [same_set(places, expected), same(count, len(expected))])


@case("tables", BUILDS)
def components(rng):
    a, b = whole(rng, 0, 300, 220), whole(rng, 0, 300, 220)
    parents = np.arange(300, dtype=np.int32)
    expected = parents.copy()
    while True:
        before = expected.copy()
        np.minimum.at(expected, a, before[b])
        np.minimum.at(expected, b, before[a])
        if (expected == before).all():
            break
    launches = [Launch("unite", 2, 128, [a, b, parents, 220]), Launch("flatten", 3, 128, [parents, 300])]
    return Run(launches, [same(parents, expected)])


@case("tables", BUILDS, synchronizes="block")
def levels(rng):
    edges = rng.random((120, 120)) < 0.02
    edges |= edges.T
    rows, columns = np.nonzero(edges)
    starts = np.searchsorted(rows, np.arange(121)).astype(np.int32)
    level, frontiers = np.full(120, -1, np.int32), np.zeros(240, np.int32)
    expected, frontier, depth = np.full(120, -1), [5], 0
    while len(frontier):
        expected[frontier] = depth
        frontier = np.nonzero(edges[frontier].any(0) & (expected < 0))[0]
        depth += 1
    args = [starts, columns.astype(np.int32), level, frontiers, 5, 120]
    return Run([Launch("levels", 1, 64, args)], [same(level, expected)])
