"""What a replay does at each instruction of a program: which matter, which registers they need.

Addresses, counters and all else that no input reaches are as they were recorded: such instructions are passed over.
Whether an input may reach a register is decided here for a whole function, whatever path it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab import ir
from ptxlab.equal.calls import variable_in
from ptxlab.flow.engine import immediates_of
from ptxlab.flow.steps import Steps, steps_of
from ptxlab.isa import Match
from ptxlab.isa.operation import Operation
from ptxlab.trace.operands import Use, uses_of
from ptxlab.trace.program import RecordedProgram

_STILL = ("param", "const")  # state spaces that no kernel writes


@dataclass(frozen=True)
class InstructionPlan:
    """What is done at an instruction."""

    kind: str
    """`pass`, `keep` (the results are as recorded), or what the replay has a method for."""
    instruction: ir.Instruction
    match: Match | None
    uses: tuple[Use, ...]
    steps: Steps | None = None
    inputs: tuple[Use, ...] = ()
    """The registers among those it reads that an input may reach."""


def plans_of(program: RecordedProgram) -> list[InstructionPlan]:
    """The plans of all instructions."""
    made = []
    passes = set[int]()
    for number, (function, instruction) in enumerate(program.instructions):
        match = program.match(number)
        if variable_in(instruction, function) is not None:
            passes.add(number)
        made.append((instruction, match, tuple(uses_of(instruction, match))))
    formal = {one.name for function in program.functions[1:] for one in (*function.parameters, *function.returns)}
    reached = _reached(made, formal, passes)
    first = []
    for number, (instruction, match, uses) in enumerate(made):
        inputs = tuple(use for use in uses if use.role != "result" and use.name in reached)
        kind = "parameter" if number in passes else _kind(match, bool(inputs))
        steps = None if match is None else steps_of(match, immediates_of(instruction, match))
        first.append(InstructionPlan(kind, instruction, match, uses, steps, inputs))
    needed = {use.name for plan in first if plan.kind != "pass" for use in plan.uses if _is_read(plan, use)}
    return [
        InstructionPlan("keep", one.instruction, one.match, one.uses)
        if one.kind == "pass" and any(use.role == "result" and use.name in needed for use in one.uses)
        else one
        for one in first
    ]


def _is_read(plan: InstructionPlan, use: Use) -> bool:
    """Whether a replay asks for what is in a register: a recording has addresses of plain accesses, and guards."""
    if use in plan.inputs or use.role == "value":
        return True
    return use.role == "address" and plan.kind not in ("load", "store", "update")


_Made = tuple[ir.Instruction, Match | None, tuple[Use, ...]]


def _reached(made: list[_Made], reached: set[str], passes: set[int]) -> set[str]:
    """The registers, by name, that an input may reach: those of calls, what memory or a call gives, and so on."""
    reached.update(use.name for _, match, uses in made if match is None for use in uses)
    size = -1
    while len(reached) != size:
        size = len(reached)
        for number, (_, match, uses) in enumerate(made):
            if (
                number in passes
                or _is_source(match)
                or any(use.name in reached and use.role != "result" for use in uses)
            ):
                reached.update(use.name for use in uses if use.role == "result")
    return reached


def _is_source(match: Match | None) -> bool:
    """Whether the results of an instruction come from memory that an input may be in."""
    if match is None:
        return True
    if any(one.kind != "store" and one.space not in _STILL for one in match.effects.accesses):
        return bool(match.expected) and not match.effects.uses("mbarrier")
    return match.effects.does("wgmma", "start") or match.effects.does("tensor_memory", "load")


def _kind(match: Match | None, is_reached: bool) -> str:
    if match is None:
        return "call"
    effects = match.effects
    if effects.uses("tensor_memory"):
        return "tensor_memory" if any(effects.does("tensor_memory", n) for n in _TENSOR) else "pass"
    if effects.does("wgmma", "start"):
        return "wgmma"
    if effects.uses("mbarrier") or effects.uses("bulk") or effects.uses("async_copy"):
        return "check" if is_reached else "pass"
    if effects.computes is Operation.SHUFFLE:
        return "shuffle" if is_reached else "pass"
    held = getattr(match.form.semantics, "holds", None)
    if effects.computes is Operation.MMA or effects.computes is Operation.OPAQUE_MMA:
        return "matmul" if is_reached else "pass"
    own = [one for one in effects.accesses if one.space not in _STILL]
    if own and held is not None:
        return "matrix_load" if own[0].kind == "load" else "matrix_store"
    if any(one.kind == "update" for one in own):
        return "update"
    if any(one.kind == "store" for one in own):
        return "store"
    if own:
        return "load"
    if held is not None and is_reached:
        return "matrix_move"
    if effects.jump is not None:
        return "check" if is_reached else "pass"
    if effects.steps or effects.barrier or effects.converges:
        return "check" if is_reached else "pass"
    return "compute" if is_reached else "pass"


_TENSOR = ("load", "store", "multiply", "copy", "shift")
