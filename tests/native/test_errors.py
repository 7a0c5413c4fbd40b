"""What is not part of the native language is refused: where, what, and what to write instead."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ptxlab.native import (
    Pointer,
    address_of,
    array,
    atomic_load,
    boolean,
    cast,
    f32,
    f64,
    leading_zeros,
    native,
    s32,
    struct,
    table,
    u8,
    u16,
    u32,
    u64,
    u128,
)
from ptxlab.native.engine import compiled
from ptxlab.native.translate import TranslationError, emit

HUGE = (1, 1 << 40)
GONE = "is memory of this function, gone when it returns: let the caller pass it"


def plain(a: int) -> int:
    return a


@struct
class Pair:
    first: u32
    second: u32


@struct
@dataclass
class Halves:
    low: u32
    high: u32


@native
def mixes(a: u32, b: s32) -> u32:
    return u32(a + b)


@native
def narrows(a: u64) -> u32:
    return a


@native
def does_not_fit(a: u32) -> u32:
    return a & 0x1_0000_0000


@native
def too_big() -> u8:
    return 256


@native
def untyped() -> u32:
    total = 0
    total += 1
    return total


@native
def retyped(a: u32) -> u32:
    b = a
    b: u64 = 5
    return u32(b)


@native
def calls_python(a: u32) -> u32:
    return plain(a)


@native
def unknown(a: u32) -> u32:
    return nowhere(a)  # type: ignore[name-defined]  # noqa: F821


@native
def lists(a: u32) -> u32:
    return [a][0]


@native
def tries(a: u32) -> u32:
    try:
        return a
    finally:
        pass


@native
def iterates(a: Pointer[u32]) -> u32:
    for b in a:
        return b
    return 0


@native
def early(a: u32) -> u32:
    if a:
        return b  # noqa: F821
    b: u32 = 1
    return b


@native
def divides(a: u128) -> u128:
    return a // 3


@native
def slashes(a: u32) -> u32:
    return a / 3


@native
def no_field(a: Pair) -> u32:
    return a.third


@native
def no_dataclass(a: u32) -> u32:
    return Pair(first=a, second=a).first


@native
def half_a_record(a: u32) -> u32:
    return Halves(low=a).low


@native
def whole(a: Pointer[Pair]) -> None:
    a[0] = a[1]


@native
def indexes(a: u32) -> u32:
    return a[0]


@native
def big_table(a: u32) -> u32:
    return HUGE[a]


@native
def no_type(a: u32) -> u32:
    return leading_zeros(a, a)


@native
def extreme(a: u32) -> u32:
    return max(a, a, a)


@native
def atomic_boolean(a: Pointer[boolean]) -> boolean:
    return atomic_load(a)


@native
def few(a: u32) -> u32:
    return mixes(a)


@native
def numbers_as_booleans(a: u32, b: u32) -> u32:
    return u32(a and b)


@native
def inexact(a: f32) -> f32:
    return f32(a) * 0.1


@native
def lengths(a: u32) -> u32:
    return array(u32, a)[0]


@native
def casts(a: f32) -> u32:
    return cast(u32, a)


@native
def counts_down(a: u64) -> u64:
    total: u64 = 0
    for i in range(a, -1, -1):
        total += i
    return total


@native
def extends(a: u32, b: u64) -> u64:
    return b + a


@native
def product(a: u32, b: u32) -> u64:
    return u64(a * b)


@native
def hidden_sum(a: u32, b: u32) -> u64:
    c: u64 = (a + b) // 2
    return c


@native
def adds_boolean(a: u32, b: boolean) -> u32:
    return a + b


@native
def doubles(a: f32, b: f64) -> f64:
    return a * b


@native
def mask(count: u32) -> u64:
    return (1 << count) - 1


@native
def chosen(a: boolean) -> u32:
    return (1 if a else 2) + 1


@native
def returns_record(a: u32) -> Halves:
    return Halves(low=a, high=0)


@native
def returns_variable(a: u32, other: Halves) -> Halves:
    made = other
    while a > 0:
        if a > 7:
            return made
        made = Halves(low=a, high=0)
    return other


@native
def returns_field(a: u32) -> Pointer[u32]:
    made = Halves(low=a, high=0)
    return address_of(made.high)


@native
def returns_array(a: u32) -> tuple[u32, Pointer[u32]]:
    made, b = array(u32, 4), a
    return b, made


CASES: list[tuple[Any, str, str]] = [
    (mixes, "a + b", "`a + b` mixes u32 and s32: convert one, `u32(…)` or `s32(…)`"),
    (narrows, "return a", "`a` is u64, and u32 is needed: `u32(…)` converts"),
    (does_not_fit, "return a & 0x1", "`a & 4294967296`: 4294967296 does not fit u32; convert the other side first"),
    (too_big, "return 256", "256 does not fit u8; `u8(256)` cuts it"),
    (untyped, "total = 0", "`total` has no type yet: write `total: u32 = …`, or another type"),
    (retyped, "b: u64 = 5", "`b` is u32 already: a variable keeps its type"),
    (calls_python, "return plain(a)", "`plain` is not native: put `@native` above it"),
    (unknown, "return nowhere", "there is no `nowhere`"),
    (lists, "return [a]", "`[a]` is not part of the native language"),
    (tries, "try:", "`try` is not part of the native language"),
    (iterates, "for b in a", "`for` goes over `range(…)`, without `else`"),
    (early, "return b", "`b` is read before it is assigned"),
    (divides, "return a // 3", "128-bit integers are not divided: shift and subtract"),
    (slashes, "return a / 3", "`a / 3`: integers have + - * // % & | ^ << >>; integers divide with //"),
    (no_field, "return a.third", "`Pair` has no field `third`"),
    (no_dataclass, "return Pair", "`Pair` cannot be made here: put `@dataclass` under its `@struct`"),
    (half_a_record, "return Halves", "`Halves` takes each field by its name: low, high"),
    (whole, "a[0] = a[1]", "`a[0]` is a whole Pair: assign to its parts, or use `copy_bytes`"),
    (indexes, "return a[0]", "`a` is not a pointer: it cannot be indexed"),
    (big_table, "return HUGE", "1099511627776 in `HUGE` does not fit u32: `table(u64, (…))` makes others"),
    (no_type, "return leading", "`leading_zeros` begins with a type: `leading_zeros(u32, …)`"),
    (extreme, "return max", "`max` takes 2 arguments, all by position"),
    (atomic_boolean, "return atomic", "atomic operations are on integers and pointers, not on boolean"),
    (few, "return mixes", "`mixes` takes 2 arguments, all by position: (a, b)"),
    (numbers_as_booleans, "a and b", "`a` is not a boolean: compare it, as with `!= 0`"),
    (inexact, "0.1", "`f32(a) * 0.1`: 0.1 is not an f32; `f32(0.1)` rounds it"),
    (extends, "b + a", "`b + a` mixes u64 and u32: convert one, `u64(…)` or `u32(…)`"),
    (product, "a * b", "`a * b` is computed in u32 and may leave it: convert its operands to u64"),
    (hidden_sum, "a + b", "`(a + b) // 2` is computed in u32 and may leave it: convert its operands to u64"),
    (adds_boolean, "a + b", "`a + b` mixes u32 and boolean: convert one, `u32(…)` or `boolean(…)`"),
    (doubles, "a * b", "`a * b` mixes f32 and f64: convert one, `f32(…)` or `f64(…)`"),
    (mask, "1 << count", "`1 << count`: 1 has no type; write `u32(1)`, or another"),
    (chosen, "+ 1", "`(1 if a else 2) + 1` has no type: write `u32(…)` on one side, or another type"),
    (lengths, "return array", "the length of an array is a constant"),
    (casts, "return cast", "`cast` is between pointers and integers; `u32(…)` converts numbers"),
    (returns_record, "return Halves", f"`Halves(low=a, high=0)` {GONE}"),
    (returns_variable, "return made", f"`made` {GONE}"),
    (returns_field, "return address_of", f"`address_of(made.high)` {GONE}"),
    (returns_array, "return b, made", f"`made` {GONE}"),
    (counts_down, "range(a", "u64 cannot count down: count up, and subtract"),
]


@pytest.mark.parametrize(("function", "text", "message"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_refusals_name_the_line(function: Any, text: str, message: str) -> None:
    lines = Path(__file__).read_text().splitlines()
    start = function.__code__.co_firstlineno
    line = next(number for number in range(start, len(lines)) if text in lines[number - 1])
    with pytest.raises(TranslationError, match=f"^{re.escape(f'{__file__}:{line}: {message}')}$"):
        emit([function])


def test_what_outlives_the_function_is_returned() -> None:
    @native
    def larger(a: Halves, b: Pointer[Halves]) -> Halves:
        made = Halves(low=a.low, high=b[1].high)
        links = array(Pointer[Halves], 2)
        links[0] = b
        found = links[0] if made.low > made.high else b
        return a if a.low > found[0].low else b[0]

    assert "ret ptr" in emit([larger])


def test_a_parameter_without_a_type() -> None:
    @native
    def untyped(a) -> u32:  # type: ignore[no-untyped-def]
        return a

    @native
    def pythonic(a: int) -> u32:
        return a

    with pytest.raises(TranslationError, match="parameter `a` needs a type: `a: u32`"):
        emit([untyped])
    with pytest.raises(TranslationError, match="is not a native type; there are u8 to u128"):
        emit([pythonic])


def test_a_plain_function_is_not_compiled() -> None:
    with pytest.raises(TypeError, match="`plain` is not native: put `@native` above it"):
        compiled(plain)


def test_a_table_holds_what_fits() -> None:
    with pytest.raises(AssertionError, match="every entry fits u16"):
        table(u16, (1, 65536))
