"""`pipeline(stages=3)`: copies to shared memory run ahead by `cp.async`, a ring of stages for each staged array."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def pipeline(state: State, stages: int = 3, by: str = "cp.async") -> State:
    """All arrays that are staged in shared memory in one loop are copied together, `stages` - 1 iterations ahead."""
    if by != "cp.async":
        state.refuse("illegal-step", f"there is no pipeline by {by!r:.40}", '`by="cp.async"`')
    if not isinstance(stages, int) or not 2 <= stages <= 16:
        state.refuse("illegal-step", f"a pipeline of {stages!r:.40} stages, expected 2 to 16")
    if state.pipeline is not None:
        state.refuse("illegal-step", "there is a pipeline already")
    loops = {one.at for one in state.stages if one.space == "shared" and one.at}
    if len(loops) != 1:
        said = "no array is staged in shared memory in a loop" if not loops else "arrays are staged in several loops"
        state.refuse("illegal-step", said, '`stage("a", "b", in_="shared", at="x.0")` first')
    return replace(state, pipeline=(loops.pop(), stages, len(state.steps)), tiled=())
