"""Exercises of what pages and the gallery have: a kernel of theirs with a mistake in it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from ptxlab import author
from ptxlab.syntax import format

if TYPE_CHECKING:
    from ptxlab.measure.entry import Launch

_KERNEL = re.compile(r'^KERNEL = """\\\n(.*?)^"""$', re.MULTILINE | re.DOTALL)
_WIDTH = 96  # columns of comments


def kernel_on_page(exercise: str) -> str:
    """The PTX on the page that the file of an exercise belongs to."""
    page = Path(exercise).parent.with_suffix(".md")
    found = _KERNEL.search(page.read_text(encoding="utf-8"))
    assert found is not None, page
    return found[1]


def text_of(launch: Launch) -> str:
    """The PTX of a launch of the gallery."""
    return str(launch.kernel) if isinstance(launch.kernel, author.Kernel) else format(launch.module)


def commented(words: str, text: str) -> str:
    """PTX with comments above it.

    >>> print(commented("Mend it.", "ret;"))
    // Mend it.
    <BLANKLINE>
    ret;
    """
    paragraphs = [textwrap.wrap(" ".join(part.split()), _WIDTH) or [""] for part in words.strip().split("\n\n")]
    lines = ["//" if not line else f"// {line}" for part in paragraphs for line in [*part, ""]]
    return "\n".join([*lines[:-1], "", text])
