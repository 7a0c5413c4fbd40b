"""The semantics of instructions against what the manual says of them, written down independently in `oracles`.

Where a GPU computes something else, the semantics and the oracles follow it. `h200_integers.txt` holds what an H200
returned there (driver 580.159, code of ptxas 13.0; evidence/agreement_gpu.json): an instruction, its operands, its
result. Cases of `d.h1` are not among them, because ptxas 13.0 takes the wrong half there, which 13.4 does not.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlab.isa.form import Form
from ptxlab.isa.operand import expect
from ptxlab.isa.table import forms

from .cases import Bits, Case, exact, make_cases
from .oracles import ORACLES, expected_results
from .sample import Choice, sample_choices

MACHINES = {"exact": exact}
CHAPTERS = ("integer", "extended_precision", "logic", "compare", "move", "video")
ADDRESSES = ("cvta", "isspacep")  # these need memory
FORMS = [form for form in forms() if form.chapter in CHAPTERS and form.name[0] not in ADDRESSES]

MEASURED = Path(__file__).with_name("h200_integers.txt").read_text().splitlines()


def _identity(form: Form) -> str:
    return f"{form.chapter}: {form.syntax}"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("form", FORMS, ids=_identity)
def test_results_are_what_the_manual_says(form: Form, machine: str, pytestconfig: pytest.Config) -> None:
    """Of each form; of more spellings in `bulk`."""
    for choice in sample_choices(form, 24 if pytestconfig.getoption("bulk") else 6):
        for case in make_cases(form, choice, 16):
            expected = expected_results(case)
            found = MACHINES[machine](case)[: len(expected)]
            assert found == expected, f"{case}: {found} for {expected}"


def test_every_form_has_an_oracle() -> None:
    assert {_identity(form) for form in FORMS if (form.chapter, ".".join(form.name)) not in ORACLES} == set()


def read_case(line: str) -> tuple[Case, Bits]:
    """A case, and what was measured: `vadd.u32.u32.u32.sat d, a.b3, b: 0xff010001 0xffffff08 = 0x7`."""
    text, given, found = re.split(": | = ", line)
    spelling, _, rest = text.partition(" ")
    operands = re.findall(r"(-?)(\w+)(?:\.(\w+))?", rest)
    names = [name for _, name, _ in operands]
    bits = dict(zip(names[1:], (int(word, 16) for word in given.split()), strict=True))
    selections = {name: part for _, name, part in operands if part}
    minus = frozenset(name for sign, name, _ in operands if sign)
    (case,) = (Case(form, choice, bits, selections, minus) for form, choice in spelled(spelling, names))
    first, *others = (int(word, 16) for word in found.split())
    return case, (first, *others) if others else first


def spelled(spelling: str, names: list[str]) -> Iterator[tuple[Form, Choice]]:
    """The forms that an instruction may be, of those that take no vectors."""
    for form in FORMS:
        if form.name[0] == spelling.partition(".")[0] and [operand.name for operand in form.operands] == names:
            for choice in form.spellings():
                if form.spell(choice) == spelling and not any(
                    one.count for one in expect(form, form.modifiers(choice)) if one.role == "read"
                ):
                    yield form, choice


@pytest.mark.parametrize("line", MEASURED)
def test_results_are_what_an_h200_gives(line: str) -> None:
    case, measured = read_case(line)
    assert exact(case)[0] == measured
    assert expected_results(case)[0] == measured
