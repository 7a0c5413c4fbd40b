"""`reorder("x", "i", "j")`: these loops are nested in this order, where the first of them was."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def reorder(state: State, *loops: str) -> State:
    """Sums are then added in another order; each number of the result is still the same sum."""
    names = [name for loop in loops for name in state.named(loop)]
    if len(names) < 2 or len(set(names)) < len(names):
        state.illegal("`reorder` takes several loops, each once", '`reorder("x", "i", "j")`')
    for name in names:
        if state.part(name).role != "serial":
            state.illegal(f"`{name}` is run by {state.part(name).role}s, which have no order")
        if any(stage.at for stage in state.stages):
            state.illegal("data is staged already", "reorder before `stage`")
    moved = iter(names)
    return replace(state, order=tuple(next(moved) if name in names else name for name in state.order), tiled=())
