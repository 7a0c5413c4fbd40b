"""`vectorize("a", "b", 4)`: access so many neighbouring elements of an array at once, where they are neighbours."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import Stage, State
from ptxlab.schedule.statements import loads
from ptxlab.schedule.steps.stage import check
from ptxlab.schedule.tree import BYTES

WIDTHS = (2, 4, 8, 16)


def vectorize(state: State, *arguments: str | int) -> State:
    """An array that is read and not staged in registers is, in the loop around its innermost part.

    Rows that are not a multiple of that long are accessed by half as many, or a quarter, down to one, and arrays that
    are not aligned an element at a time: another kernel is written for these.
    """
    *arrays, width = arguments or (0,)
    if not arrays or not isinstance(width, int) or width not in WIDTHS:
        state.illegal("`vectorize` takes arrays and a width of 2, 4, 8 or 16", '`vectorize("a", "c", 4)`')
    for array in map(str, arrays):
        if array not in state.algorithm.outputs:
            check(state, array)
        found = state.algorithm.arrays[array]
        if width * BYTES[found.element] > 16:
            state.illegal(f"{width} of `{found.element}` are more than the 16 bytes of one access")
        state = replace(state, vectors={**state.vectors, array: width}, vector_step=len(state.steps), tiled=())
        multiplied = array in state.operands
        staged = multiplied or any(one.array == array for one in state.stages)
        if array not in state.algorithm.outputs and not staged:
            state = replace(
                state, stages=(*state.stages, Stage(array, "registers", around(state, array), step=len(state.steps)))
            )
    return state


def around(state: State, array: str) -> str:
    """The loop around the innermost parts of the axes that index the last dimension of an array."""
    for one in state.algorithm.statements:
        last = {
            axis for load in loads(one) if load.array == array for axis in load.index[-1].names if axis in state.parts
        }
        if last:
            serial = state.serial((*one.axes, *getattr(one, "over", ())))
            inner = [
                n
                for n in serial
                if state.part(n).axis in last and state.part(n).number == len(state.parts[state.part(n).axis]) - 1
            ]
            if not inner or state.count(state.part(inner[0])) is None:
                state.illegal(
                    f"no loop of a fixed number of iterations has neighbouring elements of `{array}` in it",
                    f"tile `{min(last)}`, and leave the innermost part to each thread",
                )
            before = serial[: serial.index(inner[0])]
            return before[-1] if before else ""
    return ""
