"""Answers of slow programs, kept on disk between runs: one SQLite file in `PTXLAB_CACHE` or the user's cache folder.

Delete the file whenever you like.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

_BATCH = 500


def cache_folder() -> Path:
    """Where ptxlab keeps what it can make again."""
    chosen = os.environ.get("PTXLAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ptxlab"


def key(*parts: str) -> str:
    """One name for all that an answer depends on."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def recall(keys: Iterable[str]) -> dict[str, str]:
    """The answers that are known among `keys`."""
    wanted = list(dict.fromkeys(keys))
    if not wanted or not _file().exists():
        return {}
    known: dict[str, str] = {}
    with closing(_open()) as database:
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            marks = ",".join("?" * len(part))
            known.update(database.execute(f"SELECT key, answer FROM answers WHERE key IN ({marks})", part))
    return known


def remember(answers: Mapping[str, str]) -> None:
    """Keep `answers` for later runs."""
    if not answers:
        return
    with closing(_open()) as database, database:
        database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", answers.items())


def _file() -> Path:
    return cache_folder() / "answers.sqlite"


def _open() -> sqlite3.Connection:
    _file().parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(_file(), timeout=60)
    database.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
    return database
