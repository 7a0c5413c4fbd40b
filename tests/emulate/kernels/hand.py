"""Cases of `hand/`: what compilers seldom write."""

import numpy as np

from tests.emulate.kernels.arithmetic import signed
from tests.emulate.kernels.case import Launch, Run, case, same, whole, words


@case("barriers", synchronizes="block")
def barrier_answers(rng):
    x, out = whole(rng, 0, 100, 64, type=np.uint32), np.zeros((64, 4), np.uint32)
    odd, answers = (x % 2).sum(), int((x > 90).all()) | int((x > 90).any()) << 1
    second = [*[0] * 32, *x[32:].reshape(16, 2)[:, ::-1].ravel()]
    expected = np.stack([np.full(64, odd), np.full(64, answers), second, np.arange(64)], 1)
    return Run([Launch("barrier_answers", 1, 64, [x, out])], [same(out, expected)])


@case("jump_table")
def jump_table(rng):
    which, x = whole(rng, 0, 4, 90, type=np.uint32), whole(rng, -999, 999, 90)
    out = np.zeros_like(x)
    launch = Launch("jump_table", 3, 32, [which, x, out, 90])
    return Run([launch], [same(out, np.choose(which, [-x, x * x, x >> 1, ~x]))])


@case("big_numbers")
def big_numbers(rng):
    a, b = words(rng, 40, 2, type=np.uint64), words(rng, 40, 2, type=np.uint64)
    a[0], b[1], a[2] = (1 << 64) - 1, (1 << 64) - 1, [0, 1]
    out = np.zeros((40, 3, 2), np.uint64)
    low = (1 << 64) - 1
    expected = []
    for (la, ha), (lb, hb) in zip(a.tolist(), b.tolist(), strict=True):
        x, y = ha << 64 | la, hb << 64 | lb
        expected.append([[value & low, value >> 64 & low] for value in (x + y, x - y, x * y)])
    return Run([Launch("big_numbers", 1, 40, [a, b, out])], [same(out, np.array(expected, np.uint64))])


@case("bit_fields")
def bit_fields(rng):
    a, b = words(rng, 64), words(rng, 64)
    a[:3] = [0, 0xFFFFFFFF, 0x80000000]
    out = np.zeros((64, 11), np.uint32)
    expected = [fields_of(t, x, y) for t, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))]
    return Run([Launch("bit_fields", 1, 64, [a, b, out])], [same(out, np.array(expected, np.uint32))])


def fields_of(t, a, b):
    """The eleven answers about two words in thread `t`."""
    start, length = b & 31, b >> 8 & 31
    field = a >> start & (1 << length) - 1
    top = a >> min(start + length - 1, 31) & 1 if length else 0
    # Bits of a signed field beyond the word's end repeat the sign.
    inside = min(length, 32 - start)
    extended = (a >> start & (1 << inside) - 1) - (top << inside) if length else 0
    mask = ((1 << length) - 1 << start) & 0xFFFFFFFF
    inserted = b & ~mask | a << start & mask
    magnitude = ~a & 0xFFFFFFFF if a >> 31 else a
    found = (a.bit_length() - 1) & 0xFFFFFFFF
    shift = 32 - magnitude.bit_length() if magnitude else 0xFFFFFFFF
    both = b << 32 | a
    chosen = [both >> 8 * (selector & 7) & 255 for selector in (4, 14, 7, 9)]
    signs = [255 * (byte >> 7) if selector & 8 else byte for byte, selector in zip(chosen, (4, 14, 7, 9), strict=True)]
    forward = [both >> 8 * ((t & 3) + k) & 255 for k in range(4)]
    return [
        field,
        extended & 0xFFFFFFFF,
        inserted,
        found,
        shift,
        a & b | a & t | b & t,
        int.from_bytes(signs, "little"),
        int.from_bytes(forward, "little"),
        both >> t % 32 & 0xFFFFFFFF,
        a << t & 0xFFFFFFFF if t < 32 else 0,
        signed(a) >> min(t, 31) & 0xFFFFFFFF,
    ]


@case("towers")
def towers(rng):
    logs, counts = np.zeros((12, 32), np.uint8), np.zeros(12, np.uint32)
    expected = np.zeros_like(logs)
    for thread in range(12):
        moves = hanoi(thread % 6, 0, 2)
        expected[thread, : len(moves)] = moves
    checks = [same(logs, expected), same(counts, [2 ** (thread % 6) - 1 for thread in range(12)])]
    return Run([Launch("towers", 1, 12, [logs, counts, 32])], checks)


def hanoi(discs, start, end):
    """The moves, one byte each."""
    if discs == 0:
        return []
    third = 3 - start - end
    return [*hanoi(discs - 1, start, third), start * 16 + end, *hanoi(discs - 1, third, end)]


@case("ring", synchronizes="block mbarrier")
def ring(rng):
    x = whole(rng, -999, 999, 9, 32)
    out = np.zeros_like(x)
    expected = (3 * x + np.arange(9)[:, None])[:, ::-1]
    return Run([Launch("ring", 1, 64, [x, out, 9])], [same(out, expected)])


@case("message", synchronizes="fence")
def message(rng):
    data, flag, out = np.zeros(48, np.uint32), np.zeros(1, np.uint32), np.zeros(48, np.uint32)
    t = np.arange(48)
    return Run([Launch("message", 3, 48, [data, flag, out])], [same(out, 2 * (t * t + 11)[::-1])])


@case("roundings")
def roundings(rng):
    x = (rng.standard_normal(64) * 50).astype(np.float32)
    y = (rng.standard_normal(64) * 50).astype(np.float32)
    x[:14] = [0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, 300, -1, np.inf, -np.inf, np.nan, 0.0, -0.0]
    y[:14] = [0.5, 2.5, 1.5, np.nan, 0, 0, 0, 300, -0.0, 7, np.inf, -1, -0.0, 0.0]
    out = np.zeros((64, 9), np.uint32)
    expected = np.zeros_like(out)
    with np.errstate(invalid="ignore"):
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e12, neginf=-1e12)
        for column, rounding in enumerate([np.rint, np.trunc, np.floor, np.ceil]):
            clipped = np.clip(rounding(wide), -(2**31), 2**31 - 1).astype(np.int64)
            expected[:, column] = clipped & 0xFFFFFFFF
        expected[:, 4] = np.clip(np.trunc(wide), 0, 255)
        number = ~np.isnan(x) & ~np.isnan(y)
        answers = [x < y, ~(x < y), ~(x <= y), number, np.isfinite(x)]
    expected[:, 5] = sum(answer.astype(np.uint32) << bit for bit, answer in enumerate(answers))
    # PTX ISA: a negative zero counts as not negative, a NaN selects the second.
    expected[:, 6] = np.where(x >= 0, 5, 7)
    expected[:, 7] = smaller(x, y).view(np.uint32)
    expected[:, 8] = x.view(np.uint32) & 0x80000000 | y.view(np.uint32) & 0x7FFFFFFF
    return Run([Launch("roundings", 1, 64, [x, y, out])], [same(out, expected)])


def smaller(x, y):
    """The smaller of two, the number of a number and a NaN, negative zero below zero."""
    ordered = np.where((x < y) | ((x == y) & np.signbit(x)), x, y)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, ordered))


@case("any_memory")
def any_memory(rng):
    x, out = whole(rng, 0, 99, 64, type=np.uint32), np.zeros((64, 2), np.uint32)
    t = np.arange(64)
    values = np.choose(t % 4, [x, 7 * t + 100, t + 500, 1000 + t % 4])
    spaces = np.choose(t % 4, [1, 2, 4, 0])
    return Run([Launch("any_memory", 1, 64, [x, out])], [same(out, np.stack([values, spaces], 1))])


@case("shrinking_votes")
def shrinking_votes(rng):
    x = whole(rng, 0, 12, 32, type=np.uint32)
    rounds, survivors = np.zeros_like(x), np.zeros_like(x)
    alive = [0] + [sum(1 << lane for lane in range(32) if x[lane] >= k) for k in range(1, 13)]
    return Run(
        [Launch("shrinking_votes", 1, 32, [x, rounds, survivors])],
        [same(rounds, x), same(survivors, np.array([alive[k] for k in x], np.uint32))],
    )


@case("packed")
def packed(rng):
    a, b = words(rng, 64), words(rng, 64)
    out = np.zeros((64, 8), np.uint32)
    a8, b8 = a.view(np.uint8).reshape(64, 4).astype(int), b.view(np.uint8).reshape(64, 4).astype(int)
    a16, b16 = a.view(np.int16).reshape(64, 2), b.view(np.int16).reshape(64, 2)
    dots4 = (a8.astype(np.int8).astype(int) * b8).sum(1) - 9
    dots2 = (a16.view(np.uint16).astype(int) * b8.astype(np.int8)[:, :2]).sum(1) + 1
    ha, hb = (a & 0x3FFF3FFF).view(np.float16).reshape(64, 2), (b & 0x3FFFBFFF).view(np.float16).reshape(64, 2)
    da, db = ha.astype(np.float64), hb.astype(np.float64)
    fused = np.clip((da * db + da).astype(np.float16), 0, 1) + np.float16(0)
    expected = [
        np.minimum(a8 + b8, 255).astype(np.uint8).view(np.uint32)[:, 0],
        np.abs(a8 - b8).sum(1) + 5,
        np.minimum(a16, b16).view(np.uint32)[:, 0],
        dots4 & 0xFFFFFFFF,
        dots2 & 0xFFFFFFFF,
        (da + db).astype(np.float16).view(np.uint32)[:, 0],
        fused.view(np.uint32)[:, 0],
        np.maximum(ha, hb).view(np.uint32)[:, 0],
    ]
    return Run([Launch("packed", 1, 64, [a, b, out])], [same(out, np.stack(expected, 1))])


@case("stack_room")
def stack_room(rng):
    out = np.zeros(40, np.uint32)
    expected = []
    for t in range(40):
        room = range(t + 1, 0, -1) if t % 2 else [k * k for k in range(t + 1)]
        sum = 0
        for value in room:
            sum = (sum * 31 + value) & 0xFFFFFFFF
        expected.append(sum)
    return Run([Launch("stack_room", 1, 40, [out])], [same(out, np.array(expected, np.uint32))])


@case("chosen_one")
def chosen_one(rng):
    x, out = whole(rng, 0, 999, 1, type=np.uint32), np.zeros(32, np.uint32)
    return Run([Launch("chosen_one", 1, 32, [x, out])], [same(out, x[0] + np.arange(32))])
