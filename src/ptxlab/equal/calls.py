"""Calls in a replay: arguments become parameters of the function that is called, and its results those of the call.

Variables of the state space `.param` that are not the kernel's are kept apart from memory, by their names.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ptxlab import ir
from ptxlab.device.trace_format import ENTERS, LEAVES
from ptxlab.equal.codes import NOTHING, Codes
from ptxlab.equal.nodes import Ids

if TYPE_CHECKING:
    from ptxlab.equal.replay import Replay
    from ptxlab.equal.turns import Turn


def variable_in(instruction: ir.Instruction, function: ir.Function) -> tuple[ir.Variable, int] | None:
    """The variable of a call that an instruction accesses, and the offset in it."""
    for operand in instruction.operands:
        base = operand.base if isinstance(operand, ir.Address) else None
        if isinstance(base, ir.VariableReference) and base.variable.state_space.startswith("param"):
            if function.kind == "entry" and base.name in [one.name for one in function.parameters]:
                return None
            assert isinstance(operand, ir.Address)
            return base.variable, operand.offset + base.offset
    return None


class ActiveCalls:
    """The calls of a launch that are under way, and the variables of their functions."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._under_way: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """For each thread, the function and the number of each call that it is in."""
        self._variables: dict[tuple[int, int, str, int], Codes] = {}

    def access(self, turn: Turn) -> None:
        """`ld.param` and `st.param` of what a call passes."""
        assert turn.plan.match is not None
        found = variable_in(turn.plan.instruction, self._replay.program.functions[self._replay.function])
        assert found is not None
        variable, offset = found
        content = self._content(turn.block, variable)
        slots = [slot for slot in self._replay.slots(turn.number, turn.instruction) if slot.role in ("load", "store")]
        if not slots:
            turn.keep()
            return
        size = int(slots[0].what.split()[1])
        if slots[0].role == "store":
            content[turn.threads, offset : offset + size] = turn.values(size)
        else:
            turn.receive(content[turn.threads, offset : offset + size])

    def start(self, turn: Turn) -> None:
        """A call: what is called starts, or is a function that the host provides."""
        called = [one for one in turn.plan.instruction.operands if isinstance(one, ir.FunctionReference)]
        names = [one.name for one in self._replay.program.functions]
        if not called or called[0].name in names:
            for thread in turn.grid_threads.tolist():
                self._under_way[thread].append((self._replay.function, turn.instruction))

    def pass_on(self, flags: int, function: int, block: int, threads: Ids) -> None:
        """Pass arguments where a function starts, and results where it ends."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for thread in threads.tolist() if flags & (ENTERS | LEAVES) else ():
            groups[self._under_way[thread][-1]].append(thread - block * self._replay.threads_in_block)
            if flags & LEAVES:
                self._under_way[thread].pop()
        formal = self._replay.program.functions[function]
        for (caller, number), own in groups.items():
            operands = self._replay.program.instructions[number][1].operands
            given = [one.elements if isinstance(one, ir.Arguments) else () for one in (operands[0], operands[-1])]
            chosen = np.array(own)
            if flags & ENTERS:
                if any(at == function for at, _ in self._under_way[block * self._replay.threads_in_block + own[0]]):
                    raise self._replay.refused(number, "a function that calls itself is not followed")
                for variable, one in zip(formal.parameters, given[1], strict=False):
                    self._write(function, block, chosen, variable, self._read(caller, block, chosen, one, variable))
            else:
                for variable, one in zip(formal.returns, given[0], strict=False):
                    codes = self._read(function, block, chosen, _reference(variable), variable)
                    self._write(caller, block, chosen, one, codes)

    def _read(self, function: int, block: int, threads: Ids, given: ir.Operand, formal: ir.Variable) -> Codes:
        if isinstance(given, ir.VariableReference):
            return self._content(block, given.variable, function)[threads]
        self._replay.function = function
        return self._replay.read(block, threads, given, formal.type)

    def _write(self, function: int, block: int, threads: Ids, to: ir.Operand | ir.Variable, codes: Codes) -> None:
        what = _reference(to) if isinstance(to, ir.Variable) else to
        if isinstance(what, ir.VariableReference):
            content = self._content(block, what.variable, function)
            width = min(content.shape[1], codes.shape[1])
            content[threads, :width] = codes[:, :width]
        elif isinstance(what, ir.Register):
            self._replay.function = function
            self._replay.register(block, what.name)[threads] = codes

    def _content(self, block: int, variable: ir.Variable, function: int | None = None) -> Codes:
        size = max(variable.elements or 1, 1) * max(variable.type.width // 8, 1)
        # Each call has a scope: `param0` of one need not be as large as that of the next.
        key = block, self._replay.function if function is None else function, variable.name, size
        if key not in self._variables:
            self._variables[key] = np.full((self._replay.threads_in_block, size), NOTHING)
        return self._variables[key]


def _reference(variable: ir.Variable) -> ir.Operand:
    if variable.state_space.startswith("param"):
        return ir.VariableReference(variable.name, variable)
    return ir.Register(variable.name, variable.type)
