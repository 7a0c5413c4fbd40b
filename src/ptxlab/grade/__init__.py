"""`grade`: submissions for problems, with a score, a history and a table.

>>> from ptxlab.grade import problems
>>> "softmax" in problems()
True

A problem is a file with `task = Task(...)`, as `ptxlab.verify` has it: those below, or a teacher's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.grade.history import GradeRecord
from ptxlab.report.nearest import nearest
from ptxlab.verify import Task, TaskError, Verdict, load_task, verify

__all__ = ["Grade", "GradeRecord", "grade", "problem", "problems"]
_FOLDER = Path(__file__).parent / "tasks"


@cache
def problems() -> dict[str, Path]:
    """The problems that come with ptxlab, by name."""
    return {file.stem: file for file in sorted(_FOLDER.glob("*.py")) if file.stem != "__init__"}


def problem(name: str | Path) -> Task:
    """A problem by its name, or of a file."""
    known = problems()
    if str(name) in known:
        return load_task(known[str(name)])
    if Path(name).suffix == ".py":
        return load_task(name)
    close = nearest(str(name), list(known))
    meant = f"; did you mean `{close}`?" if close else ""
    raise TaskError(f"there is no problem `{name}`{meant}: expected a file, or one of {', '.join(known)}")


@dataclass(frozen=True)
class Grade:
    """What a submission is worth."""

    problem: str
    submission: str
    status: str
    """`accepted`, `slow`, `rejected` or `undecided`."""
    score: float
    """0 where it is not right; else up to 100: the part of what the GPU can do at best."""
    time: str
    """The time, or what is known of it."""
    verdict: Verdict

    def record(self) -> GradeRecord:
        """As it is kept."""
        return GradeRecord.now(self.problem, self.submission, self.status, self.score, self.time, self.verdict.codes,
                          self.verdict.seed)  # fmt: skip

    def as_dict(self) -> dict[str, object]:
        """As plain values, for JSON."""
        return {"version": 1, "problem": self.problem, "submission": self.submission, "status": self.status,
                "score": self.score, "time": self.time, "verdict": self.verdict.as_dict()}  # fmt: skip

    def __str__(self) -> str:
        return f"{self.verdict}\n\n{self.problem}, {self.submission}: {self.status}, score {self.score:.0f} of 100"


def grade(name: str | Path, submission: str | Path, **how: Any) -> Grade:
    """Judge a submission, and give it a score; `how` is what `ptxlab.verify` takes besides.

    A right one is timed on the GPU, where there is one for its target, unless `measure=False`.
    """
    task = problem(name)
    how.setdefault("measure", True)
    how.setdefault("command", f"ptxlab grade {name} {submission}")
    verdict = verify(task, submission, **how)
    times = verdict["estimate"].figures.get("times", [])
    known = [one for one in times if one["least"] is not None]
    time = "; ".join(verdict["estimate"].notes)
    if not verdict.accepted:
        return Grade(task.name, Path(submission).name, verdict.status, 0.0, time, verdict)
    if not known:  # right, and nothing is known of its time
        return Grade(task.name, Path(submission).name, "accepted", 50.0, time, verdict)
    part = sum(min(1.0, one["least"] / one["seconds"]) for one in known) / len(known)
    status = "slow" if part < task.slow else "accepted"
    return Grade(task.name, Path(submission).name, status, round(100 * part, 1), time, verdict)
