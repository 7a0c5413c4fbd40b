"""The reference machine: its operators, and that it refuses what semantics must not do."""

from collections.abc import Callable

import pytest

from ptxlab.isa.exact import Exact
from ptxlab.isa.pattern import Pattern
from ptxlab.native import f32, native, s32, u32, u64

K = Exact()


def of(type: str, number: int) -> Pattern:
    return Pattern.of(type, number)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (of("u16", 0xFFFF) + 2, 1),
        (of("s32", 3) - 5, 0xFFFFFFFE),
        (of("s16", -1) * of("s16", 0x7FFF), 0x8001),
        (of("s32", -7) // 2, 0xFFFFFFFD),
        (of("s32", -7) % 2, 0xFFFFFFFF),
        (of("u32", -7) // 2, 0x7FFFFFFC),
        (of("s16", -2) >> 1, 0xFFFF),
        (of("b16", -2) >> of("u32", 1), 0x7FFF),
        (-of("s8", 5), 0xFB),
        (~of("pred", 1), 0),
        (of("s32", -1) < 0, 1),
        (of("u32", -1) < 0, 0),
        (of("f32", 0x7FC00000) == of("f32", 0x7FC00000), 0),
        (of("f32", 0x7FC00000) != of("f32", 0x7FC00000), 1),
        (of("f16", 0x8000) == of("f16", 0), 1),
        (of("f64", 0xFFF0 << 48) < of("f64", 0), 1),
        (K.cast(of("s8", -1), "u32"), 0xFFFFFFFF),
        (K.cast(of("u8", -1), "s32"), 0xFF),
        (K.pack((of("b16", 1), of("b16", 2)), "b32"), 0x20001),
        (K.unpack(of("b32", 0x20001), "b16")[1], 2),
        (K.select(of("pred", 0), of("u32", 1), -1), 0xFFFFFFFF),
        (K.arithmetic("fma", *(of("f16", 0x3C00),) * 3), 0x4000),
        (K.arithmetic("add", of("f32", 1), of("f32", 1), ftz=True), 0),
    ],
)
def test_operators(found: Pattern, expected: int) -> None:
    assert found.bits == expected


@pytest.mark.parametrize(
    "careless",
    [
        lambda: of("u32", 1) << 32,
        lambda: of("u64", 1) >> of("u32", 64),
        lambda: of("s32", 1) // 0,
        lambda: of("s32", -(2**31)) // -1,
        lambda: of("u32", 1) + of("u16", 1),
        lambda: of("u32", 1) < of("s32", 1),
        lambda: of("f32", 0) + of("f32", 0),
        lambda: of("u16x2", 0) + 1,
        lambda: K.select(of("u32", 1), of("u32", 1), 0),
        lambda: K.reinterpret(of("u32", 1), "u16"),
        lambda: bool(of("u32", 1) == 1),
    ],
)
def test_what_semantics_must_not_do_is_refused(careless: Callable[[], object]) -> None:
    with pytest.raises(AssertionError):
        careless()


@native
def kinds(a: s32, b: u32, c: u64, d: f32) -> u64:
    return u64(c + b - a + u64(d * 2))


def test_arguments_are_read_as_the_function_says() -> None:
    asked = of("u32", -1), of("s16", -1), of("u32", 7), of("f32", 0x3FC00000)
    found = K.call(kinds, *asked, type="u64")
    assert isinstance(found, Pattern)
    assert found.bits == 7 + 0xFFFFFFFF + 1 + 3
