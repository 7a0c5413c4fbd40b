"""Sums of tensor cores: cut and rounded as derived by hand, near exact sums, the same in Python and machine code."""

import struct
from fractions import Fraction
from math import inf, isinf, isnan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ptxlab.native import Pointer, native, s32, u32, u64
from ptxlab.native.engine import compiled
from ptxlab.numbers import Special, decode
from ptxlab.numbers.formats import F16 as HALF
from ptxlab.numbers.formats import F32 as SINGLE
from ptxlab.numbers.formats import FORMATS as NUMBER_FORMATS
from ptxlab.numbers.formats import Format
from ptxlab.numbers.tensor_core import (
    F16,
    F32,
    F32_SHORT,
    FORMATS,
    MANTISSA_BITS,
    NUMBER_OF,
    Accumulation,
    add_products,
    unpack,
    widen_f16,
)
from ptxlab.numbers.tensor_core_models import MODELS, model_of

TYPES = ["f16", "bf16", "tf32", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1"]


@native
def add_step(
    a: Pointer[u32], b: Pointer[u32], count: u64, addend: u32, fraction: s32, lacking: s32, result: u32
) -> u32:
    return add_products(a, 0, b, 0, count, addend, Accumulation(fraction=fraction, lacking=lacking, result=result))


SUM = compiled(add_step)
UNPACK = compiled(unpack)


def total(
    type: str, a: list[int], b: list[int], addend: int, fraction: int = 25, result: int = F32, compiles: bool = True
) -> int:
    """One step on patterns."""
    format = NUMBER_OF[type]
    lacking = fraction - 2 * MANTISSA_BITS[format]
    left, right = ([unpack(one, format) for one in side] for side in (a, b))
    function = SUM if compiles else add_step
    found: int = function(left, right, len(a), addend, fraction, lacking, result)
    return found


def bf16(value: float) -> int:
    """The pattern of a number that bf16 holds."""
    return float_pattern(value) >> 16


def float_pattern(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def number(format: Format, pattern: int) -> Fraction | float:
    """The value of a pattern; infinities and NaN as floats."""
    value = decode(format, pattern)
    if isinstance(value, Fraction):
        return value
    special = {
        Special.NAN: float("nan"),
        Special.POSITIVE_INFINITY: inf,
        Special.NEGATIVE_INFINITY: -inf,
        Special.NEGATIVE_ZERO: Fraction(0),
    }
    return special[value]


# By hand, each: the largest exponent decides what of the others is kept, and nothing is rounded up.


def test_what_is_below_the_fraction_is_cut() -> None:
    one, tiny = bf16(1.0), bf16(2.0**-13)
    # 1 + 2**-26: the small product is one bit below 25 fraction bits; 2**-25 would be kept, but not by f32.
    assert total("bf16", [one, tiny], [one, tiny], 0) == 0x3F800000
    assert total("bf16", [one, bf16(2.0**-12)], [one, tiny], 0) == 0x3F800000
    # Four times 2**-25 are 2**-23: kept one by one, they count; with 24 fraction bits they do not.
    fours = [one] + [bf16(2.0**-12)] * 4
    others = [one] + [tiny] * 4
    assert total("bf16", fours, others, 0, fraction=25) == 0x3F800001
    assert total("bf16", fours, others, 0, fraction=24) == 0x3F800000


def test_sums_are_cut_towards_zero() -> None:
    one, small = bf16(1.0), bf16(2.0**-12)
    # -1 + 2**-24 is cut to -(1 - 2**-24), which f32 holds; 1 + 2**-24 is cut to 1.
    assert total("bf16", [bf16(-1.0), small], [one, small], 0) == 0xBF7FFFFF
    assert total("bf16", [one, small], [one, small], 0) == 0x3F800000


def test_products_are_aligned_before_they_are_normalized() -> None:
    # 1.5 * 1.5 = 2.25 has the exponent 0, so 25 bits are kept below 1, not below 2.
    assert total("f16", [0x3E00, 0x0C00, 0x0C00], [0x3E00, 0x0C00, 0x0C00], 0) == 0x40100000
    halves = [0x3E00] + [0x0800] * 8  # 2**-13 each
    others = [0x3E00] + [0x0C00] * 8  # 2**-12 each
    assert total("f16", halves, others, 0) == 0x40100001  # eight times 2**-25 are 2**-22, one unit of f32 above 2


def test_f16_results_are_rounded_to_the_nearest() -> None:
    one, eleventh = 0x3C00, 0x1000  # 1, 2**-11
    assert total("f16", [one, eleventh], [one, one], 0, result=F16) == 0x3C00  # a tie goes to the even one
    assert total("f16", [one, eleventh, eleventh], [one, one, 0x0400], 0, result=F16) == 0x3C01  # 2**-25 decides
    assert total("f16", [0x7BFF], [one], 0x4C00, result=F16) == 0x7C00  # 65504 + 16 is infinite
    assert total("f16", [0x7BFF], [one], 0x4BFF, result=F16) == 0x7BFF


def test_ada_keeps_thirteen_bits_of_fp8() -> None:
    one = 0x38
    assert total("e4m3", [one], [one], float_pattern(2.0**-13), fraction=13, result=F32_SHORT) == 0x3F800400
    assert total("e4m3", [one], [one], float_pattern(2.0**-14), fraction=13, result=F32_SHORT) == 0x3F800000


def test_zeros_do_not_decide_the_alignment() -> None:
    tiny = 0x00ABCDEF
    assert total("f16", [0x0000, 0x8000], [0x7BFF, 0x7BFF], tiny) == tiny
    assert total("bf16", [0x0000], [0x7F7F], tiny) == tiny


def test_what_is_cut_to_nothing_is_a_positive_zero() -> None:
    assert total("bf16", [0x8001], [0x0001], 0) == 0
    assert total("f16", [0x8001], [0x0001], 0, result=F16) == 0
    assert total("f16", [0x8000], [0x3C00], 0x8000, result=F16) == 0


def test_nothing_is_aligned_below_the_accumulator() -> None:
    # Seen on an H200: 2**-149 - 2**-158 is cut to 0, 2**-149 - 2**-159 is not seen and leaves 2**-149.
    left, right = [bf16(2.0**-75), bf16(2.0**-80)], bf16(2.0**-74)
    assert total("bf16", left, [right, bf16(-(2.0**-78))], 0) == 0
    assert total("bf16", left, [right, bf16(-(2.0**-79))], 0) == 1
    # And 2**-25 + 2**-46 is above the tie between 0 and the least f16, 2**-25 + 2**-47 is not.
    tie, rest = [0x0C00, 0x0004], [0x0800, 0x0001]
    assert total("f16", tie, rest, 0, result=F16) == 1
    assert total("f16", [0x0C00, 0x0002], rest, 0, result=F16) == 0


def test_infinities_and_nan() -> None:
    infinity, one = 0x7C00, 0x3C00
    assert total("f16", [infinity], [one], 0) == 0x7F800000
    assert total("f16", [infinity], [0xBC00], 0, result=F16) == 0xFC00
    assert total("f16", [infinity, infinity], [one, 0xBC00], 0) == 0x7FFFFFFF
    assert total("f16", [infinity], [0x0000], 0, result=F16) == 0x7FFF
    assert total("f16", [one], [one], 0x7FC00001) == 0x7FFFFFFF
    assert total("f16", [one], [one], 0xFF800000) == 0xFF800000
    assert total("bf16", [0x7F7F], [0x7F7F], 0) == 0x7F800000  # too large for f32


patterns = {type: st.integers(0, (1 << sum(FORMATS[type][:2]) + 1) - 1) for type in TYPES}


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, list[int], list[int], int, int, int]:
    """A type, two rows, an addend, the fraction bits and the format of the result."""
    type = draw(st.sampled_from(TYPES))
    count = draw(st.sampled_from([1, 4, 8, 16]))
    rows = [draw(st.lists(patterns[type], min_size=count, max_size=count)) for _ in range(2)]
    result = draw(st.sampled_from([F32, F16]))
    addend = draw(st.integers(0, 0xFFFF if result == F16 else 0xFFFFFFFF) | st.just(0))
    return type, rows[0], rows[1], addend, draw(st.sampled_from([23, 24, 25])), result


@given(steps())
def test_python_and_machine_code_agree(step: tuple[str, list[int], list[int], int, int, int]) -> None:
    type, a, b, addend, fraction, result = step
    for pattern in a + b:
        assert UNPACK(pattern, NUMBER_OF[type]) == unpack(pattern, NUMBER_OF[type])
    assert total(type, a, b, addend, fraction, result) == total(type, a, b, addend, fraction, result, compiles=False)


@example(("f16", [1, 0, 0, 1], [1, 0, 0, 5120], 0, 23, F32))  # 2^-48 is cut, though 2^-34 is the largest product
@given(steps())
def test_a_sum_is_near_the_exact_one(step: tuple[str, list[int], list[int], int, int, int]) -> None:
    type, a, b, addend, fraction, result = step
    format, wide = NUMBER_FORMATS[type], HALF if result == F16 else SINGLE
    assert isinstance(format, Format)
    left = [number(format, one << format.padding) for one in a]
    right = [number(format, one << format.padding) for one in b]
    last = number(wide, addend)
    found = number(wide, total(type, a, b, addend, fraction, result))
    if any(isinstance(value, float) for value in (*left, *right, last)):
        wanted = sum((float(x) * float(y) for x, y in zip(left, right, strict=True)), float(last))
        assert isnan(float(found)) if isnan(wanted) else found == wanted
        return
    terms = [x * y for x, y in zip(left, right, strict=True)] + [last]
    exact = sum(terms, Fraction(0))
    # What counts is the largest exponent: a subnormal number has that of the least normal one, and nothing is aligned
    # to less than seven below the least of the result.
    normal, least_exponent = Fraction(2) ** FORMATS[type][3], -14 if result == F16 else -126
    products = [max(abs(x), normal) * max(abs(y), normal) for x, y in zip(left, right, strict=True) if x and y]
    addends = [max(abs(last), Fraction(2) ** least_exponent)] if last else []
    largest = max([*products, *addends, Fraction(2) ** (least_exponent - 7)])
    if isinstance(found, float):
        assert isinf(found)
        assert abs(exact) >= number(wide, wide.largest) * Fraction(2047, 2048)
        return
    least = Fraction(2) ** (-24 if result == F16 else -149)
    lost = len(terms) * largest / 2 ** (fraction - 1) + abs(exact) / 2 ** (10 if result == F16 else 23)
    assert abs(found - exact) <= lost + least


@given(st.lists(st.tuples(st.integers(-15, 15), st.integers(-15, 15)), min_size=1, max_size=16), st.integers(-999, 999))
def test_sums_of_small_integers_are_exact(pairs: list[tuple[int, int]], addend: int) -> None:
    a, b = ([bf16(float(pair[side])) for pair in pairs] for side in (0, 1))
    wanted = addend + sum(x * y for x, y in pairs)
    assert total("bf16", a, b, float_pattern(float(addend))) == float_pattern(float(wanted))


@given(st.integers(0, 0xFFFF))
def test_widening_is_exact(pattern: int) -> None:
    value, wide = number(HALF, pattern), number(SINGLE, widen_f16(pattern))
    assert isnan(float(wide)) if isnan(float(value)) else wide == value
    assert (widen_f16(pattern) >> 31) == pattern >> 15


@pytest.mark.parametrize("target", [70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121])
def test_every_target_has_a_model(target: int) -> None:
    model = model_of(target)
    assert model in MODELS.values()
    assert model.fp8.as_f16 == (target not in (70, 75, 89, 120, 121))
    assert model.half.fraction == {70: 23, 75: 24, 80: 24, 86: 24, 89: 24}.get(target, 25)
