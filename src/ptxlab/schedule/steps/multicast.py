"""`multicast("a", 2)`: so many blocks of a cluster read the same of an array; each copies a part of it for all."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MulticastCopy, State
from ptxlab.schedule.steps.cluster import MOST_BLOCKS


def multicast(state: State, array: str, blocks: int = 2) -> State:
    """Blocks whose tiles are beside each other in the last loop that the array does not depend on form a cluster."""
    if not state.specialized:
        state.refuse("illegal-step", "no warp of its own copies", "`specialize` first")
    if not state.group:
        state.refuse("illegal-step", "tiles have no order", "`raster(8)` first")
    if state.cluster or state.multicast:
        state.refuse("illegal-step", "there is a cluster already")
    if not isinstance(blocks, int) or not 2 <= blocks <= MOST_BLOCKS:
        state.refuse("schedule-limit", f"a cluster of {blocks!r:.40} blocks, expected 2 to {MOST_BLOCKS}")
    copied = [one.array for one in state.stages if one.at == state.pipeline.at]
    if array not in copied:
        state.refuse("illegal-step", f"`{array}` is not copied by TMA", f"these are: {', '.join(copied)}")
    parts = [name for name in state.blocks if state.part(name).axis not in state.indexing(array)]
    if not parts:
        state.refuse("illegal-step", f"no two blocks read the same of `{array}`")
    return replace(state, multicast=MulticastCopy(array, blocks, parts[-1], len(state.steps)), tiled=())
