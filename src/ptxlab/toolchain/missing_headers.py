"""Where a header is that a compiler did not find: near the file that includes it, as projects keep theirs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

_MISSING = re.compile(
    r'(?P<name>[^\s"]+): No such file or directory|(?:cannot|could not) open source file "(?P<name2>[^"]+)"'
)
_LEVELS = 6  # folders above the file


def help_for_missing(message: str, file: str) -> str | None:
    """The option with which a compiler finds the header that a message names, seen from the folder of its file."""
    found = _MISSING.search(message)
    if found is None:
        return None
    header, folder = found["name"] or found["name2"], Path(file).absolute().parent
    for candidate in _candidates(folder):
        if (candidate / header).is_file():
            near = Path(os.path.relpath(candidate)) if candidate.drive == Path.cwd().drive else candidate
            return f"`{near / header}` exists: give the compiler `{shlex.quote(f'-I{near}')}`"
    return None


def _candidates(folder: Path) -> Iterator[Path]:
    """Folders in which a project may have headers: above a file, up to the project's root, and two below each."""
    for above in (folder, *folder.parents[: _LEVELS - 1]):
        if above in (Path.home(), Path(above.anchor)):
            return
        yield above
        below = sorted(entry for entry in _entries(above) if entry.is_dir() and not entry.name.startswith("."))
        yield from below
        for inner in below:
            yield inner / "include"
        if (above / ".git").exists():
            return


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except PermissionError:
        return []
