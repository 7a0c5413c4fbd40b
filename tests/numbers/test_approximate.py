"""The approximate functions: within the manual's bounds, special values one by one, and compiled as in Python."""

import math
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from ptxlab.isa.bound import Bound
from ptxlab.isa.table import forms_of
from ptxlab.native.engine import compiled
from ptxlab.numbers import BF16, F16, F32, F64, Format, Special, approximate, decode
from ptxlab.numbers.parameters import FORMAT

from .samples import sample

NAN, INFINITY, MINUS_INFINITY, ZERO, MINUS_ZERO = 0x7FFF_FFFF, 0x7F80_0000, 0xFF80_0000, 0, 0x8000_0000
ONE, MINUS_ONE, SUBNORMAL, MINUS_SUBNORMAL = 0x3F80_0000, 0xBF80_0000, 0x0040_0000, 0x8040_0000
WITH_FTZ = [approximate.reciprocal, approximate.square_root, approximate.reciprocal_root,
            approximate.logarithm, approximate.power]  # fmt: skip
ALONE = [approximate.sine, approximate.cosine, approximate.tangent]
HIGH = [approximate.high_reciprocal, approximate.high_reciprocal_root, approximate.reciprocal_root_f64]


def name(parameter: object) -> str | None:
    return getattr(parameter, "__name__", None)


def number(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def bounds_of(spelling: str) -> tuple[Bound, ...]:
    known = forms_of(spelling.partition(".")[0])
    (found,) = (form.bounds for form in known if spelling in map(form.spell, form.spellings()))
    assert found
    return found


def assert_within(bounds: tuple[Bound, ...], operand: float, found: float, true: float, format: Format = F32) -> None:
    for bound in bounds:
        if not bound.holds(operand):
            continue
        error = abs(found - true)
        if bound.measure == "relative":
            error /= abs(true)
        if bound.measure == "ulp":
            exponent = max(math.frexp(true)[1] - 1, format.least_exponent)
            error /= 2.0 ** (exponent - format.mantissa_bits)
        assert error <= bound.error, (operand.hex(), found, true, error, bound)
        return


TRUE: list[tuple[str, Callable[..., int], Callable[[float], float]]] = [
    ("rcp.approx.f32", lambda a: approximate.reciprocal(a, False), lambda x: 1 / x),
    ("sqrt.approx.f32", lambda a: approximate.square_root(a, False), lambda x: math.sqrt(abs(x))),
    ("rsqrt.approx.f32", lambda a: approximate.reciprocal_root(a, False), lambda x: 1 / math.sqrt(abs(x))),
    ("lg2.approx.f32", lambda a: approximate.logarithm(a, False), lambda x: math.log2(abs(x))),
    ("ex2.approx.f32", lambda a: approximate.power(a, False), math.exp2),
    ("sin.approx.f32", approximate.sine, math.sin),
    ("cos.approx.f32", approximate.cosine, math.cos),
    ("tanh.approx.f32", approximate.tangent, math.tanh),
]


@pytest.mark.parametrize(("spelling", "function", "true"), TRUE, ids=[spelling for spelling, *_ in TRUE])
def test_results_are_within_the_bounds(
    spelling: str, function: Callable[..., int], true: Callable[[float], float]
) -> None:
    bounds = bounds_of(spelling)
    generator = random.Random(spelling)
    positive_only = spelling.startswith(("sqrt", "rsqrt", "lg2"))
    for count in range(2000):
        bits = sample(F32, generator)
        if count % 2:  # where most kernels compute
            bits = struct.unpack("<I", struct.pack("<f", generator.uniform(-20.0, 20.0)))[0]
        operand = number(bits & 0x7FFF_FFFF if positive_only else bits)
        if not math.isfinite(operand) or operand == 0 or (spelling.startswith("ex2") and abs(operand) > 120):
            continue
        found = number(function(bits & 0x7FFF_FFFF if positive_only else bits))
        if math.isinf(found):
            assert abs(true(operand)) >= 2.0**128 * (1 - 2.0**-25)
            continue
        assert_within(bounds, operand, found, true(operand))


def test_a_small_angle_has_no_sine_and_a_huge_one_has_none_either() -> None:
    # As on an H200: the product with 1/2π is subnormal, or a whole number.
    assert [approximate.sine(bits) for bits in (0x0080_0000, 0x8080_0000, 0x7E80_0000)] == [0, MINUS_ZERO, 0]
    assert approximate.cosine(0x7E80_0000) == ONE


@pytest.mark.parametrize("full", [False, True])
def test_quotients(full: bool) -> None:
    bounds = bounds_of("div.full.f32" if full else "div.approx.f32")
    generator = random.Random(1)
    for _ in range(1500):
        a, b = sample(F32, generator), sample(F32, generator)
        dividend, divisor = number(a), number(b)
        found = approximate.quotient(a, b, False, full)
        if not math.isfinite(dividend) or not math.isfinite(divisor) or divisor == 0 or dividend == 0:
            continue
        if not full and abs(divisor) > 2.0**126:
            assert found & 0x7FFF_FFFF == 0
        elif found & 0x7FFF_FFFF != INFINITY:
            assert_within(bounds, dividend, number(found), dividend / divisor)
    assert approximate.quotient(INFINITY, 0x7F00_0000, False, full) == (INFINITY if full else NAN)
    assert approximate.quotient(ZERO, ZERO, False, full) == NAN
    assert approximate.quotient(MINUS_ONE, ZERO, False, full) == MINUS_INFINITY
    assert approximate.quotient(ONE, SUBNORMAL, True, full) == INFINITY
    assert approximate.quotient(SUBNORMAL, SUBNORMAL, True, full) == NAN
    assert approximate.quotient(SUBNORMAL, SUBNORMAL, False, full) == ONE


SPECIAL = {
    approximate.reciprocal: {MINUS_INFINITY: MINUS_ZERO, MINUS_ZERO: MINUS_INFINITY, ZERO: INFINITY, INFINITY: ZERO},
    approximate.square_root: {MINUS_INFINITY: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_ZERO, ZERO: ZERO,
                              INFINITY: INFINITY},
    approximate.reciprocal_root: {MINUS_INFINITY: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_INFINITY, ZERO: INFINITY,
                                  INFINITY: ZERO},
    approximate.sine: {MINUS_INFINITY: NAN, MINUS_ZERO: MINUS_ZERO, ZERO: ZERO, INFINITY: NAN},
    approximate.cosine: {MINUS_INFINITY: NAN, MINUS_ZERO: ONE, ZERO: ONE, INFINITY: NAN},
    approximate.logarithm: {MINUS_INFINITY: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_INFINITY, ZERO: MINUS_INFINITY,
                               INFINITY: INFINITY, ONE: ZERO},
    approximate.power: {MINUS_INFINITY: ZERO, MINUS_ZERO: ONE, ZERO: ONE, INFINITY: INFINITY, ONE: 0x4000_0000},
    approximate.tangent: {MINUS_INFINITY: MINUS_ONE, MINUS_ZERO: MINUS_ZERO, ZERO: ZERO, INFINITY: ONE,
                             SUBNORMAL: SUBNORMAL},
}  # fmt: skip


@pytest.mark.parametrize("function", SPECIAL, ids=name)
def test_the_tables_of_the_manual(function: Callable[..., int]) -> None:
    rest = (False,) if function in WITH_FTZ else ()
    for operand, result in {**SPECIAL[function], 0xFFC0_0005: NAN}.items():
        assert function(operand, *rest) == result, hex(operand)


def test_ftz() -> None:
    assert approximate.reciprocal(MINUS_SUBNORMAL, True) == MINUS_INFINITY
    assert approximate.reciprocal(0x7F00_0000, True) == ZERO  # 2**-127
    assert approximate.reciprocal(0x7F00_0000, False) == SUBNORMAL
    assert approximate.square_root(MINUS_SUBNORMAL, True) == MINUS_ZERO
    assert approximate.square_root(MINUS_SUBNORMAL, False) == NAN
    assert approximate.logarithm(SUBNORMAL, True) == MINUS_INFINITY
    assert approximate.logarithm(SUBNORMAL, False) == 0xC2FD_FFFF  # nearly -127
    assert approximate.power(0xC2FE_0000, True) == ZERO
    assert approximate.power(0xC2FE_0000, False) == SUBNORMAL - 1  # the square of a root that is too small


@pytest.mark.parametrize("format", [F16, BF16], ids=["f16", "bf16"])
def test_half_precision_is_within_the_bounds(format: Format) -> None:
    powers = bounds_of("ex2.approx.f16" if format is F16 else "ex2.approx.ftz.bf16")
    tangents = bounds_of(f"tanh.approx.{format.name}")
    for bits in range(0, 1 << 16, 23):
        value = decode(format, bits)
        power = approximate.half_power(bits, FORMAT[format.name])
        tangent = approximate.half_tangent(bits, FORMAT[format.name])
        if value is Special.NAN:
            assert power == tangent == format.nan
        elif not isinstance(value, Special):
            operand = float(value)
            assert_within(tangents, operand, float(decode(format, tangent)), math.tanh(operand), format)
            true = math.exp2(max(min(operand, 500.0), -500.0))
            if 2.0**format.least_exponent <= true < 2.0**format.bias:
                assert_within(powers, operand, float(decode(format, power)), true, format)


def test_the_upper_half_of_an_f64() -> None:
    generator = random.Random(2)
    for _ in range(500):
        bits = sample(F64, generator)
        magnitude = bits & 0x7FFF_FFFF_0000_0000
        (operand,) = struct.unpack("<d", struct.pack("<Q", magnitude))
        found = approximate.high_reciprocal(bits)
        root = approximate.high_reciprocal_root(magnitude)
        assert found & 0xFFFF_FFFF == root & 0xFFFF_FFFF == 0
        if math.isnan(operand):
            assert found == root == 0x7FFF_FFFF_0000_0000
        elif 2.0**-1022 <= operand <= 2.0**1022:
            (result,) = struct.unpack("<d", struct.pack("<Q", found & ~F64.sign_bit))
            assert abs(result * operand - 1) < 2**-20
            (result,) = struct.unpack("<d", struct.pack("<Q", root))
            assert abs(result * math.sqrt(operand) - 1) < 2**-20
    assert approximate.high_reciprocal(0x8000_0000_0000_0001) == 0xFFF0_0000_0000_0000
    assert approximate.high_reciprocal(0x7FF0_0000_0000_0001) == 0  # the upper half is that of infinity


@pytest.mark.parametrize("function", [*WITH_FTZ, *ALONE, *HIGH, approximate.quotient], ids=name)
def test_machine_code_gives_the_same_bits(function: Callable[..., Any]) -> None:
    machine_code = compiled(function)
    generator = random.Random(function.__name__)
    for _ in range(400):
        a, b, ftz, full = (
            sample(F32, generator),
            sample(F32, generator),
            generator.random() < 0.5,
            generator.random() < 0.5,
        )
        arguments: tuple[int, ...] = (a, ftz) if function in WITH_FTZ else (a,)
        if function in HIGH:
            arguments = (sample(F64, generator),)
        if function is approximate.quotient:
            arguments = (a, b, ftz, full)
        assert machine_code(*arguments) == function(*arguments), [hex(value) for value in arguments]


@pytest.mark.parametrize("format", [F16, BF16], ids=["f16", "bf16"])
def test_machine_code_of_half_precision(format: Format) -> None:
    power, tangent = compiled(approximate.half_power), compiled(approximate.half_tangent)
    for bits in range(0, 1 << 16, 61):
        number = FORMAT[format.name]
        assert power(bits, number) == approximate.half_power(bits, number)
        assert tangent(bits, number) == approximate.half_tangent(bits, number)
