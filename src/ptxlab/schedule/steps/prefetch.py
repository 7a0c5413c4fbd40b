"""`prefetch()`: what is staged in registers is loaded one iteration before it is read."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def prefetch(state: State) -> State:
    """The loop of the stage is unrolled; its first iteration is loaded in the last one of the tile before."""
    if not state.pipeline.at:
        state.illegal("no copies run ahead", "`pipeline(stages=3)` first")
    loops = {one.at for one in state.stages if one.space == "registers"}
    if len(loops) != 1 or "" in loops:
        state.illegal("no arrays are staged in registers in one loop", '`stage("a", in_="registers")`')
    part = state.part(loops.pop())
    if (state.count(part) or 0) < 2:
        state.illegal(f"`{part.name}` has no two iterations of which one can be ahead")
    state = state.with_parts(replace(part, unrolled=True))
    return replace(state, prefetch=part.name, tiled=())
