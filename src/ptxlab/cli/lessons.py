"""Pages of the documentation with kernels that `ptxlab lab` shows: their examples are run, and a launch is recorded.

A page is named by its folder and file, `lessons/08-phases`. Its launches are named by the section that makes them:
`wrong`, `wrong-2`, `right`.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.guides import guides
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.device.record import Record
    from ptxlab.device.result import Result

FOLDERS = ("course", "hopper", "lessons")
_PART = re.compile(r"^## (?P<heading>[^\n]+)$|^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SECTIONS = ("wrong", "right")


@dataclass(frozen=True)
class LessonPage:
    """A page with examples."""

    name: str
    path: Path

    @property
    def title(self) -> str:
        """Its first line."""
        return self.path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")

    def launches(self, record: Record) -> Iterator[tuple[str, Result]]:
        """The launches of the page as its examples make them, each with its name."""
        from ptxlab.launch.recorded import recording_launches

        text = self.path.read_text(encoding="utf-8")
        names: dict[str, object] = {"__name__": "lesson"}
        section, counts = "", dict.fromkeys(_SECTIONS, 0)
        for part in _PART.finditer(text):
            if part["heading"]:
                section = part["heading"].strip().lower()
                continue
            above = "\n" * text.count("\n", 0, part.start("text"))  # so that findings are on the lines of the page
            code = compile(above + part["text"], str(self.path), "exec")
            if section not in counts:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(code, names)
                continue
            with recording_launches(record) as results, contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
            for result in results:
                counts[section] += 1
                yield section + (f"-{counts[section]}" if counts[section] > 1 else ""), result


def pages() -> dict[str, LessonPage]:
    """All pages by name."""
    numbered = re.compile(rf"({'|'.join(FOLDERS)})/\d")
    return {name: LessonPage(name, path) for name, path in guides().items() if numbered.match(name)}


def named(what: str) -> LessonPage | None:
    """The page of a name, or of its file; None if it is meant as something else."""
    known = pages()
    if what.endswith(".md"):
        given = Path(what).resolve()
        return next((page for page in known.values() if page.path.resolve() == given), None)
    if what in known:
        return known[what]
    if what.partition("/")[0] not in FOLDERS or Path(what).exists():
        return None
    close = nearest(what, known)
    meant = f"; did you mean `{close}`?" if close else ": `ptxlab lab --list` lists them"
    raise click.UsageError(f"there is no page `{what}`{meant}")


def launch_of(page: LessonPage, variant: str | None, record: Record) -> Result:
    """A launch of a page: the one that is asked for, otherwise the first that is wrong, or the first."""
    known: dict[str, Result] = {}
    for name, result in page.launches(record):
        known[name] = result
        if name == (variant or _SECTIONS[0]):
            return result
    if variant is None and known:
        return next(iter(known.values()))
    asked = f"no launch `{variant}`; it has {', '.join(known)}" if known else "no launch to show"
    raise click.UsageError(f"`{page.name}` has {asked}")
