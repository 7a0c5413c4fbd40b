"""The value of every pattern, against numpy and ml_dtypes."""

from fractions import Fraction

import ml_dtypes
import numpy
import pytest

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
    Special,
    Value,
    decode,
)

SAME_IN_NUMPY = [
    (F16, numpy.float16),
    (BF16, ml_dtypes.bfloat16),
    (E5M2, ml_dtypes.float8_e5m2),
    (E4M3, ml_dtypes.float8_e4m3fn),
    (E3M2, ml_dtypes.float6_e3m2fn),
    (E2M3, ml_dtypes.float6_e2m3fn),
    (E2M1, ml_dtypes.float4_e2m1fn),
    (UE8M0, ml_dtypes.float8_e8m0fnu),
]


def exact(number: float) -> Value:
    """The value of a Python float."""
    if number != number:
        return Special.NAN
    if number in (float("inf"), float("-inf")):
        return Special.POSITIVE_INFINITY if number > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if str(number) == "-0.0" else Fraction(number)


@pytest.mark.parametrize(("format", "dtype"), SAME_IN_NUMPY, ids=[format.name for format, _ in SAME_IN_NUMPY])
def test_every_pattern_has_its_value(format: Format, dtype: type) -> None:
    container = numpy.uint16 if format.width == 16 else numpy.uint8
    patterns = numpy.arange(1 << format.width, dtype=container)
    expected = [exact(float(number)) for number in patterns.view(dtype)]
    assert [decode(format, bits) for bits in range(1 << format.width)] == expected


@pytest.mark.parametrize(("format", "dtype"), [(F32, numpy.float32), (F64, numpy.float64)], ids=["f32", "f64"])
def test_wide_patterns_have_their_value(format: Format, dtype: type) -> None:
    random = numpy.random.default_rng(1)
    count = format.width // 8
    numbers = numpy.frombuffer(random.bytes(2000 * count), dtype=f"u{count}")
    fields = numpy.arange(0, 1 << 12, dtype=f"u{count}") << (format.width - 12)
    with numpy.errstate(invalid="ignore"):  # signalling NaNs
        for bits in numpy.concatenate([numbers, fields, fields + 1]):
            assert decode(format, int(bits)) == exact(float(bits.view(dtype)))


def test_tf32_is_an_f32_without_its_low_bits() -> None:
    for bits in range(0, 1 << 32, 0x10_2345):
        kept = bits >> 13 << 13
        if decode(F32, kept) is not Special.NAN:
            assert decode(TF32, bits) == decode(F32, kept)


def test_ue4m3_is_an_e4m3_without_a_sign() -> None:
    assert [decode(UE4M3, bits) for bits in range(0x80)] == [decode(E4M3, bits) for bits in range(0x80)]


def test_s2f6_counts_in_64ths() -> None:
    assert [decode(S2F6, bits) for bits in (0x00, 0x01, 0x7F, 0x80, 0xFF)] == [
        Fraction(0),
        Fraction(1, 64),
        Fraction(127, 64),
        Fraction(-2),
        Fraction(-1, 64),
    ]


@pytest.mark.parametrize(
    ("format", "width", "largest", "least"),
    [
        (F64, 64, Fraction(2) ** 1024 - Fraction(2) ** 971, Fraction(2) ** -1074),
        (F32, 32, Fraction(2) ** 128 - Fraction(2) ** 104, Fraction(2) ** -149),
        (TF32, 32, Fraction(2) ** 128 - Fraction(2) ** 117, Fraction(2) ** -136),
        (BF16, 16, Fraction(2) ** 128 - Fraction(2) ** 120, Fraction(2) ** -133),
        (F16, 16, Fraction(65504), Fraction(2) ** -24),
        (E5M2, 8, Fraction(57344), Fraction(2) ** -16),
        (E4M3, 8, Fraction(448), Fraction(2) ** -9),
        (UE4M3, 7, Fraction(448), Fraction(2) ** -9),
        (E3M2, 6, Fraction(28), Fraction(1, 16)),
        (E2M3, 6, Fraction(15, 2), Fraction(1, 8)),
        (E2M1, 4, Fraction(6), Fraction(1, 2)),
    ],
    ids=lambda parameter: parameter.name if isinstance(parameter, Format) else None,
)
def test_limits_are_those_of_the_specifications(format: Format, width: int, largest: Fraction, least: Fraction) -> None:
    assert format.width == width
    assert decode(format, format.largest) == largest
    assert decode(format, 1 << format.padding) == least


def test_ue8m0_spans_all_powers_of_two_and_has_no_zero() -> None:
    assert decode(UE8M0, 0x00) == Fraction(2) ** -127
    assert decode(UE8M0, 0x7F) == 1
    assert decode(UE8M0, UE8M0.largest) == Fraction(2) ** 127


def test_canonical_nans_are_nans() -> None:
    floating = [format for format in FORMATS.values() if not isinstance(format, FixedPoint)]
    assert all(decode(format, format.nan) is Special.NAN for format in floating if format.nan is not None)
    assert {format.name for format in floating if format.nan is None} == {"e3m2", "e2m3", "e2m1"}
