"""Cases of `cuda/integers.cu`: wide products, division, powers, bits, bytes, hashes."""

import itertools
import math

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, same, whole, words

BUILDS = "sm_80 sm_80.O0"
LOW = (1 << 64) - 1


def signed(value, bits=32):
    """The low bits of an integer, as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(a, b):
    """Division that rounds towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@case("integers", BUILDS)
def multiply_wide(rng):
    a, b = words(rng, 50, type=np.uint64), words(rng, 50, type=np.uint64)
    out = np.zeros((50, 3), np.uint64)
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        product = x * y + (y << 64 | x)
        expected.append([product & LOW, product >> 64 & LOW, x * y >> 64])
    return Run([Launch("multiply_wide", 1, 64, [a, b, out, 50])], [same(out, expected)])


@case("integers", BUILDS)
def divide(rng):
    a, b = words(rng, 60, type=np.int64), words(rng, 60, type=np.int64) >> whole(rng, 0, 60, 60, type=np.int64)
    b[b == 0] = 3
    out = np.zeros((60, 4), np.int64)
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        small, divisor = signed(x), signed(y | 1)
        rest = (x & 0xFFFFFFFF) % ((y | 1) & 0xFFFFFFFF)
        expected.append([quotient(x, y), x - y * quotient(x, y), quotient(small, divisor), rest])
    return Run([Launch("divide", 2, 32, [a, b, out, 60])], [same(out, expected)])


@case("integers", BUILDS)
def power_modulo(rng):
    bases, modulus = words(rng, 20, type=np.uint64), 18446744073709551557
    exponent = int(rng.integers(1 << 16))
    out = np.zeros(20, np.uint64)
    expected = np.array([pow(base, exponent, modulus) for base in bases.tolist()], np.uint64)
    return Run([Launch("power_modulo", 1, 32, [bases, exponent, modulus, out, 20])], [same(out, expected)])


@case("integers", BUILDS)
def greatest_common_divisors(rng):
    factor = whole(rng, 1, 500, 80, type=np.uint32)
    a, b = whole(rng, 0, 9999, 80, type=np.uint32) * factor, whole(rng, 1, 9999, 80, type=np.uint32) * factor
    out = np.zeros_like(a)
    launch = Launch("greatest_common_divisors", 3, 32, [a, b, out, 80])
    return Run([launch], [same(out, [math.gcd(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])])


@case("integers", BUILDS)
def count_bits(rng):
    w, long = words(rng, 70), words(rng, 70, type=np.uint64)
    w[0], long[0], w[1], long[1] = 0, 0, 1, 1 << 63
    out = np.zeros((70, 10), np.int32)
    expected = [bits_of(i, x, y) for i, (x, y) in enumerate(zip(w.tolist(), long.tolist(), strict=True))]
    return Run([Launch("count_bits", 3, 32, [w, long, out, 70])], [same(out, expected)])


def bits_of(i, w, long):
    """The ten answers about one word and one long word."""
    low, high = long & 0xFFFFFFFF, long >> 32
    both = low << 32 | w
    picked = [both >> 8 * selector & 255 for selector in (5, 1, 7, 3)]
    answers = [w.bit_count(), 32 - w.bit_length(), (w & -w).bit_length(), int(f"{w:032b}"[::-1], 2)]
    answers += [long.bit_count(), 64 - long.bit_length(), (long & -long).bit_length()]
    answers += [int.from_bytes(picked, "little"), both << i % 32 >> 32, (w & low) ^ (high | ~w)]
    return [signed(answer) for answer in answers]


@case("integers", BUILDS)
def byte_dots(rng):
    a, b = words(rng, 60, type=np.int32), words(rng, 60, type=np.int32)
    out = np.zeros((60, 3), np.int32)
    x, y = a.view(np.int8).reshape(60, 4), b.view(np.int8).reshape(60, 4)
    dots = (x.astype(int) * y).sum(1) + 17
    sums = (x + y).view(np.int32)[:, 0]
    apart = np.abs(a.view(np.uint32).astype(np.int64) - b.view(np.uint32)) + 3
    mixed = np.maximum(x, y).view(np.int32)[:, 0] ^ apart.astype(np.uint32).view(np.int32)
    return Run([Launch("byte_dots", 2, 32, [a, b, out, 60])], [same(out, np.stack([dots, sums, mixed], 1))])


@case("integers", BUILDS)
def hash_lines(rng):
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 30, 25))]).astype(np.int32)
    lines, out = words(rng, int(starts[-1]), type=np.uint8), np.zeros(25, np.uint64)
    expected = []
    for start, end in itertools.pairwise(starts):
        hash = 14695981039346656037
        for byte in lines[start:end].tolist():
            hash = (hash ^ byte) * 1099511628211 & LOW
        expected.append(hash)
    return Run([Launch("hash_lines", 1, 32, [lines, starts, out, 25])], [same(out, np.array(expected, np.uint64))])


@case("integers", BUILDS)
def collatz(rng):
    longest = np.zeros(1, np.uint32)
    expected = 0
    for start in range(1, 301):
        x, steps = start, 0
        while x != 1:
            x, steps = (3 * x + 1 if x % 2 else x // 2), steps + 1
        expected = max(expected, steps << 16 | start)
    return Run([Launch("collatz", 5, 64, [longest, 300])], [same(longest, expected)])
