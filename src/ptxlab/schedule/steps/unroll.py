"""`unroll("x.1")`: the iterations of a loop are written one after the other."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def unroll(state: State, *loops: str) -> State:
    """Loops that index registers are unrolled without being asked."""
    if not loops:
        state.illegal("`unroll` is given no loop", '`unroll("x.1")`')
    for name in (name for loop in loops for name in state.named(loop)):
        part = state.part(name)
        if part.role != "serial":
            state.illegal(f"`{name}` is run by {part.role}s")
        if state.count(part) is None:
            state.refuse(
                "unknown-extent", f"`{name}` has {state.extent(part.axis)} iterations", f"tile `{part.axis}` first"
            )
        state = state.with_parts(replace(part, unrolled=True))
    return replace(state, tiled=())
