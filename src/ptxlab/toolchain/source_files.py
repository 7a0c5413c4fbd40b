"""The texts that a program was compiled from: its own file and the user's headers, as `.file` names them.

A program names files as it likes, and may be a stranger's: only what is in a folder that the user has named is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ptxlab.report import Source
from ptxlab.toolchain.compiler_messages import near

_FOLDERS = ("-I", "--include-path")  # not `-isystem`, which is for libraries
_SOURCES = {".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"}
_LARGEST = 4 << 20  # bytes


def named_folders(options: Sequence[str]) -> list[Path]:
    """The folders of headers, and of other files to compile, that these options of nvcc name."""
    found = []
    for at, option in enumerate(options):
        flag = next((flag for flag in _FOLDERS if option.startswith(flag)), None)
        if flag is not None:
            given = option[len(flag) :].removeprefix("=") or (options[at + 1] if at + 1 < len(options) else "")
            found.append(Path(given))
        elif not option.startswith("-") and Path(option).suffix in _SOURCES:
            found.append(Path(option).parent)
    return [folder.resolve() for folder in found]


def read_source(file: str, folders: Iterable[Path]) -> Source | None:
    """The text of a file that is below one of these folders."""
    path = Path(file).resolve()
    is_inside = any(path.is_relative_to(folder) for folder in folders)
    if not (is_inside and path.is_file() and path.stat().st_size < _LARGEST):
        return None
    return Source(near(file), path.read_text("utf-8", "replace"))
