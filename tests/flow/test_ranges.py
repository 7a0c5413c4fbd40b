"""Steps on bits are what the reference machine computes; steps on ranges contain that for all their members."""

import operator
import random
from typing import Any

import pytest

from ptxlab.flow.numbers import LOGIC, Choice, Number
from ptxlab.flow.ranges import DECISIONS, RANGES, bounds_of, function_of, wrap
from ptxlab.flow.steps import PREDICATE, Step
from ptxlab.isa.exact import Exact
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.types import Type, type_named

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
             "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
             "<": operator.lt, "<=": operator.le, "==": operator.eq}  # fmt: skip
TYPES = [type_named(name) for name in ("u8", "s8", "u16", "s16", "u32", "s32", "b32", "u64", "s64")]


def pick(rng: random.Random, type: Type) -> Number:
    """A constant or a range, often small or at an end of the type."""
    size = 1 << type.width
    low = rng.choice([0, 1, -1, -3, size // 2, size // 2 - 2, size - 2, rng.randrange(size), rng.randrange(40)])
    length = rng.choice([0, 0, 1, 2, 3, 7, 40, size // 4, size - 1])
    return Number(low, low + length)


def member(rng: random.Random, number: Number) -> int:
    return rng.choice([number.low, number.high, rng.randint(number.low, number.high)])


def is_in(bits: int, bounds: tuple[int, int], type: Type) -> bool:
    return wrap(bits - bounds[0], type) <= bounds[1] - bounds[0]


def result(step: Step, bits: list[int]) -> Pattern:
    """What the reference machine makes of bits; may fail for what no semantic function does."""
    machine, values = Exact(), [Pattern.of(type, one) for one, type in zip(bits, step.read_as, strict=True)]
    found: Any
    if step.operation == "cast":
        found = machine.cast(values[0], step.type.name)
    elif step.operation == "part":
        found = machine.unpack(values[0], step.type.name)[step.detail // step.type.width]
    elif step.operation == "pack":
        found = machine.pack(values, step.type.name)
    else:
        found = OPERATORS[step.operation](*values)
    assert isinstance(found, Pattern)
    return found


def steps(operation: str) -> list[Step]:
    if operation == "cast":
        return [Step("cast", type, (0,), of) for type in TYPES for of in TYPES]
    if operation == "part":
        return [Step("part", type_named("b16"), (0,), type_named("b64"), bit) for bit in (0, 16, 48)]
    if operation == "pack":
        return [Step("pack", type_named("b64"), (0, 1), type_named("u32"), (type_named("u32"), type_named("s32")))]
    return [Step(operation, PREDICATE if operation in DECISIONS else type, (0, 1), type) for type in TYPES]


@pytest.mark.parametrize("operation", [*RANGES, *DECISIONS])
def test_a_range_contains_the_result_for_each_of_its_members(operation: str) -> None:
    rng = random.Random(operation)
    known = 0
    for step in steps(operation) * (25 if operation == "cast" else 60):
        numbers = [pick(rng, type) for type in step.read_as]
        if operation in ("<<", ">>"):
            numbers[1] = Number(low := rng.randrange(step.of.width), rng.randrange(low, step.of.width))
        decision = DECISIONS[operation](step, numbers) if operation in DECISIONS else None
        bounds = bounds_of(step, numbers)
        known += decision is not None or bounds[1] - bounds[0] < (1 << step.type.width) - 1
        for _ in range(4):
            bits = [wrap(member(rng, number), type) for number, type in zip(numbers, step.read_as, strict=True)]
            try:
                found = result(step, bits)
            except AssertionError:
                continue  # a division by zero
            compute = function_of(step)
            assert compute is not None
            assert compute(*bits) == found.bits, (step, bits)
            assert decision in (None, bool(found.bits)), (step, numbers, bits)
            assert is_in(found.bits, bounds, step.type), (step, numbers, bits, found, bounds)
    assert known > 10


@pytest.mark.parametrize("operation", LOGIC)
def test_a_choice_is_what_it_is_for_each_outcome(operation: str) -> None:
    outcomes = {Choice(1, 0): {1}, Choice(0, 1): {0}, Choice(1, 1): {0, 1}}
    for one, first in outcomes.items():
        for other, second in outcomes.items():
            expected = {int(OPERATORS[operation](a, b)) for a in first for b in second}
            found = LOGIC[operation](one, other)
            assert found == Choice(1 in expected, 0 in expected), (one, other)


@pytest.mark.parametrize(
    ("operation", "numbers", "bounds"),
    [
        ("//", [(0, 15), (2, 3)], (0, 7)),
        ("//", [(8, 15), (2, 4)], (2, 7)),
        ("%", [(0, 99), (8, 8)], (0, 7)),
        ("*", [(0, 3), (5, 7)], (0, 21)),
        ("-", [(8, 9), (0, 8)], (0, 9)),
    ],
)
def test_ranges_are_as_small_as_they_can_be(
    operation: str, numbers: list[tuple[int, int]], bounds: tuple[int, int]
) -> None:
    u32 = type_named("u32")
    assert bounds_of(Step(operation, u32, (0, 1), u32), [Number(low, high) for low, high in numbers]) == bounds
