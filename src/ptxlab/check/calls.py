"""Which functions of a module call which, for rules about what a kernel does as a whole."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab import ir

if TYPE_CHECKING:
    from .program import FunctionFacts, Program


class CallGraph:
    """The calls of a module by the name of a function; a function without a body calls nothing that is known."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._by_name = {facts.function.name: facts for facts in program.functions}

    @staticmethod
    def callee(call: ir.Instruction) -> str | None:
        """The function that a call names; None if it calls through a pointer."""
        return next((operand.name for operand in call.operands if isinstance(operand, ir.FunctionReference)), None)

    def reached_from(self, facts: FunctionFacts) -> list[FunctionFacts]:
        """A function and all that it calls by name, directly or not, itself first."""
        found = {facts.function.name: facts}
        pending = [facts]
        while pending:
            for call in pending.pop().calls:
                name = self.callee(call)
                called = self._by_name.get(name) if name is not None else None
                if called is not None and called.function.name not in found:
                    found[called.function.name] = called
                    pending.append(called)
        return list(found.values())

    def is_reached(self, facts: FunctionFacts) -> bool:
        """Whether a kernel of the module is this function or calls it."""
        return any(
            facts in self.reached_from(kernel) for kernel in self._program.functions if kernel.function.kind == "entry"
        )

    @cached_property
    def compiled(self) -> frozenset[str]:
        """The kernels, and the functions that they name, directly or not: what ptxas makes code of."""
        pending = [facts for facts in self._program.functions if facts.function.kind == "entry"]
        found = {facts.function.name for facts in pending}
        while pending:
            named = self._named(pending.pop()) - found
            found |= named
            pending += [self._by_name[name] for name in named if name in self._by_name]
        return frozenset(found)

    @staticmethod
    def _named(facts: FunctionFacts) -> set[str]:
        operands = [operand for instruction in facts.instructions for operand in instruction.operands]
        operands += [target for other in facts.others if isinstance(other, ir.CallTargets) for target in other.targets]
        return {operand.name for operand in operands if isinstance(operand, ir.FunctionReference)}

    def has_body(self, name: str) -> bool:
        """Whether a function is defined in the module."""
        return name in self._by_name

    def is_recursive(self, name: str) -> bool:
        """Whether a function calls itself, directly or through others."""
        return self.is_called_by(name, name)

    def is_called_by(self, name: str, caller: str) -> bool:
        """Whether a function is called by another one, directly or through others."""
        facts = self._by_name.get(caller)
        if facts is None:
            return False
        return name in {self.callee(call) for other in self.reached_from(facts) for call in other.calls}

    @cached_property
    def with_several_results(self) -> ir.Function | None:
        """A function with several results: where there is one, ptxas makes code without a stack of all of the module.

        Such code passes any type, but it has no recursion and no calls through pointers.
        """
        return next((function for function in self._program.module.functions if len(function.returns) > 1), None)
