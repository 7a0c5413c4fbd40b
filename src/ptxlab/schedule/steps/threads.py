"""`threads("i", "j")`: iterations of these loops are run by threads; without names, those that `tile` has just cut."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MOST_THREADS, State


def threads(state: State, *loops: str) -> State:
    """The last loop changes from a thread to the next. A reduction over such a loop is combined among threads."""
    if not loops and not state.tiled:
        state.illegal("`threads` is given no loop", '`threads("i", "j")`, or `tile(i=8).threads()`')
    names = [state.named(loop)[0] for loop in loops] or list(state.tiled)
    for name in names:
        part = state.part(name)
        if state.count(part) is None:
            state.refuse(
                "unknown-extent",
                f"`{name}` has {state.extent(part.axis)} iterations, and a block has a fixed number of threads",
                f"tile `{part.axis}` first, or fix its size: `schedule(..., n=1024)`",
            )
        state = state.mapped(name, "thread")
    state = replace(state, threads=(*state.threads, *names), tiled=())
    if state.thread_count > MOST_THREADS:
        state.refuse("schedule-limit", f"{state.thread_count} threads, a block has at most {MOST_THREADS}")
    return state
