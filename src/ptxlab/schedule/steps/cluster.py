"""`tile(x=16).cluster()`: blocks of a cluster share a reduction, and combine it through their shared memory."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import MOST_BLOCK_PARTS, State

MOST_BLOCKS = 8  # of a cluster, on all GPUs that have clusters


def cluster(state: State, *loops: str) -> State:
    """Each block has every so many iterations of a loop that is reduced over; sums are added in the order of blocks."""
    names = [state.named(loop)[0] for loop in loops] or list(state.tiled)
    if len(names) != 1 or state.cluster:
        state.illegal("a cluster runs one loop", "`tile(x=64).tile(x=16).cluster()`")
    part = state.part(names[0])
    state.needs("clusters need", 90)
    if part.axis not in state.algorithm.reduced:
        state.illegal(f"`{part.axis}` is not reduced over", "`blocks` runs loops of independent iterations")
    count = state.count(part)
    if count is None or not 2 <= count <= MOST_BLOCKS:
        said = f"`{part.name}` has {state.extent(part.axis) if count is None else count} iterations"
        state.refuse("schedule-limit", f"{said}, and a cluster has 2 to {MOST_BLOCKS} blocks", "`tile` it twice")
    if len(state.blocks) == MOST_BLOCK_PARTS:
        state.illegal("the grid has no dimension left for the blocks of a cluster")
    return replace(state.mapped(part.name, "cluster"), cluster=part.name, tiled=())
