"""`specialize()`: one more warp copies by TMA, and all others compute; they wait for each other at mbarriers only.

With `tcgen05`, another warp issues the multiplications, and all others do what follows the sum.
"""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MOST_THREADS, State


def specialize(state: State) -> State:
    """Each stage has one mbarrier for when it is full, and one for when it has been read."""
    if state.pipeline.by != "tma":
        state.illegal("no copies are by TMA", '`pipeline(by="tma")` first')
    if state.specialized:
        state.illegal("a warp of its own copies already")
    made = replace(state, specialized=True, tiled=())
    if state.thread_count % 32 or made.launched > MOST_THREADS:
        state.illegal(f"{state.thread_count} threads compute, expected whole warps, and less of them")
    return made
