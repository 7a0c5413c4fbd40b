"""Every operator on every type: machine code computes what Python does."""

import ctypes
import itertools
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlab.native import (
    Pointer,
    bits_float,
    boolean,
    count_ones,
    f32,
    f64,
    float_bits,
    fma,
    leading_zeros,
    native,
    reverse_bits,
    s8,
    s16,
    s32,
    s64,
    sqrt,
    trailing_zeros,
    u8,
    u16,
    u32,
    u64,
    u128,
)
from ptxlab.native.engine import build, compiled

INTEGERS: list[Any] = [u8, u16, u32, u64, s8, s16, s32, s64]


def integer_functions(T: Any) -> list[Any]:  # noqa: N803
    @native
    def add(a: T, b: T) -> T:
        return T(a + b)

    @native
    def subtract(a: T, b: T) -> T:
        return T(a - b)

    @native
    def multiply(a: T, b: T) -> T:
        return T(a * b)

    @native
    def divide(a: T, b: T) -> T:
        return T(a // b) if b != 0 else T(a)

    @native
    def rest(a: T, b: T) -> T:
        return a % b if b != 0 else a

    @native
    def combine(a: T, b: T) -> T:
        return (a & b) ^ (a | b)

    @native
    def negate(a: T, b: T) -> T:
        return T(T(-a) + T(~b))

    @native
    def shift_left(a: T, b: T) -> T:
        return T(a << (u8(b) & 127))

    @native
    def shift_right(a: T, b: T) -> T:
        return a >> (u8(b) & 127)

    @native
    def shift_by_constants(a: T, b: T) -> T:
        return T(a << 3) ^ b >> 5 ^ a >> 200

    @native
    def compare(a: T, b: T) -> u32:
        return u32(a < b) | u32(a <= b) << 1 | u32(a == b) << 2 | u32(a != b) << 3 | u32(a > b) << 4 | u32(a >= b) << 5

    @native
    def extremes(a: T, b: T) -> T:
        return T(min(a, b) - max(a, 7)) ^ T(abs(a))

    return [
        add,
        subtract,
        multiply,
        divide,
        rest,
        combine,
        negate,
        shift_left,
        shift_right,
        shift_by_constants,
        compare,
        extremes,
    ]


def edges(type: Any) -> list[int]:
    patterns = {0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, 0x5A5A5A5A5A5A5A5A}
    patterns |= {(1 << type.bits) - n for n in (1, 2, 8)} | {(1 << type.bits - 1) + n for n in (-1, 0, 1)}
    return sorted({type(pattern) for pattern in patterns})


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_operators_on_integers(type: Any) -> None:
    functions = integer_functions(type)
    library = build(functions)
    for function in functions:
        machine = library.function(function)
        for a, b in itertools.product(edges(type), repeat=2):
            assert machine(a, b) == function(a, b), (function.__name__, a, b)


def test_conversions_between_all_integers() -> None:
    def conversion(source: Any, to: Any) -> Any:
        @native
        def convert(a: source) -> to:
            return to(a)

        return convert

    functions = {(source, to): conversion(source, to) for source in INTEGERS for to in INTEGERS}
    library = build(list(functions.values()))
    for (source, to), function in functions.items():
        machine = library.function(function)
        for a in edges(source):
            assert machine(a) == function(a) == to(a), (source, to, a)


@native
def wide_product(a: u32, b: u32) -> u64:
    return u64(a) * u64(b)


@native
def wide_difference(a: u32, b: u32) -> s64:
    return s64(a) - s64(b)


@native
def wide_rest(a: u32, b: u32, c: u32) -> u64:
    return u64(a // b | b % c | a >> 3)


def test_arithmetic_is_done_in_the_type_of_its_operands() -> None:
    most = 0xFFFFFFFF
    for function, *arguments in ((wide_product, most, most), (wide_difference, 1, most), (wide_rest, most, 3, 7)):
        assert compiled(function)(*arguments) == function(*arguments)


@native
def element_before(values: Pointer[u32], at: u32, back: u32) -> u32:
    return values[at - back]


def test_an_index_is_computed_in_s64() -> None:
    values = (ctypes.c_uint32 * 3)(5, 6, 7)
    assert compiled(element_before)(ctypes.addressof(values) + 4, 0, 1) == 5


@native
def multiply_high(a: u64, b: u64, c: u64) -> u64:
    whole: u128 = u128(u128(a) * u128(b) + (u128(c) << 64))
    kept: u128 = whole & ((u128(1) << 100) - 1)
    return u64(kept >> 64) ^ u64(whole) ^ u64(leading_zeros(u128, kept))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_128_bits(a: int, b: int, c: int) -> None:
    assert MULTIPLY_HIGH(a, b, c) == multiply_high(a, b, c)


MULTIPLY_HIGH = compiled(multiply_high)


@native
def mask_below(count: u32) -> u64:
    return (u64(1) << count) - 1


@native
def aligned(address: u64) -> u64:
    return (address + 15) & ~15


def test_constants_take_the_type_of_the_other_side() -> None:
    for count in (0, 1, 31, 32, 63):
        assert compiled(mask_below)(count) == mask_below(count)
    for address in (0, 1, 15, 16, 2**40 + 3):
        assert compiled(aligned)(address) == aligned(address)


def bit_functions(T: Any) -> list[Any]:  # noqa: N803
    @native
    def ones(a: T) -> u32:
        return count_ones(a)

    @native
    def leading(a: T) -> u32:
        return leading_zeros(T, a)

    @native
    def trailing(a: T) -> u32:
        return trailing_zeros(T, a)

    @native
    def reverse(a: T) -> T:
        return reverse_bits(T, a)

    return [ones, leading, trailing, reverse]


@pytest.mark.parametrize("type", [u8, u16, u32, u64], ids=str)
def test_counting_bits(type: Any) -> None:
    functions = bit_functions(type)
    library = build(functions)
    for function in functions:
        for a in edges(type):
            assert library.function(function)(a) == function(a), (function.__name__, a)


def float_functions(T: Any, bits: Any) -> list[Any]:  # noqa: N803
    @native
    def add(a: T, b: T, c: T) -> T:
        return T(a + b)

    @native
    def subtract(a: T, b: T, c: T) -> T:
        return T(a - b)

    @native
    def multiply(a: T, b: T, c: T) -> T:
        return T(a * b)

    @native
    def divide(a: T, b: T, c: T) -> T:
        return T(a / b) if b != 0 else c

    @native
    def root(a: T, b: T, c: T) -> T:
        return T(sqrt(abs(a)))

    @native
    def fused(a: T, b: T, c: T) -> T:
        return fma(T, a, b, c)

    @native
    def compare(a: T, b: T, c: T) -> T:
        return T(u32(a < b) + u32(a <= b) * 2 + u32(a == b) * 4 + u32(a != b) * 8 + u32(a > b) * 16)

    @native
    def halves(a: T, b: T, c: T) -> T:
        return T(T(a * (0.5 if a < b else -2)) - c) if c > T(1e-3) else -a

    @native
    def flip(a: T, b: T, c: T) -> T:
        pattern: bits = float_bits(T, a)
        return bits_float(T, pattern ^ (bits(1) << (8 * size - 1)))

    size = T.size
    return [add, subtract, multiply, divide, root, fused, compare, halves, flip]


SPECIAL = [0.0, -0.0, 1.0, -1.5, 1e-3, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(("type", "bits"), [(f32, u32), (f64, u64)], ids=["f32", "f64"])
def test_floats(type: Any, bits: Any) -> None:
    functions = float_functions(type, bits)
    library = build(functions)
    tiny, huge = (1e-45, 3.4e38) if type.bits == 32 else (5e-324, 1.7e308)
    values = [type(value) for value in (*SPECIAL, tiny, huge, -huge, 1 + 2**-12, math.pi, 1 / 3)]
    for function in functions:
        machine = library.function(function)
        for arguments in itertools.product(values, repeat=3):
            expected, found = function(*arguments), machine(*arguments)
            same = math.isnan(expected) and math.isnan(found)
            assert same or struct.pack("d", expected) == struct.pack("d", found), (function.__name__, arguments)


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
def test_fused_f32_rounds_once(a: float, b: float, c: float) -> None:
    expected, found = fused32(a, b, c), FUSED32(a, b, c)
    assert struct.pack("d", expected) == struct.pack("d", found) or (math.isnan(expected) and math.isnan(found))


@native
def fused32(a: f32, b: f32, c: f32) -> f32:
    return fma(f32, a, b, c)


FUSED32 = compiled(fused32)


@native
def to_integers(a: f64) -> s64:
    return s64(a) + s64(s32(a / 1024)) + s64(u8(abs(a) / 1e30))


@native
def to_floats(a: s64, b: u32, c: boolean) -> f64:
    return f64(f32(a)) + f64(b) + f64(u32(c))


def test_conversions_between_integers_and_floats() -> None:
    for value in (0.0, 1.99, -1.99, 123456789.7, -(2.0**40)):
        assert compiled(to_integers)(value) == to_integers(value)
    for a, b, c in itertools.product((0, -1, 2**53 + 1, -(2**62)), (0, 2**32 - 1), (False, True)):
        assert compiled(to_floats)(a, b, c) == to_floats(a, b, c)
