"""The answers that a self-contained file has inside: all that the page can ask for, compressed in parts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from ptxlab.lab.encoding import packed
from ptxlab.lab.memory import PAGE
from ptxlab.lab.page import page
from ptxlab.lab.views import Views
from ptxlab.lab.windows import WINDOW

PART, MOST = 1 << 19, 96 << 20  # characters of a part, and of all answers
MISSING = "This is not in the file. `ptxlab lab` with the recorded launch shows it."


class TooLargeError(ValueError):
    """A launch that does not fit into a file."""


def write_page(views: Views) -> str:
    """The page with all its answers; `TooLargeError` says what to leave out."""
    parts: list[str] = []
    names: dict[str, tuple[int, str]] = {}  # the part that has an answer, and what it is called there
    known: dict[str, tuple[int, str]] = {}  # answers that are equal are there once
    pending: dict[str, Any] = {}
    size = total = 0

    def finish() -> None:
        nonlocal size
        if pending:
            parts.append(packed(zlib.compress(json.dumps(pending, separators=(",", ":")).encode(), 9)))
            pending.clear()
            size = 0

    for name in names_of(views):
        try:
            answer = views.get(name)
        except KeyError:
            continue  # such as SASS where there is no ptxas: the page says that it is not there
        text = json.dumps(answer, separators=(",", ":"))
        place = len(parts), name
        names[name] = known.setdefault(text, place)
        if names[name] != place:
            continue
        pending[name] = answer
        size, total = size + len(text), total + len(text)
        if total > MOST:
            raise TooLargeError(
                f"{views.steps.count:,} steps of warps are too many for one file: record fewer with `--blocks`, "
                "`--warp` or `--limit`, or serve the page without `--html`"
            )
        if size > PART:
            finish()
    finish()
    return page({"parts": parts, "names": names, "missing": MISSING})


def names_of(views: Views) -> Iterator[str]:
    """What the page can ask for, in the order in which it does."""
    steps, accesses = views.steps, views.trace.accesses
    run = views.get("run")
    windows = range(max(-(-steps.count // WINDOW), 1))
    yield "run"
    yield "sass"
    yield from (f"line/{line}" for line in run["counts"])
    for window in windows:
        yield f"steps/{window}"
        for block in run["blocks"]:
            if not _is_in(window, block):
                continue
            number = block["number"]
            yield f"warps/{number}/{window}"
            yield f"barriers/{number}/{window}"
            yield from (f"registers/{warp}/{window}" for warp in block["warps"])
            pages = range(-(-accesses.shared_size // PAGE))
            yield from (f"memory/shared/{number}/{page}/{window}" for page in pages)
        for region, one in enumerate(accesses.regions):
            yield from (f"memory/global/{region}/{page}/{window}" for page in range(-(-one.size // PAGE)))


def _is_in(window: int, block: dict[str, Any]) -> bool:
    """Whether a block executes anything in a window, or has its last step just before it."""
    return bool(block["first"] // WINDOW <= window <= block["last"] // WINDOW)
