"""`tile(i=128, j=8)`: cut the innermost part of a loop into tiles of so many iterations."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import Part, State, quoted


def tile(state: State, /, **sizes: int) -> State:
    """Each axis gets one more part, the iterations of a tile. What does not fill a tile is masked."""
    if not sizes:
        state.illegal("`tile` is given no loop", "`tile(i=128, j=128)`")
    multiplied = {axis for one in state.tensors for axis in (one.rows, one.columns, one.depth)}
    made = []
    for axis, size in sizes.items():
        if axis in multiplied:
            state.illegal(f"tensor cores multiply tiles of `{axis}`", "`tile` before `tensorize`")
        state, name = cut(state, axis, size)
        made.append(name)
    return replace(state, tiled=tuple(made))


def cut(state: State, axis: str, size: int) -> tuple[State, str]:
    """Cut the innermost part of an axis in two; the state, and the outer of the two."""
    if axis not in state.parts:
        state.illegal(f"there is no loop `{axis}`", f"loops are {quoted(state.parts)}")
    last = state.parts[axis][-1]
    if not isinstance(size, int) or not 1 <= size <= 2**20:
        state.illegal(f"a tile of `{axis}` has {size!r:.40} iterations, expected 1 to {2**20}")
    if last.role != "serial":
        state.illegal(f"`{last.name}` is run by {last.role}s already", "tile before that")
    if last.extent is not None and last.extent % size:
        state.illegal(f"`{last.name}` has {last.extent} iterations, not a multiple of {size}")
    if any(stage.at == last.name for stage in state.stages) or state.pipeline.at == last.name:
        state.illegal(f"data is staged in `{last.name}` already", "tile before `stage`")
    outer = replace(last, weight=last.weight * size, extent=None if last.extent is None else last.extent // size)
    inner = Part(axis, last.number + 1, last.weight, size)
    parts = {**state.parts, axis: (*state.parts[axis][:-1], outer, inner)}
    place = state.order.index(outer.name)
    order = (*state.order[: place + 1], inner.name, *state.order[place + 1 :])
    return replace(state, parts=parts, order=order), outer.name
