"""Answers of slow programs, kept on disk between runs: one SQLite file in the cache folder (`native.cache`).

Delete the file whenever you like.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from ptxlab.native.cache import cache_folder, say_once

_BATCH = 500


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
    known: dict[str, str] = {}

    def ask(database: sqlite3.Connection) -> None:
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            marks = ",".join("?" * len(part))
            known.update(database.execute(f"SELECT key, answer FROM answers WHERE key IN ({marks})", part))

    if wanted:
        _open(ask)
    return known


def remember(answers: Mapping[str, str]) -> None:
    """Keep `answers` for later runs."""
    if answers:
        _open(lambda database: database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", answers.items()))


def _open(use: Callable[[sqlite3.Connection], object]) -> None:
    """Use the file of answers, where there can be one; one that is damaged is left alone, and said once."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        with closing(sqlite3.connect(folder / "answers.sqlite", timeout=60)) as database, database:
            database.execute("PRAGMA synchronous = OFF")  # not to wait for the disk: answers can be asked again
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"
            )
            use(database)
    except sqlite3.DatabaseError as failure:
        say_once(folder, f"has no `answers.sqlite` that can be used ({failure})")
