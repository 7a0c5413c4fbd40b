"""A learner's folder: files of exercises, and beside them what is done and how many hints were shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxlab.learn.exercise import ExerciseFile, LearnError, chapters, exercise_of
from ptxlab.native.cache import Provisional, cached
from ptxlab.report.nearest import nearest

STATE = ".ptxlab-learn.json"
DEFAULT = "ptx-course"


@dataclass
class Folder:
    """The folder, with what is known of each of its exercises by their names."""

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    """The exercise of each file, whose path is from this folder."""
    done: set[str] = field(default_factory=set)
    hints: dict[str, int] = field(default_factory=dict)
    """How many hints of an exercise were shown."""

    @classmethod
    def read(cls, path: Path) -> Folder:
        """What was written there; a new one where nothing was."""
        file = path / STATE
        if not file.is_file():
            return cls(path)
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
            known = cls(path, dict(state["files"]), set(state["done"]), dict(state["hints"]))
            names = (*known.files.values(), *known.done)
            if all(isinstance(one, str) for one in names) and all(isinstance(one, int) for one in known.hints.values()):
                return known
        except (ValueError, KeyError, TypeError, OSError, RecursionError):
            pass  # it is not what was written there
        raise LearnError(f"`{file}` is not readable: remove it, and `ptxlab learn start` makes it anew")

    def write(self) -> None:
        """Keep what is known."""
        state = {"files": self.files, "done": sorted(self.done), "hints": self.hints}
        (self.path / STATE).write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")

    def prepare(self, exercises: Sequence[ExerciseFile], again: bool = False) -> list[Path]:
        """Write the files that are not there yet, or all of them `again`; return those of all exercises."""
        found = []
        for one in exercises:
            place = Path(one.path.stem) if is_program(one.name) else Path(one.name)
            file = self.path / place.with_name(place.name + one.suffix)
            for program in filter(is_program, (one.name, str(file))):
                cached(_trust_in(program), lambda: b"yes")
            file.parent.mkdir(parents=True, exist_ok=True)
            if again or not file.exists():
                file.write_text(one.exercise.start, encoding="utf-8")
            self.files[file.relative_to(self.path).as_posix()] = one.name
            if again:
                self.done.discard(one.name)
                self.hints.pop(one.name, None)
            found.append(file)
        self.write()
        return found

    def exercise_at(self, file: Path) -> ExerciseFile:
        """The exercise that a file is of."""
        path = file.resolve()
        relative = path.relative_to(self.path.resolve()).as_posix() if path.is_relative_to(self.path.resolve()) else ""
        if relative not in self.files:
            close = nearest(file.name, [Path(one).name for one in self.files])
            meant = f"; did you mean `{close}`?" if close else ""
            raise LearnError(f"`{file}` is not the file of an exercise of `{self.path}`{meant}")
        name = self.files[relative]
        if is_program(name) and not cached(_trust_in(name), Provisional):
            raise LearnError(f"`{file}` is of `{name}`, a program in Python that was not started from here: "
                             f"`ptxlab learn start {name}` does that, if you trust it")  # fmt: skip
        found = exercise_of(name)
        if found.suffix == ".py" and not cached(_trust_in(str(file)), Provisional):
            raise LearnError(f"`{file}` is a program in Python that was not started from here: `ptxlab learn start "
                             f"{Path(name).parent}` does that, if you trust it")  # fmt: skip
        return found

    def next_file(self) -> Path | None:
        """The first file whose exercise is not done, in the order of the course; None if all are."""
        order = {one.name: number for number, one in enumerate(one for ch in chapters() for one in ch.exercises)}
        left = [(order.get(name, len(order)), file) for file, name in self.files.items() if name not in self.done]
        return self.path / min(left)[1] if left else None


def is_program(name: str) -> bool:
    """Whether a teacher's exercise or a learner's file is Python, which is executed."""
    return name.endswith(".py")


def _trust_in(name: str) -> str:
    """The key under which it is kept, outside of any folder, that the user has started it."""
    return f"exercise {Path(name).resolve()}"


def find_folder(start: Path) -> Folder | None:
    """The folder that `start` is in or is, or the usual one in it."""
    for path in (start, *start.resolve().parents, start / DEFAULT):
        if (path / STATE).is_file():
            return Folder.read(path)
    return None
