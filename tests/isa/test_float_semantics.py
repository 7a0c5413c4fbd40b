"""The semantics of the floating-point chapters and of cvt: against an H200, and against exact values.

`h200_floats.txt` holds what an H200 returned (driver 580.159, code of ptxas 13.4): a spelling, then operands and result
of a few cases. What that chip does not have is compared with values that are rounded exactly.
"""

import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ptxlab.isa.exact import evaluate
from ptxlab.isa.form import Form
from ptxlab.isa.operand import expect
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.table import forms
from ptxlab.numbers import (
    BF16,
    F16,
    F32,
    FORMATS,
    S2F6,
    Format,
    RandomBits,
    Rounding,
    Special,
    Value,
    arithmetic,
    clamp_negative,
    decode,
    encode,
)

from ..numbers.samples import sample
from .sample import Choice

CHAPTERS = ("floating_point", "half", "mixed_precision", "alternate", "convert")
MEASURED = [line.split() for line in Path(__file__).with_name("h200_floats.txt").read_text().splitlines()]
WITHOUT_SEMANTICS = {
    # ptxas takes these, which are not in the manual, and makes something else of them.
    "fma.rnd{.relu}.type d, a, b, c",
    "fma.rnd.oob{.relu}.type d, a, b, c",
    # The manual leaves something open.
    "mul.dtype.atype.ctype d, a, c",
    *(f"{name}.rnd.ftz.dtype.atype.ctype d, a, c" for name in ("add", "sub", "mul")),
}


@cache
def spelled() -> dict[str, tuple[Form, Choice]]:
    """Every instruction of the chapters."""
    return {
        form.spell(choice): (form, choice)
        for form in forms()
        if form.chapter in CHAPTERS
        for choice in form.spellings()
    }


def run(spelling: str, *operands: int | tuple[int, ...]) -> int:
    """The result of an instruction, as bits."""
    form, choice = spelled()[spelling]
    m = form.modifiers(choice)
    read = [expected for expected in expect(form, m) if expected.role == "read"]
    values: dict[str, Pattern | tuple[Pattern, ...]] = {}
    for expected, bits in zip(read, operands, strict=True):
        assert expected.type is not None
        single = isinstance(bits, int)
        parts = tuple(Pattern(expected.type, part) for part in ((bits,) if isinstance(bits, int) else bits))
        values[expected.name] = parts[0] if single else parts
    (result,) = evaluate(form, m, values)
    return result.bits


def test_every_form_has_semantics() -> None:
    missing = {form.syntax for form in forms() if form.chapter in CHAPTERS and form.semantics is None}
    assert missing == WITHOUT_SEMANTICS


@pytest.mark.parametrize("head", sorted({line[0].partition(".")[0] for line in MEASURED}))
def test_results_are_those_of_an_h200(head: str) -> None:
    for spelling, *cases in MEASURED:
        if spelling.partition(".")[0] != head:
            continue
        for case in cases:
            operands, _, result = case.partition("=")
            found = run(spelling, *(int(bits, 16) for bits in operands.split(",")))
            assert f"{found:x}" == result, f"{spelling} {case}"


def test_the_nan_beyond_a_tensor_makes_a_product_zero() -> None:
    for type, one in (("f16", 0x3C00), ("bf16", 0x3F80)):
        nan = {"f16": F16, "bf16": BF16}[type].nan
        assert run(f"fma.rn.oob.{type}", 0x7FF7, one, one) == run(f"fma.rn.oob.{type}", one, 0xFFF7, one) == 0
        assert run(f"fma.rn.oob.{type}", one, one, 0x7FF7) == nan
        assert run(f"fma.rn.oob.{type}", 0x7FF6, one, one) == nan
        assert run(f"fma.rn.{type}", 0x7FF7, one, one) == nan
    assert run("fma.rn.oob.f16x2", 0x7FF7_3C00, 0x3C00_3C00, 0x3C00_3C00) == 0x0000_4000


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_pairs_of_f32(operation: str) -> None:
    generator = random.Random(operation)
    for rounding in ("rn", "rz", "rm", "rp"):
        for ftz in (False, True):
            for _ in range(20):
                lanes = [[sample(F32, generator) for _ in range(3 if operation == "fma" else 2)] for _ in range(2)]
                expected = [getattr(arithmetic, operation)(F32, *lane, rounding, ftz=ftz) for lane in lanes]
                packed = [low | high << 32 for low, high in zip(*lanes, strict=True)]
                found = run(f"{operation}.{rounding}{'.ftz' * ftz}.f32x2", *packed)
                assert found == expected[0] | expected[1] << 32


@pytest.mark.parametrize("operation", ["add", "sub", "fma"])
@pytest.mark.parametrize("format", [F16, BF16], ids=["f16", "bf16"])
def test_mixed_precision(operation: str, format: Format) -> None:
    generator = random.Random(operation + format.name)
    for rounding in ("rn", "rz", "rm", "rp"):
        for sat in (False, True):
            for _ in range(20):
                narrow = [sample(format, generator) for _ in range(2 if operation == "fma" else 1)]
                last = sample(F32, generator)
                wide = [encode(F32, decode(format, bits)) for bits in narrow]
                expected = getattr(arithmetic, operation)(F32, *wide, last, rounding, sat=sat)
                assert run(f"{operation}.{rounding}{'.sat' * sat}.f32.{format.name}", *narrow, last) == expected


def pairs(lanes: list[list[int]], sizes: list[int]) -> list[int]:
    """Operands of two lanes, each operand with elements of its size."""
    return [low | high << size for low, high, size in zip(*lanes, sizes, strict=True)]


@pytest.mark.parametrize("operation", ["add", "sub", "fma"])
@pytest.mark.parametrize("format", [F16, BF16], ids=["f16", "bf16"])
def test_mixed_precision_of_pairs(operation: str, format: Format) -> None:
    generator = random.Random(operation + format.name)
    others = 2 if operation == "fma" else 1
    for rounding in ("rn", "rz", "rm", "rp"):
        for _ in range(20):
            lanes = [[sample(format, generator), *(sample(F32, generator) for _ in range(others))] for _ in range(2)]
            results = [
                getattr(arithmetic, operation)(F32, encode(F32, decode(format, first)), *rest, rounding)
                for first, *rest in lanes
            ]
            spelling = f"{operation}.{rounding}.f32x2.{format.name}x2{'.f32x2' * others}"
            found = run(spelling, *pairs(lanes, [16, *[32] * others]))
            assert found == results[0] | results[1] << 32, (spelling, lanes)


@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_pairs_that_are_cut(operation: str) -> None:
    generator = random.Random(operation)
    for _ in range(100):
        lanes = [[sample(F32, generator) for _ in range(2)] for _ in range(2)]
        sums = [getattr(arithmetic, operation)(F32, *lane, "rz") for lane in lanes]
        low, high = (encode(BF16, decode(F32, bits), "rz") for bits in sums)
        assert run(f"{operation}.rz.bf16x2.f32x2.f32x2", *pairs(lanes, [32, 32])) == low | high << 16


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_packed_floats_of_a_byte_and_less(operation: str) -> None:
    """Against fractions, where all numbers are finite and the result is not zero."""
    generator = random.Random(operation)
    for spelling, (form, _) in spelled().items():
        name, *words = spelling.split(".")
        if form.chapter != "alternate" or name != operation or generator.random() < 0.7:
            continue
        result, *types = (word for word in words if word.endswith("x4"))
        formats = [*types, result] if name != "mul" else types
        lanes = []
        while len(lanes) < 4:
            lane = [sample(narrow_format(type), generator) for type in formats]
            values = [decode(narrow_format(type), bits) for type, bits in zip(formats, lane, strict=True)]
            if all(isinstance(value, Fraction) for value in values) and exactly(name, values) != 0:
                lanes.append((lane, exactly(name, values)))
        size = [4 if type == "e2m1x4" else 8 for type in formats]
        operands = [
            sum(lane[at] << size[at] * index for index, (lane, _) in enumerate(lanes)) for at in range(len(formats))
        ]
        saturate = "satfinite" in words
        expected = [encode(narrow_format(result), value, saturate=saturate) for _, value in lanes]
        assert run(spelling, *operands) == packed(expected, narrow_format(result)), (spelling, operands)


def narrow_format(type: str) -> Format:
    format = FORMATS[type.removesuffix("x4").removesuffix("p4")]
    assert isinstance(format, Format)
    return format


def exactly(operation: str, values: list[Any]) -> Fraction:
    match operation:
        case "add":
            return Fraction(values[0] + values[1])
        case "sub":
            return Fraction(values[0] - values[1])
        case "mul":
            return Fraction(values[0] * values[1])
    return Fraction(values[0] * values[1] + values[2])


@pytest.mark.parametrize(
    ("spelling", "operands", "result"),
    [
        ("add.e4m3x4.e4m3x4", (0x7E7E_7F00, 0x7E01_0080), 0x7F7E_7F00),  # beyond the largest: a NaN; 0 + -0 is 0
        ("add.satfinite.e4m3x4.e4m3x4", (0x7E7E_7F00, 0x7E01_0080), 0x7E7E_7F00),
        ("add.e5m2x4.e5m2x4", (0x7B7C_7C80, 0x7B7B_FC80), 0x7C7C_7F80),  # infinities, and their difference
        ("add.satfinite.e5m2x4.e5m2x4", (0x7B7C_7C80, 0x7B7B_FC80), 0x7B7B_7F80),
        ("mul.e5m2x4.ue8m0x4.ue8m0x4", (0xFF00_FE7F, 0x7F00_FE80), 0x7F00_7C40),
        ("mul.e5m2x4.e2m1p4x4.e3m2x4", (0xF2E2_1202, 0xCCCC_CC0C), 0x3C3C_3C3C),  # unused bits are not read
    ],
)
def test_special_values_of_packed_floats(spelling: str, operands: tuple[int, ...], result: int) -> None:
    assert f"{run(spelling, *operands):x}" == f"{result:x}"


@pytest.mark.parametrize("operation", ["min", "max"])
def test_the_least_and_the_greatest_of_three(operation: str) -> None:
    generator = random.Random(operation)
    for ftz in (False, True):
        for nan in (False, True):
            for abs in (False, True):
                for _ in range(40):
                    operands = [sample(F32, generator) for _ in range(3)]
                    expected = getattr(arithmetic, operation)(F32, *operands, ftz=ftz, nan=nan, abs=abs)
                    spelling = f"{operation}{'.ftz' * ftz}{'.NaN' * nan}{'.abs' * abs}.f32"
                    form = f"{operation}{{.ftz}}{{.NaN}}{{.abs}}.f32 d, a, b, c"
                    assert run_form(form, spelling, *operands) == expected, [hex(bits) for bits in operands]


def run_form(syntax: str, spelling: str, *operands: int) -> int:
    """The result of an instruction whose spelling alone does not say how many operands it has."""
    (form,) = (form for form in forms() if form.syntax == syntax)
    (choice,) = (choice for choice in form.spellings() if form.spell(choice) == spelling)
    values = {name: Pattern.of("f32", bits) for name, bits in zip("abc", operands, strict=True)}
    (result,) = evaluate(form, form.modifiers(choice), values)
    return result.bits


def narrow_conversions() -> Iterator[tuple[str, Form, Choice]]:
    """The packed conversions, but for those that are about fixed point or rounded by random bits, and some `.pzo`."""
    for spelling, (form, choice) in spelled().items():
        words = spelling.split(".")
        if words[0] == "cvt" and "x2" in words[-2] + words[-1] and not {"s2f6x2", "rs"} & set(words):
            yield spelling, form, choice


def packed(lanes: Iterable[int], format: Format) -> int:
    size = {4: 4, 6: 8, 8: 8, 16: 16}[format.width]
    return sum(bits << size * index for index, bits in enumerate(lanes))


def converted(format: Format, value: Value, rounding: Rounding, words: list[str]) -> int:
    if "relu" in words:
        value = clamp_negative(value)
    bits = encode(format, value, rounding, saturate="satfinite" in words)
    return 0 if "pzo" in words and bits == format.sign_bit else bits


def test_a_zero_without_a_sign() -> None:
    """`.pzo` of single numbers, and of what rounds to zero."""
    for spelling, (form, _) in spelled().items():
        if ".pzo." not in spelling or len(form.operands) != 2 or not spelling.endswith(".f32"):
            continue
        for bits in (0x8000_0000, 0x8000_0001, 0xBF80_0000, 0x0000_0000, 0x7FC0_0000):
            without = run(spelling.replace(".pzo", ""), bits)
            sign = 0x8000_0000 if "tf32" in spelling else 0x8000
            assert run(spelling, bits) == (0 if without == sign else without), spelling


def test_packed_conversions() -> None:
    generator = random.Random(3)
    for spelling, form, _ in narrow_conversions():
        words = spelling.split(".")
        destination, source = (FORMATS[word.removesuffix("x2")] for word in words if word.removesuffix("x2") in FORMATS)
        assert isinstance(destination, Format)
        assert isinstance(source, Format)
        scaled, divided = "scaled::n2::ue8m0" in words, "scaled::n1::ue8m0" in words
        rounding: Rounding = "rz" if "rz" in words else "rp" if "rp" in words else "rn"
        for _ in range(12):
            lanes = [sample(source, generator) for _ in range(2)]
            least = 1 << source.mantissa_bits if divided else 0  # dividing flushes subnormal numbers
            read = [bits if bits & ~source.sign_bit >= least else bits & source.sign_bit for bits in lanes]
            factors = [127 + generator.randint(-9, 9) if scaled else 127 for _ in range(2)]
            factor = 127 + generator.randint(-9, 9) if divided else 127
            values = [
                value if isinstance(value, Special) else value * Fraction(2) ** (own - factor)
                for value, own in zip((decode(source, bits) for bits in read), factors, strict=True)
            ]
            expected = packed((converted(destination, value, rounding, words) for value in values), destination)
            operands = [lanes[1], lanes[0]] if source is F32 else [packed(lanes, source)]
            if scaled:
                operands.append(factors[0] | factors[1] << 8)
            elif divided:
                operands.append(factor)
            elif form.present.get("scale_factor"):
                operands = operands[: 2 if source is F32 else 1]
            assert run(spelling, *operands) == expected, (spelling, [hex(bits) for bits in operands])


def test_stochastic_rounding_of_pairs() -> None:
    generator = random.Random(4)
    for format, count in ((F16, 13), (BF16, 16)):
        for _ in range(60):
            high, low, given = sample(F32, generator), sample(F32, generator), generator.getrandbits(32)
            parts = [(low, given), (high, given >> 16)]
            expected = [
                encode(format, decode(F32, bits), "rs", random=RandomBits(part & ((1 << count) - 1), count))
                for bits, part in parts
            ]
            assert run(f"cvt.rs.{format.name}x2.f32", high, low, given) == expected[0] | expected[1] << 16


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])
def test_stochastic_rounding_of_four(name: str) -> None:
    generator = random.Random(name)
    format = FORMATS[name]
    assert isinstance(format, Format)
    for _ in range(60):
        operands = tuple(sample(F32, generator) for _ in range(4))
        given = generator.getrandbits(32)
        shifts, count = ((24, 8, 16, 0), 8) if name == "e2m1" else ((16, 16, 0, 0), 16)
        lanes = [
            encode(format, decode(F32, bits), "rs", saturate=True,
                   random=RandomBits(given >> shift & ((1 << count) - 1), count))
            for bits, shift in zip(operands, shifts, strict=True)
        ]  # fmt: skip
        assert run(f"cvt.rs.satfinite.{name}x4.f32", operands, given) == packed(reversed(lanes), format)


def test_fixed_point() -> None:
    generator = random.Random(5)
    for _ in range(100):
        high, low, factor = sample(F32, generator), sample(F32, generator), 127 + generator.randint(-5, 5)
        power = Fraction(2) ** (factor - 127)
        expected = [
            encode(S2F6, value if isinstance(value, Special) else value / power)
            for value in (decode(F32, low), decode(F32, high))
        ]
        factors = factor | factor << 8
        found = run("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", high, low, factors)
        assert found == expected[0] | expected[1] << 8
        cut = run("cvt.rz.satfinite.s2f6x2.bf16x2", 0xBF81_3F81)  # ±1.0078125 is 64.5 64ths
        assert cut == 0xC040
        back = run("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", found, factors)
        values = (decode(S2F6, bits) for bits in expected)
        assert back == packed((encode(BF16, value * power) for value in values if isinstance(value, Fraction)), BF16)


@pytest.mark.parametrize(
    ("spelling", "operands", "result"),
    [
        ("cvt.pack.sat.s16.s32", (0x0001_0000, 0xFFFF_0000), 0x7FFF_8000),
        ("cvt.pack.sat.u16.s32", (0xFFFF_FFFF, 0x0001_0000), 0x0000_FFFF),
        ("cvt.pack.sat.u8.s32.b32", (1, 300, 0xAABB_CCDD), 0xCCDD_01FF),
        ("cvt.pack.sat.s4.s32.b32", (0xFFFF_FFF0, 100, 0x0000_0012), 0x0000_1287),
        ("cvt.pack.sat.u2.s32.b32", (2, 9, 0xF000_0001), 0x0000_001B),
        ("cvt.sat.s8.u32", (0xFFFF_FFFF,), 0x7F),
        ("cvt.sat.u64.s64", (1 << 63,), 0),
    ],
)
def test_integers(spelling: str, operands: tuple[int, ...], result: int) -> None:
    assert run(spelling, *operands) == result


@pytest.mark.parametrize("old", ["rcp.f32", "sqrt.f32", "rsqrt.f32", "sin.f32", "cos.f32", "lg2.f32", "ex2.f32"])
def test_before_ptx_1_4_the_approximate_instructions_flush(old: str) -> None:
    today = old.replace(".f32", ".approx.ftz.f32")
    for bits in (0x0040_0000, 0x3F80_0001, 0x7F00_0000):
        assert run(old, bits) == run(today, bits)
