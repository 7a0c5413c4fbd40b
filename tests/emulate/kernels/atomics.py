"""Cases of `cuda/atomics.cu` and `cuda/blocks.cu`: what threads of all blocks do to the same memory."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, from_bf16, same, whole, words

BUILDS = "sm_80 sm_90 sm_80.O0"


@case("atomics", BUILDS)
def atomic_integers(rng):
    x = whole(rng, -500, 500, 300)
    cells = np.array([7, 7, 400, -400, -1, 5, -1, 0, 0, 0, 0, 1], np.int32)
    u = x.view(np.uint32)
    reduced = [7 + x.sum(), 7 - x.sum(), x.min(), x.max(), u.min().view(np.int32), u.max().view(np.int32)]
    bits = [np.bitwise_and.reduce(x | 0xFF0), np.bitwise_or.reduce(x & 0xFF00FF), np.bitwise_xor.reduce(x)]
    turned = [300 % 11, -300 % 11, 77 if 77 in x else 1]
    return Run([Launch("atomic_integers", 3, 128, [x, cells, 300])], [same(cells, [*reduced, *bits, *turned])])


@case("atomics", BUILDS)
def atomic_longs(rng):
    x = words(rng, 200, type=np.int64)
    most = np.iinfo(np.int64)
    cells = np.array([0, most.max, most.min, -1, 0, -1, 0, 0], np.int64)
    u = x.view(np.uint64)
    reduced = [x.sum(), x.min(), x.max(), u.min().view(np.int64), u.max().view(np.int64)]
    bits = [np.bitwise_and.reduce(x | 0xFFFFF), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    return Run([Launch("atomic_longs", 2, 128, [x, cells, 200])], [same(cells, [*reduced, *bits])])


@case("atomics", BUILDS)
def atomic_floats(rng):
    """Whole numbers small enough for halves and bf16, so that every order gives the same bits."""
    x = whole(rng, -2, 3, 300, type=np.float32)
    singles, doubles = np.zeros(3, np.float32), np.zeros(5)
    halves, bfloats = np.zeros((7, 2), np.float16), np.zeros((16, 2), np.uint16)

    def by(count):
        return [x[k::count].sum() for k in range(count)]

    def check_bfloats(printed):
        expected = np.stack([[len(x[k::16]) for k in range(16)], by16], 1)
        np.testing.assert_array_equal(from_bf16(bfloats), expected)

    by16 = by(16)
    checks = [same(singles, by(3)), same(doubles, by(5)), check_bfloats]
    checks.append(same(halves, np.stack([by(7), [len(x[k::7]) for k in range(7)]], 1)))
    return Run([Launch("atomic_floats", 3, 128, [x, singles, doubles, halves, bfloats, 300])], checks)


@case("atomics", BUILDS, synchronizes="block")
def atomics_in_shared(rng):
    x = whole(rng, 0, 1000, 333)
    out = np.zeros(6, np.int32)
    wide = int(x.sum()) * 1000003
    low = np.array(wide & 0xFFFFFFFF, np.uint32).view(np.int32)
    expected = [x.sum(), x.max(), 333 % 7, low, wide >> 32, (x & 15).sum()]
    return Run([Launch("atomics_in_shared", 1, 96, [x, out, 333])], [same(out, expected)])


@case("atomics", BUILDS)
def largest_by_swap(rng):
    x = floats(rng, 200)
    largest, shorts = np.full(1, -np.inf, np.float32), np.zeros(2, np.uint16)
    checks = [same(largest, x.max()), same(shorts, [300, 300])]
    return Run([Launch("largest_by_swap", 2, 128, [x, largest, shorts, 200])], checks)


@case("atomics", BUILDS, synchronizes="fence")
def under_lock(rng):
    counter = np.zeros(1, np.int32)
    return Run([Launch("under_lock", 3, 64, [counter, 10])], [same(counter, 3 * 2 * 10)])


@case("blocks", "sm_80", synchronizes="block fence")
def smooth_together(rng):
    now = floats(rng, 300)
    following, arrived = np.zeros_like(now), np.zeros(1, np.uint32)
    expected = now.astype(np.float64)
    for _ in range(4):
        expected = 0.25 * np.roll(expected, 1) + 0.5 * expected + 0.25 * np.roll(expected, -1)
    launch = Launch("smooth_together", 5, 64, [now, following, arrived, 300, 4])
    return Run([launch], [close(now, expected, 1e-5, 1e-6), same(arrived, 20)])


@case("blocks", "sm_80", synchronizes="block fence")
def broadcast_by_flag(rng):
    x = whole(rng, -99, 99, 150)
    squares, flag, out = np.zeros_like(x), np.zeros(1, np.int32), np.zeros((3, 150), np.int32)
    expected = np.stack([np.roll(x * x, -b) for b in range(3)])
    return Run([Launch("broadcast_by_flag", 4, 64, [x, squares, flag, out, 150])], [same(out, expected)])


@case("blocks", "sm_80", synchronizes="fence")
def pass_the_token(rng):
    x = whole(rng, -99, 99, 8)
    sums, turn = np.zeros_like(x), np.zeros(1, np.int32)
    return Run([Launch("pass_the_token", 8, 32, [x, sums, turn])], [same(sums, x.cumsum()), same(turn, 8)])


@case("blocks", "sm_80", synchronizes="block")
def work_queue(rng):
    lengths = whole(rng, 0, 200, 15)
    results, following = np.zeros_like(lengths), np.zeros(1, np.int32)
    expected = [(np.arange(length) ** 2 % 7).sum() for length in lengths]
    launch = Launch("work_queue", 4, 32, [lengths, results, following, 15])
    return Run([launch], [same(results, expected), same(following, 19)])
