"""`pipeline(stages=3)`: copies to shared memory run ahead, in a ring of stages for each staged array."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import Pipeline, State

BY = ("cp.async", "tma")


def pipeline(state: State, stages: int = 3, by: str = "cp.async") -> State:
    """All arrays that are staged in shared memory in one loop are copied together, `stages` - 1 iterations ahead."""
    if by not in BY:
        state.illegal(f"there is no pipeline by {by!r:.40}", '`by="cp.async"` or `by="tma"`')
    if not isinstance(stages, int) or not 2 <= stages <= 16:
        state.illegal(f"a pipeline of {stages!r:.40} stages, expected 2 to 16")
    if state.pipeline.at:
        state.illegal("there is a pipeline already")
    staged = [one for one in state.stages if one.space == "shared" and one.at]
    loops = {one.at for one in staged}
    if len(loops) != 1:
        said = "no array is staged in shared memory in a loop" if not loops else "arrays are staged in several loops"
        state.illegal(said, '`stage("a", "b", in_="shared", at="x.0")` first')
    if by == "tma":
        _check_maps(state, [one.array for one in staged])
    return replace(state, pipeline=Pipeline(loops.pop(), stages, by, len(state.steps)), tiled=())


def _check_maps(state: State, arrays: list[str]) -> None:
    """Refuse what TMA does not copy."""
    state.needs("TMA needs", 90)
    for array in arrays:
        stages = [one for one in state.stages if one.array == array]
        if array not in state.operands or len(stages) > 1 or not stages[0].swizzle:
            state.illegal(
                f"`{array}` is copied by TMA where tensor cores read it from swizzled rows",
                '`tensorize`, then `stage(..., swizzle="128B")`, then `pipeline(by="tma")`',
            )
