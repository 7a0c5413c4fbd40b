"""Cases for the semantics of instructions: a form, a choice of modifiers and the bits of its operands.

A machine is a function of a case that gives the bits of the results, the carry flag last; `exact` is the reference.
What the bits must be is said in `oracles`.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ptxlab.isa.exact import Exact, evaluate, evaluate_warp
from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.operand import Expected, expect
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.selectors import SELECTORS
from ptxlab.isa.types import Type, type_named

from .sample import Choice

Bits = int | tuple[int, ...]  # of one operand, or of the elements of a vector


@dataclass(frozen=True)
class Case:
    """An instruction with the bits of what it reads."""

    form: Form
    choice: Choice
    bits: Mapping[str, Bits]
    selections: Mapping[str, str] = field(default_factory=dict)
    minus: frozenset[str] = frozenset()
    carry: int = 0

    @cached_property
    def m(self) -> Modifiers:
        return self.form.modifiers(self.choice)

    @cached_property
    def operands(self) -> dict[str, Expected]:
        """All operands by their names."""
        return {one.name: one for one in all_operands(self.form, self.m)}

    def type(self, name: str) -> Type:
        found = self.operands[name].type
        assert found is not None
        return found

    def number(self, name: str) -> int:
        """The integer that an operand is."""
        return number_of(self.type(name), self.bits[name])

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value:#x}" if isinstance(value, int) else f"{name}={value}"
                          for name, value in self.bits.items())  # fmt: skip
        more = [f"{self.selections}"] * bool(self.selections) + [f"minus {sorted(self.minus)}"] * bool(self.minus)
        return " ".join([self.form.spell(self.choice), shown, f"carry={self.carry}", *more])


def number_of(type: Type, bits: Any) -> int:
    return bits - (1 << type.bits) if type.kind == "s" and bits >> (type.bits - 1) else bits


def all_operands(form: Form, m: Modifiers) -> list[Expected]:
    return [one for first in expect(form, m) for one in (first, first.second) if one is not None]


def exact(case: Case) -> tuple[Bits, ...]:
    """The results of a case on the reference machine, and the carry flag."""
    k = Exact(selections=case.selections, minus=case.minus, carry=Pattern.of("pred", case.carry))
    results = evaluate(case.form, case.m, values(case), k)
    assert isinstance(k.carry, Pattern)
    return (*map(bits_of, results), k.carry.bits)


def exact_warp(cases: Mapping[int, Case]) -> dict[int, tuple[Bits, ...]]:
    """The results of the lanes that execute an instruction together."""
    first = next(iter(cases.values()))
    found = evaluate_warp(first.form, first.m, {lane: values(case) for lane, case in cases.items()})
    return {lane: tuple(map(bits_of, results)) for lane, results in found.items()}


def values(case: Case) -> dict[str, Any]:
    """The operands as the reference machine takes them."""
    found: dict[str, Any] = {}
    for name, bits in case.bits.items():
        expected = case.operands[name]
        if expected.kind == "immediate":
            found[name] = bits
        elif isinstance(bits, tuple):
            found[name] = tuple(Pattern(case.type(name), part) for part in bits)
        else:
            found[name] = Pattern(case.type(name), bits)
    return found


def bits_of(result: Any) -> Bits:
    return tuple(part.bits for part in result) if isinstance(result, tuple) else int(result.bits)


def make_cases(form: Form, choice: Choice, count: int, seed: int = 0) -> Iterator[Case]:
    """Cases of a form: edges and chance in every operand."""
    generator = random.Random(f"{form.syntax}{choice}{seed}")
    operands = all_operands(form, form.modifiers(choice))
    for _ in range(count):
        yield Case(
            form,
            choice,
            {one.name: make_operand(generator, one) for one in operands if one.role != "write"},
            {one.name: generator.choice(sorted(SELECTORS[one.select]))
             for one in operands if one.select and (_must_select(form, one) or generator.random() < 0.6)},
            _minus(generator, operands),
            generator.randrange(2),
        )  # fmt: skip


def _must_select(form: Form, one: Expected) -> bool:
    """A scalar video instruction with `c` and no second operation puts its result into a part of it."""
    return one.name == "d" and one.select == "part"


def _minus(generator: random.Random, operands: list[Expected]) -> frozenset[str]:
    """Operands of `vmad` with a minus sign: never both the product, by one of its factors, and `c`."""
    signs = frozenset(one.name for one in operands if one.minus and generator.random() < 0.4)
    return signs - {"c"} if len(signs & {"a", "b"}) == 1 else signs


def make_operand(generator: random.Random, one: Expected) -> Bits:
    if one.kind == "immediate":
        return generator.randrange(256)
    assert one.type is not None
    if one.count:
        return tuple(make_bits(generator, one.type) for _ in range(one.count))
    return make_bits(generator, one.type)


def make_bits(generator: random.Random, type: Type) -> int:
    """Bits that are at an edge, or of a random length, or random in every lane."""
    if type.lanes > 1:
        one = type_named(type.name.rpartition("x")[0])
        return sum(make_bits(generator, one) << one.width * lane for lane in range(type.lanes))
    if type.kind == "f":
        return make_float(generator, type)
    width, top = type.width, (1 << type.width) - 1
    match generator.randrange(5):
        case 0:
            return generator.choice((0, 1, top, top >> 1, (top >> 1) + 1, top - 1))
        case 1:
            return generator.choice((2, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 48, 63, 64, 65, 127, 128, 255)) & top
        case 2:
            bits = generator.getrandbits(generator.randrange(width) + 1)
            return bits ^ top if generator.randrange(2) else bits
        case 3:
            return int.from_bytes(generator.choices((0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF), k=16), "little") & top
    return generator.getrandbits(width)


FLOATS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}


def make_float(generator: random.Random, type: Type) -> int:
    mantissa = FLOATS[type.name]
    infinity = (1 << (type.width - 1)) - (1 << mantissa)
    one = (infinity >> 1) & infinity
    numbers = (0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, infinity - 1, infinity)
    edges = (*numbers, infinity + 1, infinity | 1 << (mantissa - 1))
    bits = generator.choice(edges) if generator.random() < 0.7 else generator.getrandbits(type.width - 1)
    return bits | generator.randrange(2) << (type.width - 1)
