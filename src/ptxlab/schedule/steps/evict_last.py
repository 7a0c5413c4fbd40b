"""`evict_last("x")`: the L2 cache gives up what is accessed of an array after all else."""

from __future__ import annotations

from ptxlab.schedule.state import State
from ptxlab.schedule.steps.evict_first import with_policy


def evict_last(state: State, *arrays: str) -> State:
    """By a cache policy of each access: what is read again, or read while as much is written, stays longest."""
    return with_policy(state, arrays, "evict_last")
