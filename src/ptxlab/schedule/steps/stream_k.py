"""`stream_k()`: each block has as many iterations along a sum as the others; a tile can be of several blocks."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.pieces import workspace_of
from ptxlab.schedule.state import State
from ptxlab.schedule.statements import Reduce
from ptxlab.schedule.steps.persistent import persistent


def stream_k(state: State) -> State:
    """As many blocks as there are SMs, which all end together; what they have of a tile is added through memory."""
    made = persistent(state)
    if state.unit == "tcgen05":
        state.illegal("blocks add accumulators that are in registers", "`persistent` with `tcgen05`")
    if state.online is not None or sum(isinstance(one, Reduce) for one in state.algorithm.statements) != 1:
        state.illegal("blocks share the iterations of one sum, and this algorithm has another one, too")
    if workspace_of(state) in (*state.algorithm.parameters, *state.algorithm.sizes):
        state.illegal(f"`{workspace_of(state)}` is a parameter, and the name of the workspace")
    return replace(made, stream_k=True)
