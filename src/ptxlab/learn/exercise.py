"""Exercises and chapters: a chapter is a page of the guides and the folder of the same name, a file an exercise.

    docs/course/02-first-kernel.md
    docs/course/02-first-kernel/1-double.py     has EXERCISE = Exercise(...)

A teacher's own exercise is such a file, anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Literal

from ptxlab import guides
from ptxlab.learn.judging import ExerciseVerdict, judge
from ptxlab.learn.needs import Need
from ptxlab.learn.task import Task
from ptxlab.report import PtxError
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.ir import Module

FOLDERS = ("course", "hopper", "lessons")  # of the guides, in the order of the course


class LearnError(ValueError):
    """Something that is asked for and does not exist; its text says what there is."""


@dataclass(frozen=True)
class Exercise:
    """A file to mend or to complete, and all that is needed to judge it and to lead on."""

    title: str
    start: str
    """What the learner gets; its first comments say what to do."""
    solution: str
    task: Task
    hints: Sequence[str]
    """Each leads further than the one before."""
    needs: Sequence[Need] = ()
    advice: Mapping[str, str] = field(default_factory=dict)
    """What to say when a finding has this code, beside what the finding says."""
    language: Literal["ptx", "python"] = "ptx"
    """What the learner writes: PTX, or a kernel by `ptxlab.author`."""

    def check(self, module: Module) -> ExerciseVerdict:
        """What is missing in a solution."""
        return judge(module, self.task, self.needs, self.advice)

    def refuse(self, wrong: PtxError) -> ExerciseVerdict:
        """What to say of a file that cannot be read."""
        code = wrong.diagnostics[0].code
        what = "valid PTX" if self.language == "ptx" else "a kernel"
        said = (f"the file is not {what} yet:", *([self.advice[code]] if code in self.advice else []))
        return ExerciseVerdict(code, said, tuple(wrong.diagnostics))


def changed(text: str, *changes: tuple[str, str]) -> str:
    """A text in which one part after the other is replaced, where it is first.

    >>> changed("mov.u32 %r1, 0;", ("0", "%tid.x"))
    'mov.u32 %r1, %tid.x;'
    """
    for old, new in changes:
        if old not in text:
            raise LearnError(f"there is no `{old}` in the text")
        text = text.replace(old, new, 1)
    return text


@dataclass(frozen=True)
class ExerciseFile:
    """An exercise by its name, read when it is needed."""

    name: str
    """`02-first-kernel/1-double`, or the path of a teacher's file."""
    path: Path

    @property
    def suffix(self) -> str:
        """Of the learner's file."""
        return {"ptx": ".ptx", "python": ".py"}[self.exercise.language]

    @cached_property
    def exercise(self) -> Exercise:
        """What the file has."""
        found = run_path(str(self.path)).get("EXERCISE")
        if not isinstance(found, Exercise):
            raise LearnError(f"`{self.path}` has no `EXERCISE = Exercise(...)`")
        return found


@dataclass(frozen=True)
class Chapter:
    """A page and its exercises."""

    number: int
    guide: str
    """`course/02-first-kernel`: its name for `ptxlab docs`."""
    title: str
    exercises: tuple[ExerciseFile, ...]

    @property
    def name(self) -> str:
        """Of its folder."""
        return folder_name(self.guide)


def folder_name(guide: str) -> str:
    """The folder of a chapter's exercises: of the course itself without `course`, as its numbers are the chapters'."""
    return guide.removeprefix("course/").replace("/", "-")


def chapters() -> list[Chapter]:
    """All chapters, in their order."""
    known = guides.guides()
    found = [(guide, path) for folder in FOLDERS for guide, path in known.items() if guide.startswith(f"{folder}/")]
    return [
        Chapter(number, guide, guides.title_of(path), _exercises_of(guide, path))
        for number, (guide, path) in enumerate(found, 1)
    ]


def _exercises_of(guide: str, page: Path) -> tuple[ExerciseFile, ...]:
    files = sorted(page.with_suffix("").glob("[0-9]*.py"))
    return tuple(ExerciseFile(f"{folder_name(guide)}/{file.stem}", file) for file in files)


def chapter_of(asked: str) -> Chapter:
    """The chapter of a number or a name: `2`, `first-kernel`, `02-first-kernel`, `hopper/03-ring`."""
    known = chapters()
    if asked.isdigit():
        if not 0 < int(asked) <= len(known):
            raise LearnError(f"there is no chapter {asked}: there are 1 to {len(known)}")
        return known[int(asked) - 1]
    names = {name: one for one in known for name in (one.name, one.guide, re.sub(r"^.*?\d+-", "", one.guide))}
    if asked not in names:
        close = nearest(asked, names)
        raise LearnError(f"there is no chapter `{asked}`{f'; did you mean `{close}`?' if close else ''}")
    return names[asked]


def exercise_of(name: str) -> ExerciseFile:
    """The exercise of a name: `02-first-kernel/1-double`, `double`, or the path of a teacher's file."""
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise LearnError(f"there is no file `{name}`")
        return ExerciseFile(str(Path(name).resolve()), Path(name).resolve())
    every = [one for chapter in chapters() for one in chapter.exercises]
    names = {one.path.stem.partition("-")[2]: one for one in every} | {one.name: one for one in every}
    if name not in names:
        close = nearest(name, names)
        raise LearnError(f"there is no exercise `{name}`{f'; did you mean `{close}`?' if close else ''}")
    return names[name]
