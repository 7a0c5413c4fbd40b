"""Conversions on integers of fixed width, in Python and compiled, against exact values."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from ptxlab.native.engine import compiled
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
    UE5M3,
    UE8M0,
    Format,
    RandomBits,
    Rounding,
    Special,
    Value,
    clamp_negative,
    clamp_unit,
    conversion,
    decode,
    encode,
    round_to_integer,
)
from ptxlab.numbers.nan import converted_nan
from ptxlab.numbers.parameters import FORMAT, RN, ROUNDING, RZ, modifiers

from .samples import sample

FUNDAMENTAL = [F16, BF16, F32, F64]
NARROW = [E5M2, E4M3, E3M2, E2M3, E2M1, UE8M0, UE5M3]
DIRECTED: list[Rounding] = ["rn", "rz", "rm", "rp"]
# What cvt has: from a fundamental format to another or to a narrow one, and from a narrow one to 16 bits.
PAIRS = [(a, b) for a in FUNDAMENTAL for b in FUNDAMENTAL]
PAIRS += [(a, b) for a in (F32, F16, BF16) for b in [*NARROW, TF32]] + [(a, b) for a in NARROW for b in (F16, BF16)]


def name(parameter: object) -> str | None:
    return parameter.name if isinstance(parameter, Format) else None


def as_python(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def value_of(format: Format, bits: int) -> Value:
    return decode(format, bits << format.padding)


WAYS = pytest.mark.parametrize("way", [as_python, compiled])


@WAYS
def test_between_formats(way: Callable[..., Any]) -> None:
    function = way(conversion.convert)
    generator = random.Random(11)
    for source, destination in PAIRS:
        for rounding in [*DIRECTED, "rna"]:
            if rounding == "rn" and destination is UE8M0:  # there is no such conversion
                continue
            for _ in range(40):
                bits = sample(source, generator)
                value = value_of(source, bits)
                flags = {"satfinite": destination.nan is None or generator.random() < 0.4}
                if destination.signed:
                    flags["relu"] = flags["satfinite"] and generator.random() < 0.2
                if destination in FUNDAMENTAL and not flags["satfinite"]:
                    flags["sat"] = generator.random() < 0.2
                found = function(
                    bits, FORMAT[source.name], FORMAT[destination.name], ROUNDING[rounding], modifiers(**flags)
                )
                expected = expectation(source, destination, rounding, bits, value, flags)
                assert found == expected, (source.name, destination.name, rounding, flags, hex(bits))


def expectation(
    source: Format, destination: Format, rounding: Rounding, bits: int, value: Value, flags: dict[str, bool]
) -> int:
    if flags.get("sat"):
        value = clamp_unit(value)
    if flags.get("relu"):
        value = clamp_negative(value)
    if value is Special.NAN and source in FUNDAMENTAL and destination in FUNDAMENTAL:
        return converted_nan(source, destination, bits)
    return encode(destination, value, rounding, saturate=flags["satfinite"]) >> destination.padding


@WAYS
def test_ftz_is_about_f32(way: Callable[..., Any]) -> None:
    function = way(conversion.convert)
    subnormal, ftz = 0x8040_0000, modifiers(ftz=True)
    assert function(subnormal, FORMAT["f32"], FORMAT["f64"], ROUNDING["rn"], ftz) == F64.sign_bit
    assert function(subnormal, FORMAT["f32"], FORMAT["f16"], ROUNDING["rm"], ftz) == 0x8001
    assert function(0x8001, FORMAT["f16"], FORMAT["f32"], ROUNDING["rn"], ftz) == 0xB380_0000
    assert function(0x0001, FORMAT["bf16"], FORMAT["f32"], ROUNDING["rn"], ftz) == 0
    assert function(0x7FC1, FORMAT["bf16"], FORMAT["f32"], ROUNDING["rn"], ftz) == F32.nan
    assert function(0x3800_0000_0000_0000, FORMAT["f64"], FORMAT["f32"], ROUNDING["rn"], ftz) == 0
    assert function(0xFFC0_0005, FORMAT["f32"], FORMAT["f64"], ROUNDING["rn"], ftz) == 0x7FFF_FFFF_E000_0000


@WAYS
@pytest.mark.parametrize("format", [F16, BF16, E5M2, E4M3, E3M2, E2M3, E2M1], ids=name)
def test_stochastic_rounding(way: Callable[..., Any], format: Format) -> None:
    function = way(conversion.convert_randomly)
    generator = random.Random(format.name)
    for _ in range(300):
        bits, count, given = sample(F32, generator), generator.choice([8, 13, 16]), generator.getrandbits(32)
        random_bits = RandomBits(given & ((1 << count) - 1), count)
        expected = encode(format, decode(F32, bits), "rs", saturate=True, random=random_bits)
        found = function(bits, FORMAT[format.name], ROUNDING["rs"], modifiers(satfinite=True), given, count)
        assert found == expected, (hex(bits), hex(given), count)


@WAYS
@pytest.mark.parametrize("format", FUNDAMENTAL, ids=name)
def test_to_integers(way: Callable[..., Any], format: Format) -> None:
    function = way(conversion.to_integer)
    generator = random.Random(format.name)
    for _ in range(150):
        bits = sample(format, generator)
        value = decode(format, bits)
        for rounding in DIRECTED:
            for width in (8, 16, 32, 64):
                for signed in (False, True):
                    low, high = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
                    found = function(bits, FORMAT[format.name], ROUNDING[rounding], 0, width, signed)
                    assert found % (1 << width) == limited(format, value, rounding, width, low, high) % (1 << width)


def limited(format: Format, value: Value, rounding: Rounding, width: int, low: int, high: int) -> int:
    if isinstance(value, Special):
        nan = 1 << (width - 1) if format is F64 or width == 64 else 0
        found = {Special.NAN: nan, Special.NEGATIVE_ZERO: 0, Special.NEGATIVE_INFINITY: low}
        return found.get(value, high)
    return max(low, min(round_to_integer(value, rounding), high))


@WAYS
@pytest.mark.parametrize("format", FUNDAMENTAL, ids=name)
def test_from_integers(way: Callable[..., Any], format: Format) -> None:
    unsigned, signed = way(conversion.from_unsigned), way(conversion.from_signed)
    generator = random.Random(format.name)
    for _ in range(300):
        magnitude = generator.getrandbits(generator.randint(0, 64)) & -1 << generator.randint(0, 60)
        number = generator.choice([-1, 1]) * (magnitude >> 1)
        for rounding in DIRECTED:
            rest = FORMAT[format.name], ROUNDING[rounding]
            assert unsigned(magnitude, *rest, 0) == encode(format, Fraction(magnitude), rounding)
            assert signed(number, *rest, 0) == encode(format, Fraction(number), rounding)
            clamped = clamp_unit(Fraction(number))
            assert signed(number, *rest, modifiers(sat=True)) == encode(format, clamped, rounding)


@WAYS
@pytest.mark.parametrize("format", FUNDAMENTAL, ids=name)
def test_to_whole_numbers(way: Callable[..., Any], format: Format) -> None:
    function = way(conversion.to_whole)
    generator = random.Random(format.name)
    for _ in range(300):
        bits = sample(format, generator)
        value = decode(format, bits)
        for rounding in DIRECTED:
            found = function(bits, FORMAT[format.name], ROUNDING[rounding], 0)
            if isinstance(value, Special):
                assert found == bits or value is Special.NAN
                continue
            whole = round_to_integer(value, rounding)
            zero = format.sign_bit if value < 0 else 0
            assert found == (encode(format, Fraction(whole)) if whole else zero), (rounding, hex(bits))


@WAYS
def test_fixed_point(way: Callable[..., Any]) -> None:
    to, back = way(conversion.to_s2f6), way(conversion.from_s2f6)
    generator = random.Random(5)
    for _ in range(500):
        bits, factor = sample(F32, generator), 127 + generator.randint(-8, 8)
        value = decode(F32, bits)
        scaled = value if isinstance(value, Special) else value / Fraction(2) ** (factor - 127)
        assert to(bits, FORMAT["f32"], factor, RN, 0) == encode(S2F6, scaled)
        assert to(bits, FORMAT["f32"], factor, RZ, 0) == encode(S2F6, scaled, "rz")
        relu = 0x7F if value is Special.NAN else encode(S2F6, clamp_negative(scaled))
        assert to(bits, FORMAT["f32"], factor, RN, modifiers(relu=True)) == relu
    for bits in range(256):
        value = decode(S2F6, bits)
        assert isinstance(value, Fraction)
        assert back(bits, 130, 0) == encode(BF16, value * 8)


@WAYS
def test_scale_factors(way: Callable[..., Any]) -> None:
    function = way(conversion.scale)
    generator = random.Random(6)
    for _ in range(500):
        bits, factor = sample(BF16, generator), generator.randrange(255)
        value = decode(BF16, bits)
        scaled = value if isinstance(value, Special) else value * Fraction(2) ** (factor - 127)
        for satfinite in (False, True):
            expected = encode(BF16, scaled, saturate=satfinite)
            assert function(bits, factor, FORMAT["bf16"], modifiers(satfinite=satfinite)) == expected
    assert function(0x3F80, 255, FORMAT["bf16"], 0) == BF16.nan


def test_formats_are_numbered_in_their_order() -> None:
    floats = [format.name for format in FORMATS.values() if isinstance(format, Format)]
    assert list(FORMAT) == floats
    assert [FORMAT[name] for name in floats] == list(range(len(floats)))
