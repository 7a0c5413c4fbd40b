"""Long results compared whole with what they were before, by a digest each: `BLESS=1 pytest FILE` writes these anew.

Where a test compares one of many parameters, those that are gone stay in the file until it is removed before.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path


def compare(file: Path, found: Mapping[str, object]) -> None:
    """Assert that each result is what it was when the file was written; the names that differ are shown."""
    shown = {name: _digest(result) for name, result in found.items()}
    if os.environ.get("BLESS"):
        _write(file, shown)
    assert shown == _read(file)


def compare_one(file: Path, name: str, found: object) -> None:
    """Assert it of one result among those of a file."""
    if os.environ.get("BLESS"):
        _write(file, (_read(file) if file.exists() else {}) | {_line(name): _digest(found)})
    assert _read(file)[_line(name)] == _digest(found)


def _line(name: str) -> str:
    return " ".join(name.split())


def _digest(result: object) -> str:
    return hashlib.sha256(str(result).encode()).hexdigest()[:16]


@cache
def _read(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line[17:]: line[:16] for line in lines}


def _write(file: Path, shown: Mapping[str, str]) -> None:
    file.write_text("".join(f"{digest} {name}\n" for name, digest in shown.items()), encoding="utf-8")
    _read.cache_clear()
