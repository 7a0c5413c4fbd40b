"""The answers that a self-contained file has inside: all that the page can ask for, compressed in parts."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator

import numpy as np

from ptxlab.lab.encoding import packed
from ptxlab.lab.memory import PAGE
from ptxlab.lab.page import page, pair
from ptxlab.lab.ranks import NodeViews
from ptxlab.lab.tracks import TILE
from ptxlab.lab.views import Views
from ptxlab.lab.windows import WINDOW
from ptxlab.trace.accesses import GLOBAL
from ptxlab.values import Json

PART, MOST = 1 << 19, 96 << 20  # characters of a part, and of all answers
TIMES = 64  # that an instruction reads a tile, which are shown
SECONDS = 10  # in which origins are followed
MISSING = (
    "This is not in the file. It has the origins of elements of arrays at the end of the launch and of registers of "
    "lane 0, as many as were found in ten seconds. `ptxlab lab` with the recorded launch shows all."
)


class TooLargeError(ValueError):
    """A launch that does not fit into a file."""


def write_page(views: Views | NodeViews) -> str:
    """The page with all its answers; `TooLargeError` says what to leave out."""
    parts: list[str] = []
    names: dict[str, tuple[int, str]] = {}  # the part that has an answer, and what it is called there
    known: dict[str, tuple[int, str]] = {}  # answers that are equal are there once
    pending: Json = {}
    size = total = 0

    def finish() -> None:
        nonlocal size
        if pending:
            parts.append(packed(zlib.compress(json.dumps(pending, separators=(",", ":")).encode(), 9)))
            pending.clear()
            size = 0

    def add(name: str) -> int:
        """Add an answer; returns how many characters it has."""
        nonlocal size
        try:
            answer = views.get(name)
        except KeyError:
            return 0  # such as SASS where there is no ptxas: the page says that it is not there
        text = json.dumps(answer, separators=(",", ":"))
        place = len(parts), name
        names[name] = known.setdefault(text, place)
        if names[name] != place:
            return 0
        pending[name] = answer
        size += len(text)
        if size > PART:
            finish()
        return len(text)

    launches = _launches(views)
    if isinstance(views, NodeViews):
        for name in views.names():
            total += add(name)
    for before, launch in launches:
        for name in names_of(launch):
            total += add(f"{before}{name}")
            if total > MOST:
                count = sum(one.steps.count for _, one in launches)
                raise TooLargeError(
                    f"{count:,} steps of warps are too many for one file: record fewer with `--blocks`, "
                    "`--warp` or `--limit`, or serve the page without `--html`"
                )
    followed = time.monotonic()
    for before, launch in launches:
        for name in origins_of(launch, launch.get("run")):
            if total > MOST or time.monotonic() > followed + SECONDS:
                break
            total += add(f"{before}{name}")
    finish()
    return page({"parts": parts, "names": names, "missing": MISSING}, of_node=isinstance(views, NodeViews))


def _launches(views: Views | NodeViews) -> list[tuple[str, Views]]:
    """The launches, and how the names of what each has start."""
    if isinstance(views, Views):
        return [("", views)]
    return [(f"{number}/", views.launch(number)) for number in range(len(views.traces))]


def write_pair(first: Views | NodeViews, second: Views) -> str:
    """Two launches in one file, beside each other."""
    return pair([first.title, second.title], [write_page(first), write_page(second)])


def names_of(views: Views) -> Iterator[str]:
    """What the page can ask for, in the order in which it does."""
    steps, accesses = views.steps, views.trace.accesses
    run = views.get("run")
    windows = range(max(-(-steps.count // WINDOW), 1))
    yield "run"
    yield "sass"
    yield from (f"line/{line}" for line in run["counts"])
    for block in run["blocks"]:
        yield f"tensor/{block['number']}"
        used = [one["step"] for one in views.get(f"tensor/{block['number']}")]
        yield from (f"words/{block['number']}/{step}" for step in [-1, *used[:TIMES]])
        yield f"copies/{block['number']}"
        yield from (f"copy/{block['number']}/{one['number']}" for one in views.get(f"copies/{block['number']}")[:TIMES])
        yield from _timelines(views, block)
    yield from _tiles(views, run)
    for window in windows:
        yield f"steps/{window}"
        yield f"accesses/{window}"
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


def _timelines(views: Views, block: Json) -> Iterator[str]:
    """The timeline of a block at all levels of detail."""
    level = 0
    while True:
        yield from (
            f"timeline/{block['number']}/{level}/{tile}"
            for tile in range(block["first"] // (TILE << level), block["last"] // (TILE << level) + 1)
        )
        if TILE << level >= views.steps.count:
            return
        level += 1


def _tiles(views: Views, run: Json) -> Iterator[str]:
    """The tiles that instructions read, the first times."""
    lines = dict.fromkeys(one["line"] for one in run["instructions"] if one.get("tile"))
    for line in lines:
        yield from (f"tiles/{step}" for step in views.get(f"line/{line}")["steps"][:TIMES])


def origins_of(views: Views, run: Json) -> Iterator[str]:
    """Elements of arrays that the launch has written, as it leaves them; then registers of the first lanes."""
    accesses, count = views.trace.accesses, views.steps.count
    rows = accesses.writes.take(accesses.writes.space == GLOBAL)
    for number, region in enumerate(accesses.regions):
        size = run["arrays"][number]["itemsize"]
        inside = rows.address[(rows.address >= region.base) & (rows.address < region.base + region.size)] - region.base
        for element in np.unique(inside // size).tolist():
            yield f"origin/memory/global/{number}/{element * size}/{size}/{count}"
    for window in range(-(-count // WINDOW)):
        for warp in views.steps.warps:
            writes = views.get(f"registers/{warp}/{window}")["writes"]
            for name, lanes, after in zip(writes["names"], writes["lanes"], writes["after"], strict=True):
                if lanes & 1:
                    yield f"origin/register/{warp}/0/{name}/{after + 1}"


def _is_in(window: int, block: Json) -> bool:
    """Whether a block executes anything in a window, or has its last step just before it."""
    return bool(block["first"] // WINDOW <= window <= block["last"] // WINDOW)
