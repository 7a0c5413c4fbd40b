"""The course, the lessons and the steps: examples run and print what the page shows; tables are of the evidence.

A picture in a page is what the examples above it called `picture`. `BLESS=1` writes pages and pictures anew.
"""

import contextlib
import importlib.util
import inspect
import io
import os
import re
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from textwrap import dedent

import pytest

from ptxlab.kernels import wgmma_steps

DOCS = Path(__file__).parents[1] / "docs"
LESSONS = DOCS / "lessons"
FOLDERS = [LESSONS, DOCS / "hopper", DOCS / "course"]
PAGES = [page for folder in FOLDERS for page in sorted(folder.glob("[0-9]*.md"))]
BLOCK = re.compile(
    r"^```(?P<kind>python|text)\n(?P<text>.*?)^```$"
    r"|^!\[[^]\n]*\]\((?P<picture>[\w.-]+\.svg)\)$"
    r"|^<!-- measured: (?P<table>\w+) -->\n.*?^<!-- end -->$"
    r"|^<!-- source: (?P<module>[\w.]+) (?P<names>[\w. ]+) -->\n.*?^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
MOST = 70_000  # bytes of a picture


class Page:
    """A page that is run: what its blocks print, the picture that they made last, and tables of what was measured."""

    def __init__(self, path: Path) -> None:
        self.path, self.names, self.printed = path, {"__name__": "lesson"}, io.StringIO()

    def run(self) -> str:
        """The page as its blocks have it."""
        made = BLOCK.sub(self.block, self.path.read_text(encoding="utf-8"))
        assert not self.printed.getvalue(), "the page does not show what was printed last"
        return made

    def block(self, found: re.Match[str]) -> str:
        if found["picture"]:
            return self.picture(found)
        if found["table"]:
            return f"<!-- measured: {found['table']} -->\n{tables()[found['table']]()}<!-- end -->"
        if found["module"]:
            return f"<!-- source: {found['module']} {found['names']} -->\n{source(**found.groupdict())}<!-- end -->"
        if found["kind"] == "text":
            shown = self.printed.getvalue()
            assert shown, f"nothing was printed before:\n{found['text']}"
            self.printed.seek(0)
            self.printed.truncate()
            return f"```text\n{shown}```"
        with contextlib.redirect_stdout(self.printed):
            exec(compile(found["text"], self.path.name, "exec"), self.names)
        return found[0]

    def picture(self, found: re.Match[str]) -> str:
        """The file of a picture has what the blocks before it called `picture`."""
        svg, file = self.names["picture"].svg(), self.path.parent / found["picture"]  # type: ignore[attr-defined]
        if os.environ.get("BLESS"):
            file.write_text(svg, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == svg
        assert len(svg) < MOST
        return found[0]


def source(module: str, names: str, **other: str) -> str:
    """Functions of a module of the gallery, as a page shows them."""
    there = importlib.import_module(f"ptxlab.kernels.{module}")
    texts = [dedent(inspect.getsource(inspect.unwrap(attrgetter(name)(there)))) for name in names.split()]
    return "```py\n" + "\n\n".join(texts) + "```\n"


def tables() -> dict[str, Callable[[], str]]:
    """What makes the tables of measurements, by name."""
    spec = importlib.util.spec_from_file_location("lesson_tables", LESSONS.parent / "lesson_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Callable[[], str]] = module.TABLES
    return found


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("page", [*PAGES, DOCS / "course" / "README.md"], ids=lambda page: page.stem)
def test_examples_print_what_is_shown(page: Path) -> None:
    made = Page(page).run()
    if os.environ.get("BLESS"):
        page.write_text(made, encoding="utf-8")
    assert made == page.read_text(encoding="utf-8")


def test_every_page_shows_a_wrong_kernel_and_a_right_one() -> None:
    """Lessons show the wrong one first, steps and chapters the right one."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "## Wrong" in text
        assert "## Right" in text
        assert (text.index("## Wrong") < text.index("## Right")) == (page.parent == LESSONS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_picture_and_every_page_is_shown(folder: Path) -> None:
    """Pictures by a page, pages by the README."""
    pages = [page for page in PAGES if page.parent == folder]
    shown = {found["picture"] for page in pages for found in BLOCK.finditer(page.read_text(encoding="utf-8"))}
    assert {file.name for file in folder.glob("*.svg")} == shown - {None}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in pages} == set(re.findall(r"\(([0-9][\w-]+\.md)\)", readme))


def test_kernels_of_the_steps_are_short() -> None:
    """Less than 80 lines each, in a page or in the gallery."""
    steps = [page for page in PAGES if page.parent.name == "hopper"]
    texts = [found[1] for page in steps for found in re.finditer(r'KERNEL = """(.*?)"""', page.read_text(), re.DOTALL)]
    gallery = DOCS.parent / "src" / "ptxlab" / "kernels" / "wgmma_steps"
    texts += [(gallery / f"{step}.py").read_text(encoding="utf-8") for step in wgmma_steps.STEPS]
    assert len(texts) == 10
    assert max(text.count("\n") for text in texts) < 80
