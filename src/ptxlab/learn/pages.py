"""Exercises of what pages and the gallery have: a kernel of theirs with a mistake in it."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab import author
from ptxlab.syntax import format

if TYPE_CHECKING:
    from ptxlab.measure.entry import Launch

_KERNEL = re.compile(r'^KERNEL = """\\\n(.*?)^"""$', re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WIDTH = 96  # columns of comments


def kernel_on_page(exercise: str) -> str:
    """The PTX on the page that the file of an exercise belongs to."""
    page = Path(exercise).parent.with_suffix(".md")
    found = _KERNEL.search(page.read_text(encoding="utf-8"))
    assert found is not None, page
    return found[1]


def code_on_page(exercise: str, until: str | None = None) -> str:
    """The Python on the page that has its kernel, all of it or up to a line that starts like that."""
    page = Path(exercise).parent.with_suffix(".md")
    found = next(block for block in _PYTHON.findall(page.read_text(encoding="utf-8")) if "@kernel" in block)
    before, there, _ = (found, True, "") if until is None else found.partition(f"\n{until}")
    assert there, f"{page} has no line that starts with {until}"
    return str(before).rstrip() + "\n"


def names_on_page(exercise: str) -> dict[str, object]:
    """What the Python on the page defines before its first wrong or right kernel runs."""
    page = Path(exercise).parent.with_suffix(".md")
    before = re.split(r"^## (?:Wrong|Right)$", page.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in _PYTHON.findall(before):
            exec(compile(block, page.name, "exec"), names)
    return names


def text_of(launch: Launch) -> str:
    """The PTX of a launch of the gallery."""
    return str(launch.kernel) if isinstance(launch.kernel, author.Kernel) else format(launch.module)


def commented(words: str, text: str, mark: str = "//") -> str:
    """PTX, or with the mark `#` Python, with comments above it.

    >>> print(commented("Mend it.", "ret;"))
    // Mend it.
    <BLANKLINE>
    ret;
    """
    paragraphs = [textwrap.wrap(" ".join(part.split()), _WIDTH) or [""] for part in words.strip().split("\n\n")]
    lines = [mark if not line else f"{mark} {line}" for part in paragraphs for line in [*part, ""]]
    return "\n".join([*lines[:-1], "", text])
