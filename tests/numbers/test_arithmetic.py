"""Arithmetic on patterns: against numpy, against correctly rounded fractions, and special values one by one."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlab.numbers import BF16, F16, F32, F64, Format, Rounding, Special, arithmetic, decode

NUMPY: dict[str, tuple[type[Any], type[Any]]] = {
    "f16": (numpy.float16, numpy.uint16),
    "bf16": (ml_dtypes.bfloat16, numpy.uint16),
    "f32": (numpy.float32, numpy.uint32),
    "f64": (numpy.float64, numpy.uint64),
}
FORMATS = [F16, BF16, F32, F64]
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "div": numpy.divide,
    "sqrt": numpy.sqrt,
}
# f32: 1.0, infinities, a NaN that is not canonical, the canonical one, the least normal and the largest subnormal
ONE, INFINITY, MINUS_INFINITY, SOME_NAN, NAN = 0x3F80_0000, 0x7F80_0000, 0xFF80_0000, 0xFFC0_0005, 0x7FFF_FFFF
ZERO, MINUS_ZERO, MINUS_ONE, LEAST_NORMAL, SUBNORMAL = 0, 0x8000_0000, 0xBF80_0000, 0x0080_0000, 0x007F_FFFF


def name(parameter: object) -> str | None:
    return parameter.name if isinstance(parameter, Format) else None


def patterns(format: Format) -> st.SearchStrategy[int]:
    """Any pattern, often one near a power of two, a limit or a special value."""
    exponents = st.integers(0, (1 << (format.exponent_bits + 1)) - 1).map(lambda field: field << format.mantissa_bits)
    near = st.builds(lambda field, step: (field + step) % (1 << format.width), exponents, st.integers(-2, 2))
    middle = st.integers(-format.mantissa_bits - 2, format.mantissa_bits + 2)
    ordinary = st.builds(
        lambda offset, mantissa, sign: sign | (format.bias + offset) << format.mantissa_bits | mantissa,
        middle.filter(lambda offset: 0 < format.bias + offset < 2 * format.bias),
        st.integers(0, (1 << format.mantissa_bits) - 1),
        st.sampled_from([0, format.sign_bit]),
    )
    return st.one_of(st.integers(0, (1 << format.width) - 1), near, ordinary)


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("format", FORMATS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_nearest_results_are_numpy_s(format: Format, operation: str, data: st.DataObject) -> None:
    count = 1 if operation == "sqrt" else 2
    operands = [data.draw(patterns(format)) for _ in range(count)]
    dtype, container = NUMPY[format.name]
    with numpy.errstate(all="ignore"):
        numbers = [numpy.array([bits], dtype=container).view(dtype) for bits in operands]
        expected = OPERATIONS[operation](*numbers)
    found = getattr(arithmetic, operation)(format, *operands)
    if numpy.isnan(expected[0]):
        assert decode(format, found) is Special.NAN
    else:
        assert found == int(expected.view(container)[0])


def rounded_to_odd(exact: Fraction) -> float:
    """The f64 that keeps enough of `exact` to be rounded once more, to a format of half the precision."""
    nearest = float(exact)
    if Fraction(nearest) == exact or int(numpy.float64(nearest).view(numpy.uint64)) % 2:
        return nearest
    return math.nextafter(nearest, math.inf if exact > Fraction(nearest) else -math.inf)


@pytest.mark.parametrize("format", [F16, F32, F64], ids=name)
@given(data=st.data())
@settings(max_examples=60)
def test_fma_rounds_once(format: Format, data: st.DataObject) -> None:
    finite = patterns(format).filter(lambda bits: bits & ~format.sign_bit <= format.largest)
    operands = [data.draw(finite) for _ in range(3)]
    dtype, container = NUMPY[format.name]
    a, b, c = (Fraction(numpy.array([bits], dtype=container).view(dtype)[0].item()) for bits in operands)
    found = arithmetic.fma(format, *operands)
    exact = a * b + c
    if exact == 0:
        assert found & ~format.sign_bit == 0
        return
    try:
        number = float(exact) if format is F64 else rounded_to_odd(exact)
    except OverflowError:
        number = math.inf
    with numpy.errstate(over="ignore"):
        expected = numpy.float64(math.copysign(number, 1 if exact > 0 else -1)).astype(dtype)
    assert found == int(expected.view(container))


@pytest.mark.parametrize("format", FORMATS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_directed_square_roots_are_neighbours_around_the_root(format: Format, data: st.DataObject) -> None:
    bits = data.draw(patterns(format)) & ~format.sign_bit
    value = decode(format, bits)
    if not isinstance(value, Fraction):
        return
    low, high, chopped = (arithmetic.sqrt(format, bits, rounding) for rounding in ("rm", "rp", "rz"))
    below, above = decode(format, low), decode(format, high)
    assert isinstance(below, Fraction)
    assert isinstance(above, Fraction)
    assert below**2 <= value <= above**2
    assert high - low == (0 if below**2 == value else 1)
    assert chopped == low


@pytest.mark.parametrize(("rounding", "zero"), [("rn", ZERO), ("rz", ZERO), ("rp", ZERO), ("rm", MINUS_ZERO)])
def test_the_sign_of_a_cancelled_sum(rounding: Rounding, zero: int) -> None:
    assert arithmetic.add(F32, ONE, MINUS_ONE, rounding) == zero
    assert arithmetic.sub(F32, ONE, ONE, rounding) == zero
    assert arithmetic.fma(F32, ONE, ONE, MINUS_ONE, rounding) == zero
    assert arithmetic.add(F32, ZERO, MINUS_ZERO, rounding) == zero
    assert arithmetic.add(F32, MINUS_ZERO, MINUS_ZERO, rounding) == MINUS_ZERO
    assert arithmetic.add(F32, ZERO, ZERO, rounding) == ZERO


def test_invalid_operations_give_the_canonical_nan() -> None:
    assert arithmetic.add(F32, INFINITY, MINUS_INFINITY) == NAN
    assert arithmetic.mul(F32, ZERO, INFINITY) == NAN
    assert arithmetic.div(F32, ZERO, MINUS_ZERO) == NAN
    assert arithmetic.div(F32, INFINITY, INFINITY) == NAN
    assert arithmetic.sqrt(F32, MINUS_ONE) == NAN
    assert arithmetic.fma(F32, ZERO, INFINITY, ONE) == NAN
    assert arithmetic.add(F32, SOME_NAN, ONE) == NAN
    assert arithmetic.add(F16, 0x7C00, 0xFC00) == arithmetic.add(BF16, 0x7F80, 0xFF80) == 0x7FFF
    assert arithmetic.sqrt(F64, 0xBFF0_0000_0000_0000) == 0xFFF8_0000_0000_0000


def test_f64_hands_on_a_nan_it_is_given() -> None:
    one, signalling = 0x3FF0_0000_0000_0000, 0x7FF0_0000_0000_0001
    a, b, c = (0xFFF8_0000_0000_0000 + payload for payload in (1, 2, 3))
    assert arithmetic.add(F64, one, signalling) == 0x7FF8_0000_0000_0001
    assert arithmetic.add(F64, a, b) == arithmetic.sub(F64, a, b) == arithmetic.mul(F64, a, b) == b
    assert arithmetic.div(F64, a, b) == a
    assert arithmetic.fma(F64, a, b, c) == b
    assert arithmetic.fma(F64, a, one, c) == c
    assert arithmetic.min(F64, a, b) == arithmetic.max(F64, a, b) == b


def test_division_by_zero_and_roots_of_zero() -> None:
    assert arithmetic.div(F32, ONE, MINUS_ZERO) == MINUS_INFINITY
    assert arithmetic.div(F32, MINUS_ONE, INFINITY) == MINUS_ZERO
    assert arithmetic.sqrt(F32, MINUS_ZERO) == MINUS_ZERO
    assert arithmetic.sqrt(F32, INFINITY) == INFINITY


def test_ftz_flushes_operands_and_results() -> None:
    assert arithmetic.add(F32, SUBNORMAL, ZERO) == SUBNORMAL
    assert arithmetic.add(F32, SUBNORMAL, ZERO, ftz=True) == ZERO
    assert arithmetic.add(F32, SUBNORMAL | MINUS_ZERO, MINUS_ZERO, ftz=True) == MINUS_ZERO
    assert arithmetic.sub(F32, LEAST_NORMAL + 1, LEAST_NORMAL, ftz=True) == ZERO
    assert arithmetic.div(F32, ONE, SUBNORMAL, ftz=True) == INFINITY
    assert arithmetic.sqrt(F32, SUBNORMAL, ftz=True) == ZERO
    assert arithmetic.min(F32, SUBNORMAL, ONE, ftz=True) == ZERO


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [(0x3F7F_FFFF, 0x0080_0000, ZERO), (0x3F7F_FFFE, 0x0080_0001, LEAST_NORMAL), (0x3F7F_FFFE, 0x0080_0000, ZERO)],
)
def test_ftz_of_products_next_to_the_least_normal(a: int, b: int, result: int) -> None:
    assert arithmetic.mul(F32, a, b, ftz=True) == result


def test_sat_clamps_to_the_unit_interval() -> None:
    assert arithmetic.add(F32, ONE, ONE, sat=True) == ONE
    assert arithmetic.add(F32, MINUS_ONE, ZERO, sat=True) == ZERO
    assert arithmetic.mul(F32, MINUS_ZERO, ONE, sat=True) == ZERO
    assert arithmetic.fma(F32, ONE, INFINITY, ONE, sat=True) == ONE
    assert arithmetic.add(F32, SOME_NAN, ONE, sat=True) == ZERO


def test_relu_clamps_negative_results_and_keeps_nan() -> None:
    assert arithmetic.fma(F16, 0xBC00, 0x3C00, 0x0000, relu=True) == 0x0000
    assert arithmetic.fma(F16, 0x3C00, 0x3C00, 0x0000, relu=True) == 0x3C00
    assert arithmetic.fma(BF16, 0xFF81, 0x3F80, 0x0000, relu=True) == 0x7FFF


@pytest.mark.parametrize(
    ("a", "b", "least", "greatest"),
    [
        (ONE, MINUS_ONE, MINUS_ONE, ONE),
        (ZERO, MINUS_ZERO, MINUS_ZERO, ZERO),
        (INFINITY, ONE, ONE, INFINITY),
        (MINUS_INFINITY, ONE, MINUS_INFINITY, ONE),
        (SOME_NAN, ONE, ONE, ONE),
        (ONE, SOME_NAN, ONE, ONE),
        (SOME_NAN, SOME_NAN, NAN, NAN),
    ],
)
def test_min_and_max(a: int, b: int, least: int, greatest: int) -> None:
    assert arithmetic.min(F32, a, b) == arithmetic.min(F32, b, a) == least
    assert arithmetic.max(F32, a, b) == arithmetic.max(F32, b, a) == greatest
    given_nan = SOME_NAN in (a, b)
    assert arithmetic.min(F32, a, b, nan=True) == (NAN if given_nan else least)
    assert arithmetic.max(F32, a, b, nan=True) == (NAN if given_nan else greatest)


def test_min_and_max_of_three() -> None:
    assert arithmetic.min(F32, ONE, SOME_NAN, MINUS_ONE) == MINUS_ONE
    assert arithmetic.max(F32, ONE, SOME_NAN, INFINITY, nan=True) == NAN
    assert arithmetic.max(F32, ZERO, MINUS_INFINITY, ONE, abs=True) == INFINITY
