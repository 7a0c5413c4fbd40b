"""Floating-point instructions on the emulator: kernels made of cases give what the reference machine gives."""

import random
from collections import defaultdict

import pytest

from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected
from ptxlab.isa.table import forms
from ptxlab.isa.types import TYPES, Type
from ptxlab.numbers import FORMATS, Format
from tests.isa.cases import Bits, Case, exact
from tests.isa.kernels import LANES, Group, home
from tests.isa.sample import Choice, sample_choices
from tests.numbers.samples import sample

from .test_semantics import emulate

CHAPTERS = ("floating_point", "half", "mixed_precision", "alternate", "convert")
TOGETHER = 32  # instructions in one kernel


def make_bits(generator: random.Random, type: Type) -> int:
    """Patterns of floats that are at an edge or anything, integers of any size."""
    if type.lanes > 1:
        one = TYPES.get(type.name.rpartition("x")[0], TYPES["b8"])
        return sum(
            (make_bits(generator, one) & ((1 << type.bits) - 1)) << type.bits * lane for lane in range(type.lanes)
        )
    format = FORMATS.get(type.name)
    if isinstance(format, Format):
        return sample(format, generator) << format.padding
    bits = generator.getrandbits(generator.randint(1, type.width))
    return bits ^ ((1 << type.width) - 1) if generator.randrange(2) else bits


def make_operand(generator: random.Random, one: Expected) -> Bits:
    assert one.type is not None
    if one.count:
        return tuple(make_bits(generator, one.type) for _ in range(one.count))
    return make_bits(generator, one.type)


def make_group(form: Form, choice: Choice) -> Group:
    generator = random.Random(f"{form.syntax}{choice}")
    read = [one for one in Case(form, choice, {}).operands.values() if one.role == "read"]
    cases = [Case(form, choice, {one.name: make_operand(generator, one) for one in read}) for _ in range(LANES)]
    return Group(tuple(cases), frozenset())


def groups_of(chapter: str) -> dict[object, list[Group]]:
    """A few spellings of every form, by the version and target that they are compiled for."""
    found: dict[object, list[Group]] = defaultdict(list)
    for form in forms():
        if form.chapter != chapter or form.semantics is None:
            continue
        for choice in sample_choices(form, 2):
            try:
                where = home(form, choice)
            except StopIteration:  # too old or too new for the targets of these tests
                continue
            found[where].append(make_group(form, choice))
    return found


@pytest.mark.bulk(one_in=2)
@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_threads_compute_what_the_reference_machine_does(chapter: str) -> None:
    for groups in groups_of(chapter).values():
        for first in range(0, len(groups), TOGETHER):
            for case, found in emulate(groups[first : first + TOGETHER]):
                assert found == exact(case)[: len(found)], case
