"""The semantics of instructions on the emulator: kernels made of cases give what the reference machine gives."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pytest

import ptxlab
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms
from tests.isa.cases import Bits, Case, exact, exact_warp
from tests.isa.kernels import LANES, Group, home, kernel, make_group, output, pack, unpack
from tests.isa.sample import sample_choices

ADDRESSES = ("cvta", "isspacep")
CHAPTERS = ("integer", "extended_precision", "logic", "compare", "move", "video")
FORMS = [form for form in forms() if form.chapter in CHAPTERS and form.name[0] not in ADDRESSES]
TOGETHER = [form for form in forms() if form.chapter == "warp"]


def _identity(form: Form) -> str:
    return f"{form.chapter}: {form.syntax}"


def emulate(groups: Sequence[Group]) -> list[tuple[Case, tuple[Bits, ...]]]:
    """What the emulator finds for the cases of groups that live in one module."""
    given, found = pack(groups), output(groups)
    ptxlab.parse(kernel(groups))["cases"].launch(grid=1, block=LANES, args=[given, found], device="cpu")
    return list(unpack(groups, found))


@pytest.mark.bulk(one_in=5)
@pytest.mark.parametrize("form", [pytest.param(form, id=_identity(form)) for form in FORMS])
def test_threads_compute_what_the_reference_machine_does(form: Form) -> None:
    homes = defaultdict(list)
    for number, choice in enumerate(sample_choices(form, 4)):
        homes[home(form, choice)].append(make_group(form, choice, number))
    for groups in homes.values():
        for case, found in emulate(groups):
            assert found == exact(case)[: len(found)], case


def make_collective(form: Form, number: int) -> Group:
    """A group whose lanes meet in two parts of the warp, at random."""
    generator = random.Random(f"{form.syntax}{number}")
    choices = sample_choices(form, 8)
    group = make_group(form, choices[number % len(choices)], number)
    cases = list(group.cases) if number % 2 else generator.choices(group.cases[:2], k=LANES)
    if "membermask" in group.first.bits:
        some = generator.getrandbits(32)
        masks = [some if some >> lane & 1 else some ^ 0xFFFFFFFF for lane in range(LANES)]
        cases = [replace(case, bits={**case.bits, "membermask": mask}) for case, mask in zip(cases, masks, strict=True)]
    return replace(group, cases=tuple(cases))


@pytest.mark.parametrize("form", TOGETHER, ids=_identity)
def test_lanes_get_what_the_reference_machine_gives_them(form: Form) -> None:
    groups = [make_collective(form, number) for number in range(8)]
    results = [found for _, found in emulate(groups)]
    for number, group in enumerate(groups):
        expected = exact_warp(dict(enumerate(group.cases)))
        found = dict(enumerate(results[LANES * number :][:LANES]))
        assert found == expected, form.spell(group.first.choice)
