"""`resident(2)`: registers of a thread are limited so that so many blocks are on an SM at a time."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def resident(state: State, blocks: int) -> State:
    """`.minnctapersm`: ptxas then keeps to as many registers as that leaves."""
    if not isinstance(blocks, int) or not 1 <= blocks <= 32:
        state.illegal(f"{blocks!r:.40} blocks on an SM, expected 1 to 32")
    if blocks * state.launched > 2048:
        state.refuse("schedule-limit", f"{blocks} blocks of {state.launched} threads, and an SM has 2048")
    return replace(state, resident=blocks, tiled=())
