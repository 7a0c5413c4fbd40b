"""PTX from zero: a course of chapters with exercises, which the emulator and its detectors judge.

>>> from ptxlab import learn
>>> learn.chapters()[1].title
'The first kernel'

In a notebook, `learn.check("double", text)` says what is missing in a solution, `learn.hint("double", 1)` is the first
hint and `learn.start("double")` the text to begin with. `ptxlab learn` does the same in a terminal, and keeps what is
done.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ptxlab.learn.exercise import (
    Chapter,
    Exercise,
    ExerciseFile,
    LearnError,
    changed,
    chapter_of,
    chapters,
    exercise_of,
)
from ptxlab.learn.folder import DEFAULT, Folder, find_folder
from ptxlab.learn.judging import ExerciseVerdict, judge, kernel_of, run
from ptxlab.learn.needs import (
    Need,
    avoids,
    avoids_space,
    executes,
    has_no_bank_conflicts,
    is_coalesced,
    keeps_at_least,
    reads_at_most,
    requests_at_most,
)
from ptxlab.learn.pages import code_on_page, commented, kernel_on_page, names_on_page, text_of
from ptxlab.learn.reading import read
from ptxlab.learn.report import Report
from ptxlab.learn.sources import edited
from ptxlab.learn.task import Case, Task

if TYPE_CHECKING:
    from ptxlab.ir import Module

__all__ = [
    "DEFAULT",
    "Case",
    "Chapter",
    "Exercise",
    "ExerciseFile",
    "ExerciseVerdict",
    "Folder",
    "LearnError",
    "Need",
    "Report",
    "Task",
    "avoids",
    "avoids_space",
    "changed",
    "chapter_of",
    "chapters",
    "check",
    "code_on_page",
    "commented",
    "edited",
    "executes",
    "exercise_of",
    "find_folder",
    "has_no_bank_conflicts",
    "hint",
    "is_coalesced",
    "judge",
    "keeps_at_least",
    "kernel_of",
    "kernel_on_page",
    "names_on_page",
    "read",
    "reads_at_most",
    "requests_at_most",
    "run",
    "solution",
    "start",
    "text_of",
]


def check(exercise: str | Exercise, submitted: str | Path | Module) -> Report:
    """What is missing in a solution: its text, its file, or a module; Python is executed where it is in Python."""
    asked = _named(exercise)
    module = read(asked, submitted)
    return Report(asked.title, module if isinstance(module, ExerciseVerdict) else asked.check(module))


def start(exercise: str) -> str:
    """The text that an exercise begins with."""
    return _named(exercise).start


def hint(exercise: str, number: int = 1) -> str:
    """A hint; the first is number 1."""
    hints = _named(exercise).hints
    if not 0 < number <= len(hints):
        raise LearnError(f"`{exercise}` has hints 1 to {len(hints)}")
    return hints[number - 1]


def solution(exercise: str) -> str:
    """One of the right solutions."""
    return _named(exercise).solution


def _named(exercise: str | Exercise) -> Exercise:
    return exercise if isinstance(exercise, Exercise) else exercise_of(exercise).exercise
