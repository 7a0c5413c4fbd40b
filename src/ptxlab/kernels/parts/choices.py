"""Which variant computes something: the fastest on this GPU where that was measured, otherwise what is chosen without.

What was measured is a file of the cache folder, a line each: the GPU, its driver and ptxlab's version, what was asked
for, the variant, and its time. Lines of other GPUs, drivers and versions stay, and do not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ptxlab import __version__
from ptxlab.gpu.driver import absence
from ptxlab.gpu.hardware import driver_release, gpu
from ptxlab.native.cache import cache_folder

FOLDER, FILE = "tuned", "answers.jsonl"  # in the cache folder, where files alone are removed when it is full


@dataclass(frozen=True)
class Answer:
    """The variant that was fastest, and its time; `before` is that of the one that is chosen otherwise."""

    choice: str
    asked: str
    variant: dict[str, object]  # its fields, without those that have their defaults
    microseconds: float
    before: float


class Choice:
    """Chooses a variant: `choose` returns one, `candidates` those that may be the fastest, of the same arguments."""

    asked: list[tuple[Choice, tuple[Any, ...]]] | None = None
    """What is asked for inside of `watched`."""
    tried: Mapping[tuple[str, str], Any] = {}
    """Variants that are chosen now, because they are being measured."""

    def __init__(self, name: str, choose: Callable[..., object], candidates: Callable[..., Iterable[object]]) -> None:
        self.name, self.choose, self.candidates = name, choose, candidates

    def __call__(self, *given: object) -> Any:
        """The variant for these arguments."""
        if Choice.asked is not None and (self, given) not in Choice.asked:
            Choice.asked.append((self, given))
        key = self.name, str(given)
        if key in self.tried:
            return self.tried[key]
        chosen, answer = self.choose(*given), answers().get(key)
        return chosen if answer is None else restored(chosen, answer.variant)


@contextmanager
def watched() -> Iterator[list[tuple[Choice, tuple[object, ...]]]]:
    """What is asked for inside: each choice and its arguments."""
    before, Choice.asked = Choice.asked, []
    try:
        yield Choice.asked
    finally:
        Choice.asked = before


@contextmanager
def trying(choice: Choice, given: tuple[int, ...], variant: object) -> Iterator[None]:
    """Choose a variant for what is asked for inside."""
    before, Choice.tried = Choice.tried, {**Choice.tried, (choice.name, str(given)): variant}
    try:
        yield
    finally:
        Choice.tried = before


def brief(variant: Any) -> dict[str, object]:
    """The fields of a variant that do not have their defaults."""
    pairs = ((field, getattr(variant, field.name)) for field in fields(variant))
    return {field.name: value for field, value in pairs if value != field.default}


# Fields as files of earlier versions name them.
_RENAMED = {"alternate": "pingpong", "split": "split_k", "swapped": "swap_ab", "together": "raster"}


def restored(chosen: Any, kept: Mapping[str, object]) -> Any:
    """A variant of the same class with these fields, as a file has them; `chosen` where it has other fields."""
    known = {field.name for field in fields(chosen)}
    named = {name if name in known else _RENAMED.get(name, name): value for name, value in kept.items()}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    return type(chosen)(**given) if given.keys() <= known else chosen


def machine() -> dict[str, str | None]:
    """What answers depend on; the GPU is None where there is none."""
    return {"gpu": None if absence() else gpu(0).name, "driver": driver_release(), "version": __version__}


_answers: dict[tuple[str, str], Answer] | None = None


def answers() -> dict[tuple[str, str], Answer]:
    """What was measured on this machine; read once."""
    global _answers
    if _answers is None:
        folder = cache_folder()
        path = None if folder is None else folder / FOLDER / FILE
        _answers = {} if path is None or not path.exists() else _of_lines(path.read_text(encoding="utf-8"), machine())
    return _answers


def _of_lines(text: str, about: Mapping[str, str | None]) -> dict[tuple[str, str], Answer]:
    """The answers of these lines that are about this machine; a line that is damaged does not count."""
    found = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
            own = {name: row.pop(name) for name in ("gpu", "driver", "version")}
            answer = Answer(**row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if all(own[name] == value for name, value in about.items()):
            found[answer.choice, answer.asked] = answer
    return found


def keep(new: Collection[Answer]) -> None:
    """Choose these from now on, and keep them for later processes where there is a cache folder."""
    lines = "".join(json.dumps({**machine(), **vars(one)}) + "\n" for one in new)
    answers().update({(one.choice, one.asked): one for one in new})
    folder = cache_folder()
    if folder is not None:
        (folder / FOLDER).mkdir(exist_ok=True)
        with (folder / FOLDER / FILE).open("a", encoding="utf-8") as file:
            file.write(lines)


def export_table(path: Path | str) -> int:
    """Write what was measured on this machine to a file to ship; how many answers it has."""
    lines = [json.dumps({**machine(), **vars(one)}) for one in answers().values()]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def import_table(path: Path | str) -> int:
    """Choose what a table has for this GPU and version from now on, whatever its driver was; how many answers it has.

    A table without any is refused.
    """
    here = {name: value for name, value in machine().items() if name != "driver"}
    found = _of_lines(Path(path).read_text(encoding="utf-8"), here)
    if not found:
        this = f"{here['gpu'] or 'a machine without a GPU'} with ptxlab {here['version']}"
        raise ValueError(f"`{path}` has nothing that was measured on {this}: export it on such a machine")
    keep(found.values())
    return len(found)
