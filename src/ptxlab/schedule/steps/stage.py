"""`stage("a", "b", in_="shared", at="x.0")`: copy what a loop reads to shared memory, or to registers."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.isa.units.swizzle import SWIZZLES
from ptxlab.schedule.state import Stage, State, quoted
from ptxlab.schedule.statements import loads

SPACES = ("shared", "registers")


def stage(
    state: State,
    *arrays: str,
    in_: str = "shared",
    at: str | None = None,
    transposed: bool = False,
    pad: int = 0,
    swizzle: str = "",
    slots: int = 0,
) -> State:
    """All threads of a block share the copy in shared memory; `transposed` has its last two dimensions exchanged.

    `pad` are elements that rows are longer, against bank conflicts; `swizzle` exchanges 16 bytes of a row, for the same
    end, in what tensor cores read. Without `at`, shared memory has what an iteration of the loop over tiles reads, or
    what one multiplication by tensor cores reads, and registers what the innermost loop reads that is reduced over.

    An array that is written goes through shared memory from where `wgmma` has computed it: TMA copies boxes of it, and
    a warpgroup has memory for so many `slots` of them, or for all of its tile.
    """
    if in_ not in SPACES:
        state.illegal(f"there is no stage in {in_!r:.40}", '`in_="shared"` or `in_="registers"`')
    if not arrays:
        state.illegal("`stage` is given no array", '`stage("a", in_="shared")`')
    if in_ == "registers" and (transposed or pad):
        state.illegal("registers have no layout", "`transposed` and `pad` are for shared memory")
    if swizzle and (swizzle not in SWIZZLES or pad or transposed):
        said = (
            f"there is no swizzle {swizzle!r:.40}"
            if swizzle not in SWIZZLES
            else "rows that are swizzled are as they are"
        )
        state.illegal(said, '`swizzle="128B"`, without `pad` and `transposed`')
    if not isinstance(pad, int) or pad < 0:
        state.illegal(f"rows are {pad!r:.40} elements longer")
    for array in arrays:
        if array in state.algorithm.outputs and state.tensors:
            state = _result(state, Stage(array, in_, at or "", transposed, pad, swizzle, len(state.steps), slots))
            continue
        check(state, array)
        if in_ == "registers" and array in state.operands:
            state.illegal(f"tensor cores read `{array}` from shared memory")
        if any(one.array == array and one.space == in_ for one in state.stages):
            state.illegal(f"`{array}` is staged in {in_} already")
        if transposed and len(state.algorithm.arrays[array].extents) < 2:
            state.illegal(f"`{array}` has one dimension")
        chosen = default(state, array, in_) if at is None else "" if at == "" else state.named(at)[0]
        if chosen and state.part(chosen).role != "serial":
            state.illegal(f'`{chosen}` is run by {state.part(chosen).role}s: stage in a loop, or at `""`')
        made = Stage(array, in_, chosen, transposed, pad, swizzle, len(state.steps))
        state = replace(state, stages=(*state.stages, made), tiled=())
    return state


def _result(state: State, made: Stage) -> State:
    """An array that is written: what tensor cores have computed of it goes to shared memory first."""
    if made.space != "shared" or made.at or made.pad or made.transposed:
        state.illegal(f"`{made.array}` is written, from boxes in shared memory", '`swizzle="128B"`')
    if any(one.array == made.array for one in state.results):
        state.illegal(f"`{made.array}` is staged already")
    if not isinstance(made.slots, int) or made.slots < 0:
        state.illegal(f"`slots` is {made.slots!r:.40}, expected a number of boxes")
    state.needs("copies from shared memory by TMA need", 90)
    return replace(state, results=(*state.results, made), tiled=())


def check(state: State, array: str) -> None:
    """Refuse what is not an array that is read, and one that is written too."""
    if not isinstance(array, str) or array not in state.algorithm.arrays:
        said = f"there is no array `{array!s:.40}`"
        state.illegal(said, f"arrays are {quoted(state.algorithm.arrays)}")
    if array in state.algorithm.outputs:
        state.illegal(f"`{array}` is written", "what is read is staged")
    if state.algorithm.arrays[array].element == "s32":
        state.illegal(f"`{array}` has indices, which are read where they are used")
    if not any(load.array == array for load in state.loads):
        state.illegal(f"`{array}` is not read")


def default(state: State, array: str, space: str) -> str:
    """The loop in which an array is staged, where none is named."""
    for one in state.algorithm.statements:
        used = {axis for load in loads(one) if load.array == array for axis in load.names}
        if not used:
            continue
        axes = (*one.axes, *getattr(one, "over", ()))
        serial = state.serial(axes)
        if space == "registers":
            reduced = [name for name in serial if state.part(name).axis in getattr(one, "over", ())]
            return reduced[-1] if reduced else ""
        own = [name for name in serial if state.part(name).axis in used]
        if array in state.operands:  # what one multiplication reads
            fragments = state.fragments(next(tensor for tensor in state.tensors if array in tensor.arrays))
            around = [name for name in own if name not in fragments]
        else:
            around = [name for name in own if state.part(name).extent is None and _is_cut(state, name)]
        return around[-1] if around else ""
    return ""


def _is_cut(state: State, name: str) -> bool:
    """Whether a loop as long as its axis has a number of iterations that is not known, or is over tiles.

    What is staged in a loop over tiles is then the same for a size that is fixed.
    """
    part = state.part(name)
    return state.count(part) is None or len(state.parts[part.axis]) > 1
