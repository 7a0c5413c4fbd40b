"""`blocks("i", "j")`: iterations of these loops are run by blocks; without names, those that `tile` has just cut."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MOST_BLOCK_PARTS, State


def blocks(state: State, *loops: str) -> State:
    """The last loop changes from a block to the next."""
    if not loops and not state.tiled:
        state.illegal("`blocks` is given no loop", '`blocks("i", "j")`, or `tile(i=128).blocks()`')
    names = [state.named(loop)[0] for loop in loops] or list(state.tiled)
    for name in names:
        part = state.part(name)
        if part.axis in state.algorithm.reduced:
            state.refuse(
                "carried-dependence",
                f"`{part.axis}` carries a dependence: it is reduced over, and blocks do not share registers",
                "threads can share a reduction, and blocks of a cluster: `threads`, `cluster`",
            )
        state = state.mapped(name, "block")
    found = (*state.blocks, *names)
    if len(found) > MOST_BLOCK_PARTS:
        said = f"{len(found)} loops are run by blocks, a grid has {MOST_BLOCK_PARTS} dimensions"
        state.illegal(said, "leave one to threads or to each block, or make two dimensions of the arrays one")
    return replace(state, blocks=found, tiled=())
