"""ptxas agrees with the table: accepted where a form is stated to begin, refused one step below, damaged ones alike."""

from collections import defaultdict

import pytest

from ptxlab.isa.form import Form
from ptxlab.isa.table import CHAPTERS, forms
from ptxlab.toolchain import find

from .conformance import disagreements, mutant_questions, questions

pytestmark = pytest.mark.skipif(find("ptxas") is None, reason="no ptxas: install `ptxlab[toolchain]`")


def _chapters() -> dict[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in forms():
        found[form.chapter].append(form)
    return found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_forms_begin_where_the_table_says(chapter: str) -> None:
    asked = [question for form in _chapters()[chapter] for question in questions(form, most=12)]
    assert asked
    assert [str(found) for found in disagreements(asked)] == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_damaged_instructions_are_judged_alike(chapter: str) -> None:
    asked = [question for form in _chapters()[chapter] for question in mutant_questions(form, 8, seed=0)]
    wrong = disagreements(asked)
    assert [str(found) for found in wrong if not found.question.legal] == [], "legal, and refused by the table"
    assert len(wrong) <= len(asked) // 200, [str(found) for found in wrong]
