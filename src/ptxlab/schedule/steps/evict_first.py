"""`evict_first("x")`: the L2 cache gives up what is accessed of an array before all else: it is not needed again."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State, quoted


def evict_first(state: State, *arrays: str) -> State:
    """By a cache policy of each access, also of copies: the cache keeps what other arrays and other kernels have."""
    for array in arrays or ("",):
        if array not in state.algorithm.arrays:
            said = f"there is no array `{array!s:.40}`"
            state.refuse("illegal-step", said, f"arrays are {quoted(state.algorithm.arrays)}")
    return replace(state, evicted_first=(*state.evicted_first, *arrays), tiled=())
