"""`multicast("a", 2)`: so many blocks of a cluster read the same of an array; each copies a part of it for all.

With `multicast("b", 2)` too, a cluster has four blocks, two by two.
"""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MulticastCopy, State
from ptxlab.schedule.steps.cluster import MOST_BLOCKS


def multicast(state: State, array: str, blocks: int = 2) -> State:
    """Blocks whose tiles are beside each other in the last loop that the array does not depend on form a cluster."""
    if not state.specialized:
        state.illegal("no warp of its own copies", "`specialize` first")
    if not state.group:
        state.illegal("tiles have no order", "`raster(8)` first")
    if state.cluster or state.pair > 1:
        state.illegal("there is a cluster already")
    others = state.together()
    if not isinstance(blocks, int) or not 2 <= blocks <= MOST_BLOCKS // others:
        said = (
            f"a cluster of {others} times {blocks!r:.40} blocks"
            if others > 1
            else f"a cluster of {blocks!r:.40} blocks"
        )
        state.refuse("schedule-limit", f"{said}, expected 2 to {MOST_BLOCKS}")
    copied = [one.array for one in state.stages if one.at == state.pipeline.at]
    if array not in copied:
        state.illegal(f"`{array}` is not copied by TMA", f"these are: {', '.join(copied)}")
    parts = [name for name in state.blocks if state.part(name).axis not in state.indexing(array)]
    if not parts:
        state.illegal(f"no two blocks read the same of `{array}`")
    if any(parts[-1] == one.part for one in state.multicast):
        state.illegal(f"blocks of a cluster have tiles beside each other in `{parts[-1]}` already")
    made = MulticastCopy(array, blocks, parts[-1], others, len(state.steps))
    return replace(state, multicast=(*state.multicast, made), tiled=())
