"""The meanings of instructions against what the manual says of them, written down independently in `oracles`."""

import pytest

from ptxlab.isa.form import Form
from ptxlab.isa.table import forms

from .cases import exact, make_cases
from .oracles import ORACLES, expected_results
from .sample import sample_choices

MACHINES = {"exact": exact}
CHAPTERS = ("integer", "extended_precision", "logic", "compare", "move", "video")
ADDRESSES = ("cvta", "isspacep")  # these need memory
FORMS = [form for form in forms() if form.chapter in CHAPTERS and form.name[0] not in ADDRESSES]


def _identity(form: Form) -> str:
    return f"{form.chapter}: {form.syntax}"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("form", FORMS, ids=_identity)
def test_results_are_what_the_manual_says(form: Form, machine: str) -> None:
    for choice in sample_choices(form, 24):
        for case in make_cases(form, choice, 16):
            expected = expected_results(case)
            found = MACHINES[machine](case)[: len(expected)]
            assert found == expected, f"{case}: {found} for {expected}"


def test_every_form_has_an_oracle() -> None:
    assert {_identity(form) for form in FORMS if (form.chapter, ".".join(form.name)) not in ORACLES} == set()
