"""The pattern a value rounds to: against numpy and ml_dtypes, and by what each rounding mode promises."""

from fractions import Fraction

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlab.numbers import (
    BF16,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    FORMATS,
    S2F6,
    TF32,
    UE4M3,
    UE8M0,
    FixedPoint,
    Format,
    RandomBits,
    Rounding,
    Special,
    Value,
    clamp_negative,
    clamp_unit,
    decode,
    encode,
)

SMALL = [
    (E5M2, ml_dtypes.float8_e5m2),
    (E4M3, ml_dtypes.float8_e4m3fn),
    (E3M2, ml_dtypes.float6_e3m2fn),
    (E2M3, ml_dtypes.float6_e2m3fn),
    (E2M1, ml_dtypes.float4_e2m1fn),
]
FLOATING = [format for format in FORMATS.values() if not isinstance(format, FixedPoint)]
NARROW = [format for format in FORMATS.values() if format.width <= 16]
HALF = Fraction(1, 2)


def name(parameter: object) -> str | None:
    return parameter.name if isinstance(parameter, Format | FixedPoint) else None


@pytest.mark.parametrize("format", NARROW, ids=name)
def test_every_pattern_survives(format: Format | FixedPoint) -> None:
    for bits in range(1 << format.width):
        value = decode(format, bits)
        if value is not Special.NAN:
            assert encode(format, value, "rz") == bits


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("format", "dtype"), SMALL, ids=name)
def test_every_f16_rounds_to_nearest(format: Format, dtype: type) -> None:
    finite = numpy.arange(F16.infinity, dtype=numpy.uint16)
    patterns = numpy.concatenate([finite, finite[::9] | F16.sign_bit])
    with numpy.errstate(over="ignore"):
        expected = patterns.view(numpy.float16).astype(dtype).view(numpy.uint8)
    nan = -1 if format.nan is None else format.nan
    for bits, pattern in zip(patterns.tolist(), expected.tolist(), strict=True):
        found = encode(format, decode(F16, bits))
        # ml_dtypes keeps the sign of a NaN.
        assert found == (pattern & ~format.sign_bit if found == nan else pattern)


@pytest.mark.parametrize(("format", "dtype"), [(F16, numpy.float16), (BF16, ml_dtypes.bfloat16)], ids=name)
def test_f32_rounds_to_nearest(format: Format, dtype: type) -> None:
    random = numpy.random.default_rng(2)
    patterns = random.integers(0, 1 << 32, 4000, dtype=numpy.uint32)
    # Ties, and the neighbours of ties, at every exponent.
    ties = (patterns >> 16 << 16) | (1 << (22 - format.mantissa_bits))
    patterns = numpy.concatenate([patterns, ties, ties + 1, ties - 1])
    patterns = patterns[numpy.isfinite(patterns.view(numpy.float32))]
    with numpy.errstate(over="ignore"):
        expected = patterns.view(numpy.float32).astype(dtype).view(numpy.uint16)
    assert [encode(format, decode(F32, bits)) for bits in patterns.tolist()] == expected.tolist()


def values(format: Format) -> st.SearchStrategy[Fraction]:
    """Fractions near and between the numbers of `format`, of both signs if it has them."""
    magnitudes = st.integers(0, (format.largest >> format.padding) - 1).map(lambda count: count << format.padding)
    parts = st.fractions(0, 1, max_denominator=64)
    signs = st.sampled_from([1, -1] if format.signed else [1])

    def between(bits: int, part: Fraction, sign: int) -> Fraction:
        low, high = number(format, bits), number(format, bits + (1 << format.padding))
        return sign * (low + (high - low) * part)

    return st.builds(between, magnitudes, parts, signs)


def number(format: Format, bits: int) -> Fraction:
    """The value of a finite pattern; a zero of either sign is 0."""
    value = decode(format, bits)
    if value is Special.NEGATIVE_ZERO:
        return Fraction(0)
    assert isinstance(value, Fraction)
    return value


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("format", FLOATING, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_directed_modes_bracket_and_nearest_modes_pick_the_nearer(format: Format, data: st.DataObject) -> None:
    value = data.draw(values(format))
    patterns = {rounding: encode(format, value, rounding) for rounding in ("rn", "rna", "rz", "rm", "rp")}
    rounded = {rounding: number(format, bits) for rounding, bits in patterns.items()}
    low, high = rounded["rm"], rounded["rp"]
    assert low <= value <= high
    # Nothing is between the two: they are the same pattern or neighbours.
    magnitudes = [patterns[rounding] & ~format.sign_bit for rounding in ("rm", "rp")]
    assert abs(magnitudes[0] - magnitudes[1]) == (0 if low == high else 1 << format.padding)
    assert rounded["rz"] == (low if value > 0 else high)
    tie = low < value and value - low == high - value
    nearer = low if value - low < high - value else high
    if not tie:
        assert rounded["rn"] == rounded["rna"] == nearer
        return
    assert rounded["rna"] == max(low, high, key=abs)
    if format.mantissa_bits:
        assert (patterns["rn"] >> format.padding) % 2 == 0


@pytest.mark.parametrize("format", [F16, BF16, E4M3, E2M1], ids=name)
@given(data=st.data())
@settings(max_examples=20)
def test_stochastic_rounding_goes_away_from_zero_in_proportion(format: Format, data: st.DataObject) -> None:
    value = data.draw(values(format))
    inner, outer = encode(format, value, "rz"), encode(format, value, "rp" if value > 0 else "rm")
    found = [encode(format, value, "rs", random=RandomBits(bits, 4)) for bits in range(16)]
    low, high = abs(number(format, inner)), abs(number(format, outer))
    expected = 0 if low == high else (abs(value) - low) * 16 // (high - low)
    assert found == [inner] * (16 - expected) + [outer] * expected


@pytest.mark.parametrize(
    ("format", "value", "rounding", "pattern", "saturated"),
    [
        (F16, Fraction(65519), "rn", 0x7BFF, 0x7BFF),
        (F16, Fraction(65520), "rn", 0x7C00, 0x7BFF),
        (F16, Fraction(-65520), "rn", 0xFC00, 0xFBFF),
        (F16, Fraction(10**6), "rz", 0x7BFF, 0x7BFF),
        (F16, Fraction(10**6), "rm", 0x7BFF, 0x7BFF),
        (F16, Fraction(10**6), "rp", 0x7C00, 0x7BFF),
        (F16, Fraction(-(10**6)), "rm", 0xFC00, 0xFBFF),
        (F16, Fraction(-(10**6)), "rp", 0xFBFF, 0xFBFF),
        (F16, Special.NEGATIVE_INFINITY, "rn", 0xFC00, 0xFBFF),
        (F16, Special.NAN, "rn", 0x7FFF, 0x7FFF),
        (BF16, Special.NAN, "rn", 0x7FFF, 0x7FFF),
        (E5M2, Fraction(61440), "rn", 0x7C, 0x7B),
        (E5M2, Special.NAN, "rn", 0x7F, 0x7F),
        (E4M3, Fraction(464), "rn", 0x7E, 0x7E),
        (E4M3, Fraction(465), "rn", 0x7F, 0x7E),
        (E4M3, Special.NEGATIVE_INFINITY, "rn", 0xFF, 0xFE),
        (E4M3, Special.NAN, "rn", 0x7F, 0x7F),
        (E3M2, Special.NEGATIVE_INFINITY, "rn", 0x3F, 0x3F),
        (E2M3, Special.NAN, "rn", 0x1F, 0x1F),
        (E2M1, Special.NAN, "rn", 0x7, 0x7),
        (E2M1, Fraction(-100), "rn", 0xF, 0xF),
        (UE4M3, Fraction(-1), "rn", 0x38, 0x38),
        (UE8M0, Fraction(3), "rz", 0x80, 0x80),
        (UE8M0, Fraction(3), "rp", 0x81, 0x81),
        (UE8M0, Fraction(-3), "rp", 0x81, 0x81),
        (UE8M0, Fraction(0), "rz", 0x00, 0x00),
        (UE8M0, Special.NEGATIVE_ZERO, "rp", 0x00, 0x00),
        (UE8M0, Fraction(2) ** -140, "rp", 0x00, 0x00),
        (UE8M0, Fraction(2) ** 127 + 1, "rz", 0xFE, 0xFE),
        (UE8M0, Fraction(2) ** 127 + 1, "rp", 0xFF, 0xFE),
        (UE8M0, Special.POSITIVE_INFINITY, "rz", 0xFF, 0xFE),
        (UE8M0, Special.NAN, "rz", 0xFF, 0xFF),
        (S2F6, Fraction(2), "rn", 0x7F, 0x7F),
        (S2F6, Fraction(-3), "rn", 0x80, 0x80),
        (S2F6, Special.NAN, "rn", 0x7F, 0x7F),
        (S2F6, Special.NEGATIVE_ZERO, "rn", 0x00, 0x00),
        (TF32, Fraction(1) + Fraction(1, 2048), "rn", 0x3F800000, 0x3F800000),
        (TF32, Fraction(1) + Fraction(1, 2048), "rna", 0x3F802000, 0x3F802000),
        (F64, Fraction(2) ** 1024, "rn", 0x7FF << 52, (0x7FF << 52) - 1),
    ],
    ids=name,
)
def test_the_ends_of_the_range(format: Format, value: Value, rounding: Rounding, pattern: int, saturated: int) -> None:
    assert encode(format, value, rounding) == pattern
    assert encode(format, value, rounding, saturate=True) == saturated


def test_small_values_keep_their_sign_when_they_round_to_zero() -> None:
    tiny = Fraction(2) ** -200
    assert encode(F32, tiny) == 0
    assert encode(F32, -tiny) == 0x8000_0000
    assert encode(F32, -tiny, "rm") == 0x8000_0001


def test_subnormal_results_are_flushed_on_request() -> None:
    assert encode(F32, Fraction(2) ** -127) == 0x0040_0000
    assert encode(F32, Fraction(2) ** -127, flush=True) == 0
    assert encode(F32, -(Fraction(2) ** -127), flush=True) == 0x8000_0000
    assert encode(F32, Fraction(2) ** -126, flush=True) == 0x0080_0000


def test_a_result_is_subnormal_if_it_is_with_unbounded_exponent() -> None:
    least = Fraction(2) ** -126
    assert encode(F32, least * (1 - Fraction(2) ** -24), flush=True) == 0
    assert encode(F32, least * (1 - Fraction(2) ** -24)) == 0x0080_0000
    assert encode(F32, least * (1 - Fraction(2) ** -46), flush=True) == 0x0080_0000
    assert encode(F32, least * (1 - Fraction(2) ** -46), "rz", flush=True) == 0


def test_clamps() -> None:
    negatives = (Special.NEGATIVE_INFINITY, Special.NEGATIVE_ZERO, Fraction(-1))
    assert {clamp_negative(value) for value in negatives} == {Fraction(0)}
    assert clamp_negative(Special.NAN) is Special.NAN
    assert clamp_negative(HALF) == HALF
    assert {clamp_unit(value) for value in (*negatives, Special.NAN)} == {Fraction(0)}
    assert [clamp_unit(value) for value in (HALF, Fraction(3), Special.POSITIVE_INFINITY)] == [HALF, 1, 1]
