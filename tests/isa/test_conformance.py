"""ptxas agrees with the table: accepted where a form is stated to begin, refused one step below, damaged ones alike."""

from collections import defaultdict
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from ptxlab.isa.form import Form
from ptxlab.isa.table import CHAPTERS, forms

from ..tools import BLESS, compare_with_file, each_release, ptxas_of
from .conformance import Question, disagreements, judge_of, mutant_questions, questions, stray_questions

CONFIRMED = Path(__file__).parent / "confirmed"  # `BLESS=1 pytest tests/isa/test_conformance.py` asks and writes all


def _chapters() -> dict[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in forms():
        found[form.chapter].append(form)
    return found


@each_release
@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_forms_begin_where_the_table_says(chapter: str, release: str, pytestconfig: pytest.Config) -> None:
    """A form is not asked about again if the same questions were answered by the same ptxas, as `confirmed` says."""
    ptxas_of(release)
    asked = _asked(chapter)
    if not any(asked.values()):
        pytest.skip(f"no ptxas for the versions of PTX that {chapter} came with")
    confirmed = CONFIRMED / release / f"{chapter}.txt"
    is_new = BLESS or pytestconfig.option.ask_all or not confirmed.exists()
    known = set() if is_new else set(confirmed.read_text(encoding="utf-8").splitlines())
    new = [one for form, about in asked.items() if _line(form, about, release) not in known for one in about]
    assert [str(found) for found in disagreements(new, release)] == []
    if BLESS:
        compare_with_file(confirmed, sorted(_line(form, about, release) for form, about in asked.items()))


@cache
def _asked(chapter: str) -> dict[Form, list[Question]]:
    """What is asked about the forms of a chapter, whatever the release."""
    return {form: list(questions(form, most=6)) for form in _chapters()[chapter]}


def _line(form: Form, about: list[Question], release: str) -> str:
    """A form, and a digest of what is asked about it, and of which ptxas."""
    said = [(one.instruction, one.version, one.target, one.legal) for one in about]
    judges = [(judge_of(version, release).version, version) for version in sorted({one.version for one in about})]
    return f"{form.syntax} {sha256(repr((judges, said)).encode()).hexdigest()[:16]}"


@pytest.mark.slow
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.bulk)])
@each_release
def test_damaged_instructions_are_judged_alike(release: str, step: int) -> None:
    ptxas_of(release)
    asked = [question for form in forms()[::step] for question in mutant_questions(form, 1, seed=1)]
    wrong = disagreements(asked, release)
    # What is left is nonsense that ptxas lets pass, such as a float for the address of a tensor map.
    assert len(wrong) <= len(asked) / 100, [str(found) for found in wrong]


@pytest.mark.bulk
def test_one_modifier_more_is_judged_alike() -> None:
    """What is left is words that ptxas reads and has no use for, such as a layout of `movmatrix`."""
    asked = [question for form in forms()[::16] for question in stray_questions(form, 1)]
    wrong = disagreements(asked)
    assert len(wrong) <= len(asked) / 500, [str(found) for found in wrong]
