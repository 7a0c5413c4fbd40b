"""What a learner hands in, as a module: PTX, or Python with a kernel in it where an exercise is in Python."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab.learn.exercise import Exercise
from ptxlab.learn.judging import ExerciseVerdict
from ptxlab.report import PtxError

if TYPE_CHECKING:
    from ptxlab.ir import Module


def read(exercise: Exercise, submitted: str | Path | Module) -> Module | ExerciseVerdict:
    """The module of a text, of a file, or the one that is given; a verdict where there is none."""
    from ptxlab.syntax import load, parse

    if not isinstance(submitted, str | Path):
        return submitted
    try:
        if exercise.language == "python":
            return _written(exercise, submitted)
        return load(submitted) if isinstance(submitted, Path) else parse(submitted, "solution.ptx")
    except PtxError as wrong:
        return exercise.refuse(wrong)


def _written(exercise: Exercise, submitted: str | Path) -> Module | ExerciseVerdict:
    """The module of the kernel that Python defines; the Python is executed."""
    from ptxlab.author import Kernel

    name = str(submitted) if isinstance(submitted, Path) else "solution.py"
    text = submitted.read_text(encoding="utf-8") if isinstance(submitted, Path) else submitted
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # findings show lines of it
    names: dict[str, Any] = {"__name__": "solution", "__file__": name}
    try:
        exec(compile(text, name, "exec"), names)
        kernels = {name: one for name, one in names.items() if isinstance(one, Kernel)}
        chosen = kernels.get(exercise.task.kernel) or (next(iter(kernels.values())) if len(kernels) == 1 else None)
        if chosen is None:
            return ExerciseVerdict(
                "no-kernel", (f"the file needs a kernel: `@kernel` above `def {exercise.task.kernel}(...)`",)
            )
        return chosen.module
    except PtxError:
        raise
    except Exception as wrong:  # whatever a learner's program raises is what the check says
        where = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == name]
        line = wrong.lineno if isinstance(wrong, SyntaxError) else where[-1] if where else None
        at = f"line {line} of " if line else ""
        return ExerciseVerdict("python-error", (f"{at}the file can't be executed: {type(wrong).__name__}: {wrong}",))
