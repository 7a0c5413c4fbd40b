"""Where values come from that a call has passed: arguments in the function that is called, results after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxlab import ir
from ptxlab.isa.jump import Jump
from ptxlab.trace.accesses import LOCAL
from ptxlab.trace.lanes import Executed
from ptxlab.trace.thread_steps import ThreadSteps, steps_of

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder
    from ptxlab.trace.origin import Origin


def loaded(finder: Finder, step: Executed, offset: int, size: int) -> list[Origin] | None:
    """What a parameter of a function, or the result of a call, holds from an offset on; None: it is neither."""
    function, instruction = finder.program.instructions[step.instruction]
    address = _parameter_in(instruction)
    if address is None or (function.kind == "entry" and address[0] in [one.name for one in function.parameters]):
        return None
    name, start = address
    steps = _steps(finder, step.thread)
    index = steps.next(step.key // 2)
    names = [one.name for one in function.parameters]
    if name in names:
        callers = steps.callers(index)
        return (
            _argument(finder, steps, callers[0], names.index(name), (step.thread, start + offset, size))
            if callers
            else None
        )
    depth = int(steps.depths[index])
    for call in reversed(np.flatnonzero(steps.depths[:index] == depth).tolist()):
        number = _result_of(finder, int(steps.instructions[call]), name)
        if number is not None:
            return _returned(finder, steps, call, number, (step.thread, start + offset, size))
    return None


def returned(finder: Finder, step: Executed, name: str) -> list[Origin] | None:
    """The sources of a register that is the result of a call, or a parameter of the function; None: it is neither."""
    function, made = finder.program.instructions[step.instruction]
    steps = _steps(finder, step.thread)
    parameters = [one.name for one in function.parameters]
    is_result = any(use.name == name and use.role == "result" for use in finder.uses(step.instruction))
    if name in parameters and not is_result:
        callers = steps.callers(steps.next(step.key // 2))
        return _argument(finder, steps, callers[0], parameters.index(name), (step.thread, 0, 0)) if callers else None
    if made.opcode.jump is not Jump.CALL:
        return None
    before = np.flatnonzero(steps.instructions[: steps.next(step.key // 2 + 1)] == step.instruction)
    number = _result_of(finder, step.instruction, name)
    if not len(before) or number is None:
        return None
    return _returned(finder, steps, int(before[-1]), number, (step.thread, 0, 0))


def _steps(finder: Finder, thread: int) -> ThreadSteps:
    if thread not in finder.thread_steps:
        finder.thread_steps[thread] = steps_of(finder.columns, thread)
    return finder.thread_steps[thread]


def _parameter_in(instruction: ir.Instruction) -> tuple[str, int] | None:
    """The variable of a call that an instruction accesses, and the offset there."""
    for operand in instruction.operands:
        base = operand.base if isinstance(operand, ir.Address) else None
        if isinstance(base, ir.VariableReference) and base.variable.state_space.startswith("param"):
            assert isinstance(operand, ir.Address)
            return base.name, operand.offset + base.offset
    return None


def _result_of(finder: Finder, instruction: int, name: str) -> int | None:
    """Which result of a call is a register or variable of that name; None: none is."""
    made = finder.program.instructions[instruction][1]
    if made.opcode.jump is not Jump.CALL or len(made.operands) < 2 or not isinstance(made.operands[0], ir.Arguments):
        return None
    names = [getattr(one, "name", "") for one in made.operands[0].elements]
    return names.index(name) if name in names else None


def _argument(
    finder: Finder, steps: ThreadSteps, call: int, number: int, place: tuple[int, int, int]
) -> list[Origin] | None:
    """What was given for a parameter."""
    made = finder.program.instructions[int(steps.instructions[call])][1]
    given = made.operands[-1] if isinstance(made.operands[-1], ir.Arguments) else None
    if given is None or number >= len(given.elements):
        return None
    key = 2 * int(steps.numbers[call]) + 1
    return _held(finder, steps, given.elements[number], (0, call), int(steps.depths[call]), key, place)


def _returned(
    finder: Finder, steps: ThreadSteps, call: int, number: int, place: tuple[int, int, int]
) -> list[Origin] | None:
    """What a function that was called has left for a result."""
    depth = int(steps.depths[call])
    after = np.flatnonzero(steps.depths[call + 1 :] <= depth)
    end = call + 1 + int(after[0]) if len(after) else len(steps.numbers)
    if end == call + 1:  # a function of the library, which is not recorded
        return None
    function = finder.program.instructions[int(steps.instructions[call + 1])][0]
    variable = function.returns[number]
    what = (
        ir.VariableReference(variable.name, variable)
        if variable.state_space.startswith("param")
        else ir.Register(variable.name, variable.type)
    )
    key = 2 * int(steps.numbers[end - 1]) + 2  # a function without `ret` may write its result last
    return _held(finder, steps, what, (call + 1, end), depth + 1, key, place)


def _held(
    finder: Finder,
    steps: ThreadSteps,
    what: ir.Operand,
    range_: tuple[int, int],
    depth: int,
    key: int,
    place: tuple[int, int, int],
) -> list[Origin] | None:
    """The origin of a register, or of a variable that steps of a thread in a range have stored to."""
    thread, offset, size = place
    if isinstance(what, ir.Register):
        return [finder.of_register(thread, what.name, key)]
    first, end = range_
    for at in reversed((first + np.flatnonzero(steps.depths[first:end] == depth)).tolist()):
        instruction = int(steps.instructions[at])
        found = _parameter_in(finder.program.instructions[instruction][1])
        if found is None or found[0] != getattr(what, "name", None):
            continue
        entry, _ = finder.columns.locate(int(steps.numbers[at]))
        for access in finder.trace.accesses_at(entry, instruction):
            if access.kind == "store":
                return [finder.of_memory(LOCAL, access.owner, access.address - found[1] + offset, size, key)]
    return None
