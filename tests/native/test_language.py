"""Statements, memory and calls: machine code does what Python does, or what C would."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest
from tests.native.agreement import agree

from ptxlab.native import (
    Pointer,
    array,
    atomic_add,
    atomic_and,
    atomic_compare_exchange,
    atomic_exchange,
    atomic_load,
    atomic_or,
    atomic_store,
    boolean,
    call,
    copy_bytes,
    external,
    f64,
    fill_bytes,
    function_pointer,
    likely,
    native,
    s32,
    table,
    u8,
    u16,
    u32,
    u64,
    unlikely,
)
from ptxlab.native.engine import compile_text, compiled, load
from ptxlab.native.translate import callees, declaration_text, emit, text_of

PRIMES = (2, 3, 5, 7, 11, 13)
WIDE = table(u64, (1 << 63, 12345678901234567890))
LIMIT = 1000


@native
def collatz(n: u64) -> u32:
    """Steps until 1, or until it gets out of hand."""
    steps: u32 = 0
    while n != 1:
        if n % 2 == 0:
            n >>= 1
        elif n > LIMIT * LIMIT:
            break
        else:
            n = u64(3 * n + 1)
            steps += 1
            continue
        steps += 1
    return steps


@native
def classify(a: s32) -> u32:
    if a < 0:
        return 0
    if a == 0:
        return 1
    return 2 if a < 10 else 3 if a < 100 else 4


@native
def first_power_above(a: u32) -> u32:
    power: u32 = 1
    while True:
        if power > a:
            return power
        power *= 2
        assert power < 1 << 31, "only plain Python looks"


def test_while_and_if() -> None:
    agree(first_power_above, (0,), (1,), (1000,))
    agree(collatz, *((n,) for n in (1, 2, 3, 27, 97, 871)))
    agree(classify, *((n,) for n in (-5, 0, 1, 9, 10, 99, 100)))


@native
def gather(values: Pointer[u32], first: u32, count: u32, step: u32) -> u32:
    total: u32 = 0
    for i in range(count):
        total = u32(total * 31 + values[i])
    for i in range(first, count):
        values[i] = u32(values[i] + i)
    for i in range(0, count, 3):
        if values[i] == 9:
            continue
        total ^= values[i] << 3
    for i in range(0, count, step):
        total ^= i
    for lane in range(31, -1, -1):
        if lane < 4:
            break
        total = u32(total + lane)
    for i in range(count - 1, -1, -2):
        total = u32(total * 3 + i)
    for shift in range(-3, 4):
        total = u32(total + u32(shift))
    return total


def test_loops_over_ranges() -> None:
    agree(gather, ([1, 2, 9, 4, 5, 6, 9], 2, 7, 2), ([4], 0, 1, 5), ([5, 6], 2, 2, 1))


@native
def last_counted(count: u32) -> u32:
    i: u32 = 77
    for i in range(count):  # noqa: B007
        pass
    return i


def test_a_loop_leaves_its_variable_as_python_does() -> None:
    agree(last_counted, (0,), (1,), (5,))


@native
def in_between(values: Pointer[s32], i: s32, count: s32) -> boolean:
    found: boolean = (0 <= i < count and values[i] > 0) or i == -7
    return found and not values[i % count] >= 3


def test_conditions_stop_early() -> None:
    agree(in_between, *(([1, -2, 3], i, 3) for i in (-7, -1, 0, 1, 2, 3, 100)))


@native
def rotate(values: Pointer[u16]) -> u16:
    values[0], values[1], values[2] = values[1], values[2], values[0]
    a, b = values[0], values[1]
    a, b = b, a
    return a if a > b else b


@native
def split(a: u64) -> tuple[u32, u64, boolean]:
    return u32(a), a >> 32, a == 0


@native
def joined(a: u64) -> u64:
    low, high, zero = split(a)
    return u64(high << 8) + u64(low) + u64(zero)


def test_several_values_at_once() -> None:
    agree(rotate, ([3, 7, 5],), ([1, 2, 3],))
    agree(joined, (0,), (0x1234_5678_9ABC_DEF0,))


@native
def look_up(index: u32) -> u64:
    return u64(PRIMES[index % len(PRIMES)]) + (WIDE[index & 1] >> 1) + u64(sum_of(PRIMES, 3))


@native
def sum_of(values: Pointer[u32], count: u32) -> u32:
    total: u32 = 0
    for i in range(count):
        total += values[i]
    return total


def test_tables_are_constants() -> None:
    agree(look_up, *((index,) for index in range(8)))


@native
def scratch(seed: u32) -> u32:
    squares = array(u32, 8)
    for i in range(8):
        if i != seed:
            squares[i] = i * i
    return sum_of(squares, 8)


def test_arrays_on_the_stack_begin_with_zeros() -> None:
    agree(scratch, (3,), (8,))


@native
def factorial(n: u64) -> u64:
    return 1 if n < 2 else u64(n * factorial(n - 1))


@native(inline=True)
def square(a: u32) -> u32:
    return u32(a * a)


@native
def fourth_power(a: u32) -> u32:
    if unlikely(a == 7) or not likely(a != 9):
        return 1
    return square(square(a))


def test_calls() -> None:
    agree(factorial, (0,), (5,), (30,))
    agree(fourth_power, (3,), (7,), (9,), (0xFFFF,))
    assert set(callees(fourth_power)) == {square}
    assert "alwaysinline" in text_of(square)


@native
def twice(a: u32) -> u32:
    return u32(a * 2)


@native
def note(place: Pointer[u32], a: u32) -> None:
    place[0] = a


@native
def through(a: u32, place: Pointer[u32]) -> u32:
    call(None, function_pointer(note), place, u32(5))
    chosen = function_pointer(twice) if a & 1 else function_pointer(square)
    return call(u32, chosen, a)


def test_calls_through_pointers() -> None:
    place = [0]
    assert [compiled(through)(a, place) for a in (6, 7)] == [36, 14]
    assert place == [5]


@external
def malloc(size: u64) -> Pointer[u8]:
    raise NotImplementedError


@external
def free(memory: Pointer[u8]) -> None:
    raise NotImplementedError


@external(symbol="pow")
def power(a: f64, b: f64) -> f64:
    return a**b


@native
def borrow(count: u64) -> f64:
    memory = malloc(count)
    other = malloc(count)
    fill_bytes(memory, 3, count)
    copy_bytes(other, memory, count)
    last: u8 = other[count - 1]
    free(memory)
    free(other)
    return power(f64(last), 2.0)


def test_the_c_library_is_there() -> None:
    assert compiled(borrow)(100) == 9.0


@native
def contend(place: Pointer[u32], flags: Pointer[u8]) -> u32:
    before = atomic_add(place, 5)
    atomic_or(place, 0x100)
    atomic_and(place, 0x1FF)
    swapped = atomic_exchange(place + 1, 40)
    seen = atomic_compare_exchange(place + 1, 40, 41)
    missed = atomic_compare_exchange(place + 1, 40, 42)
    atomic_store(place + 2, atomic_load(place) + 1)
    atomic_add(flags, 255)
    return before + swapped * 10 + seen * 100 + missed * 10000


def test_atomic_operations() -> None:
    place, flags = [1, 2, 3], [1]
    assert compiled(contend)(place, flags) == 1 + 20 + 4000 + 410000
    assert (place, flags) == ([0x106, 41, 0x107], [0])


def test_functions_of_other_object_files() -> None:
    library = load([compile_text(emit([fourth_power], elsewhere=[square])), compile_text(emit([square]))])
    assert library.function(fourth_power)(3) == 81
    assert declaration_text(square).split() == ["declare", "i32", f'@"{square.__native__.symbol}"(i32)']  # type: ignore[attr-defined]


def test_text_can_be_added_to_other_text() -> None:
    symbol = fourth_power.__native__.symbol  # type: ignore[attr-defined]
    mine = f'define i32 @mine(i32 %a) {{\n  %r = call i32 @"{symbol}"(i32 %a)\n  ret i32 %r\n}}\n'
    library = load([compile_text(mine + emit([fourth_power, look_up], linkage="internal"))])
    assert ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(library.address("mine"))(3) == 81
    with pytest.raises(KeyError):
        library.address(symbol)


def test_random_functions_agree(tmp_path: Any) -> None:
    """Random expressions over all types, each step wrapped, in functions that a file holds."""
    chance = random.Random(20)
    types = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]

    def expression(depth: int, type: str) -> str:
        if depth == 0 or chance.random() < 0.1:
            return chance.choice([f"{type}(a)", f"{type}(b)", f"{type}(c)", f"{type}({chance.randrange(-300, 300)})"])
        left, right = expression(depth - 1, type), expression(depth - 1, type)
        kind = chance.randrange(8)
        if kind < 4:
            return f"{type}({left} {chance.choice(['+', '-', '*', '&', '|', '^'])} {right})"
        if kind == 4:
            return f"{type}({left} {chance.choice(['<<', '>>'])} (u8({right}) & 63))"
        if kind == 5:
            return f"({left} if {left} {chance.choice(['<', '<=', '==', '!='])} {right} else {right})"
        if kind == 6:
            other = expression(depth - 1, chance.choice(types))
            return f"{type}({other} {chance.choice(['//', '%'])} {chance.randrange(1, 100)})"
        return f"{type}({chance.choice('-~')}{left})"

    names = [f"f{number}" for number in range(40)]
    lines = ["from ptxlab.native import native, u8, u16, u32, u64, s8, s16, s32, s64", ""]
    for name in names:
        type = chance.choice(types)
        lines += ["@native", f"def {name}(a: u64, b: s32, c: u8) -> {type}:", f"    return {expression(4, type)}", ""]
    (tmp_path / "made.py").write_text("\n".join(lines))
    space: dict[str, Any] = {"__name__": "made"}
    exec(compile((tmp_path / "made.py").read_text(), str(tmp_path / "made.py"), "exec"), space)
    library = load([compile_text(emit([space[name] for name in names]))])
    for name in names:
        machine = library.function(space[name])
        for _ in range(20):
            case = (chance.getrandbits(64), s32(chance.getrandbits(32)), chance.getrandbits(8))
            assert machine(*case) == space[name](*case), (name, case)


@pytest.mark.parametrize("speed", [0, 1, 3])
def test_speeds(speed: int) -> None:
    assert compiled(collatz, speed=speed)(27) == collatz(27)
