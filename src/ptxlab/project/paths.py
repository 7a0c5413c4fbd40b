"""Patterns of files, as `.gitignore` has them: `*` and `?` in a name, `**` any folders, a folder means all below it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def matches(path: Path, patterns: Iterable[str], folder: Path) -> bool:
    """Whether one of the patterns, which are relative to a folder, means the file.

    >>> here = Path("/project")
    >>> matches(Path("/project/a/generated/k.ptx"), ["generated"], here)
    True
    >>> matches(Path("/project/a/generated/k.ptx"), ["generated/*.ptx"], here)
    False
    """
    # Without following symbolic links: a file goes by the name it is given.
    relative = os.path.relpath(os.path.abspath(path), folder).replace(os.sep, "/")  # noqa: PTH100
    return any(_compiled(pattern).match(relative) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern without `/` but at its end is of a name at any depth; others are of paths from the folder."""
    plain = pattern.removeprefix("./").rstrip("/")
    anywhere = "" if "/" in plain else "(?:.*/)?"
    parts = re.split(r"((?:\*\*/)+|/\*\*$|\*+|\?)", plain.lstrip("/"))
    return re.compile(f"{anywhere}{''.join(map(_part, parts))}(?:/.*)?$", re.DOTALL)


def _part(text: str) -> str:
    if text.startswith("**/"):
        return "(?:.*/)?"
    known = {"/**": "(?:/.*)?", "**": ".*", "?": "[^/]"}
    return known.get(text, "[^/]*" if text[:1] == "*" else re.escape(text))
