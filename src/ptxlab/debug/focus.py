"""Which thread is inspected, in the words of cuda-gdb: `cuda kernel 1 block (1,0,0) thread (3,0,0)`, `cuda lane 5`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxlab.debug.debugger import Debugger
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.values import index_text

_WORD = re.compile(r"\s*,?\s*(kernel|grid|device|sm|block|thread|warp|lane)\s*(\((?:\s*\d+\s*,?)+\)|[\d,]*)\s*")
_ONE_ONLY = ("grid", "device", "sm")  # a recorded launch has one, and its blocks are on no SM
_MOST_ROWS = 60


def focus_on(debugger: Debugger, given: str) -> None:
    """Inspect the thread that some words name; what they leave out stays as it is, where that is possible."""
    found: dict[str, list[int]] = {}
    at = 0
    while at < len(given):
        word = _WORD.match(given, at)
        if word is None:
            raise UnknownError(f"`{given}` is not like `block (1,0,0) thread (3,0,0)` or `warp 2 lane 5`")
        found[word[1]] = [int(one) for one in re.findall(r"\d+", word[2])]
        at = word.end()
    named = {word: numbers for word, numbers in found.items() if numbers and word not in _ONE_ONLY}
    launch = named.pop("kernel", [debugger.launch])[0]
    if launch != debugger.launch:
        debugger.enter(launch)
    if not named:
        return
    scope, size = debugger.scope, debugger.trace.accesses.threads_in_block
    block = _flat("block", named["block"], debugger.trace.grid) if "block" in named else scope.block
    if "thread" in named:
        own = _flat("thread", named["thread"], debugger.trace.block)
    else:
        warp = named.get("warp", [scope.warp])[0]
        own = 32 * warp + named.get("lane", [0 if "warp" in named else scope.lane])[0]
        if "lane" in named and named["lane"][0] >= 32:
            raise UnknownError("a warp has lanes 0 to 31")
    if own >= size:
        raise UnknownError(f"a block has {size} threads, 0 to {size - 1}")
    debugger.focus(block * size + own)


def _flat(what: str, index: Sequence[int], extents: Sequence[int]) -> int:
    """The number of a block or a thread by its index, or by its number."""
    if len(index) == 1:
        number = index[0]
        if number >= extents[0] * extents[1] * extents[2]:
            raise UnknownError(f"there is no {what} {number}")
        return number
    x, y, z = (*index, 0, 0)[:3]
    if x >= extents[0] or y >= extents[1] or z >= extents[2]:
        raise UnknownError(f"there is no {what} ({x},{y},{z}): there are {' × '.join(map(str, extents))}")
    return x + extents[0] * (y + extents[1] * z)


def focus_text(debugger: Debugger) -> str:
    """`block (1,0,0), thread (3,0,0), warp 0, lane 3`."""
    scope = debugger.scope
    block, own = index_text(scope.block, debugger.trace.grid), index_text(scope.own, debugger.trace.block)
    return f"kernel {debugger.launch}, block {block}, thread {own}, warp {scope.warp}, lane {scope.lane}"


def view(debugger: Debugger, what: str) -> Iterator[str]:
    """The kernel, the blocks, the warps, the lanes of the warp or the threads: where each is; `→` marks the focus."""
    views = {"kernels": _kernels, "blocks": _blocks, "warps": _warps, "lanes": _lanes, "threads": _threads}
    if what not in views:
        raise UnknownError(f"`info cuda {what}`: expected one of {', '.join(views)}")
    rows = list(views[what](debugger))
    yield from rows[:_MOST_ROWS]
    if len(rows) > _MOST_ROWS:
        yield f"and {len(rows) - _MOST_ROWS:,} more rows"


def _kernels(debugger: Debugger) -> Iterator[str]:
    for number, launch in enumerate(debugger.launches.launches):
        trace = launch.open()
        grid, block = (f"({','.join(map(str, extents))})" for extents in (trace.grid, trace.block))
        mark = "→" if number == debugger.launch else " "
        at = f"  {launch.place}" if launch.place else ""
        yield f"{mark} kernel {number}  {launch.kernel}  grid {grid}  block {block}  seed {trace.seed}{at}"


def _blocks(debugger: Debugger) -> Iterator[str]:
    now, size = debugger.instructions(), debugger.trace.accesses.threads_in_block
    for block in debugger.trace.blocks:
        running = sum(thread // size == block for thread in now)
        mark = "→" if block == debugger.scope.block else " "
        yield f"{mark} block {index_text(block, debugger.trace.grid):<12} {running:>5} threads run"


def _warps(debugger: Debugger) -> Iterator[str]:
    now, size = debugger.instructions(), debugger.trace.accesses.threads_in_block
    for first in debugger.warps():
        lanes = debugger.lanes(first)
        where = dict.fromkeys(_place(debugger, now.get(thread)) for thread in lanes)
        running = sum(thread in now for thread in lanes)
        mark = "→" if debugger.thread in lanes else " "
        block = index_text(first // size, debugger.trace.grid)
        places = [*where][:4] + ["…"] * (len(where) > 4)
        yield f"{mark} block {block:<10} warp {first % size // 32:<3} {running:>2} threads  {', '.join(places)}"


def _lanes(debugger: Debugger) -> Iterator[str]:
    now, size = debugger.instructions(), debugger.trace.accesses.threads_in_block
    for thread in debugger.lanes(debugger.thread):
        mark = "→" if thread == debugger.thread else " "
        own = index_text(thread % size, debugger.trace.block)
        yield f"{mark} lane {thread % size % 32:>2}  thread {own:<12} {_place(debugger, now.get(thread))}"


def _threads(debugger: Debugger) -> Iterator[str]:
    """Threads one after the other that are at the same line are one row, as cuda-gdb shows them."""
    now, size = debugger.instructions(), debugger.trace.accesses.threads_in_block
    threads = sorted(debugger.trace.columns.threads)
    start = 0
    for at in range(1, len(threads) + 1):
        here = _place(debugger, now.get(threads[start]))
        is_same = (
            at < len(threads)
            and threads[at] == threads[at - 1] + 1
            and threads[at] // size == threads[start] // size
            and _place(debugger, now.get(threads[at])) == here
        )
        if is_same:
            continue
        mark = "→" if threads[start] <= debugger.thread <= threads[at - 1] else " "
        block = index_text(threads[start] // size, debugger.trace.grid)
        first, last = (index_text(thread % size, debugger.trace.block) for thread in (threads[start], threads[at - 1]))
        span = first if first == last else f"{first} to {last}"
        yield f"{mark} block {block:<10} thread {span:<24} {at - start:>4}  {here}"
        start = at


def _place(debugger: Debugger, instruction: int | None) -> str:
    if instruction is None:
        return "ended" if debugger.trace.is_complete else "no step recorded"
    place = debugger.place(instruction)
    return f"{place.file.rpartition('/')[2]}:{place.line}" if place.file else f"line {place.line}"
