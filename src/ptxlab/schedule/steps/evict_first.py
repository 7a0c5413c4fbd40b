"""`evict_first("x")`: the L2 cache gives up what is accessed of an array before all else: it is not needed again."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State, quoted


def evict_first(state: State, *arrays: str) -> State:
    """By a cache policy of each access, also of copies: the cache keeps what other arrays and other kernels have."""
    return with_policy(state, arrays, "evict_first")


def with_policy(state: State, arrays: tuple[str, ...], policy: str) -> State:
    """Accesses to arrays have a cache policy; the last one that an array is given counts."""
    if not arrays:
        state.illegal(f"`{policy}` is given no array", f'`{policy}("x")`')
    for array in arrays:
        if array not in state.algorithm.arrays:
            said = f"there is no array `{array!s:.40}`"
            state.illegal(said, f"arrays are {quoted(state.algorithm.arrays)}")
    return replace(state, policies={**state.policies, **dict.fromkeys(arrays, policy)}, tiled=())
