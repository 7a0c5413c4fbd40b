"""Exercises of the course, tried: the start is not right, the solution is, wrong attempts get words that lead on."""

import pytest

from ptxlab import learn
from ptxlab.learn import judging
from tests.learn.attempts import RIGHT, WRONG, Changes, Wrong

EXERCISES = {one.name: one for chapter in learn.chapters() for one in chapter.exercises}
FIRST = [name for name in EXERCISES if name[:2] in ("01", "02", "03", "04", "05", "06")]


def tried(name: str, changes: Changes) -> learn.Report:
    exercise = EXERCISES[name].exercise
    return learn.check(exercise, learn.changed(exercise.solution, *changes))


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in EXERCISES]
)
def test_the_start_is_not_right_and_the_solution_is(name: str) -> None:
    exercise = EXERCISES[name].exercise
    start = learn.check(exercise, exercise.start)
    assert not start.is_right
    assert len(start.verdict.said) > 1 or start.verdict.diagnostics
    solved = learn.check(exercise, exercise.solution)
    assert solved.is_right, solved


@pytest.mark.bulk(one_in=5)
@pytest.mark.parametrize(
    ("name", "attempt"), [(name, one) for name, attempts in WRONG.items() for one in attempts]
)  # fmt: skip
def test_a_wrong_attempt_gets_words_that_lead_on(name: str, attempt: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 4.0 if "loop" in name else 30.0)  # one of them does not end
    report = tried(name, attempt.changes)
    assert not report.is_right
    assert attempt.says in " ".join(report.verdict.said), report


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    ("name", "changes"), [(name, changes) for name, attempts in RIGHT.items() for changes in attempts]
)  # fmt: skip
def test_a_solution_that_is_written_differently_is_right(name: str, changes: Changes) -> None:
    report = tried(name, changes)
    assert report.is_right, report


def test_exercises_of_chapters_1_to_6_are_tried_five_times_wrong_and_twice_right() -> None:
    assert len(FIRST) >= 17
    assert {name: len(attempts) for name, attempts in WRONG.items()} == dict.fromkeys(FIRST, 5)
    assert {name: len(attempts) for name, attempts in RIGHT.items()} == dict.fromkeys(FIRST, 2)
