r"""What is known of one function: its instructions, the form of each, and the values that they compute.

`facts.value(at, operand)` is the question that rules ask: what an operand of instruction `at` holds when that reads it.

>>> import ptxlab
>>> from ptxlab.flow import Facts
>>> text = ".version 8.0\n.target sm_80\n.address_size 64\n"
>>> body = "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2; ret;"
>>> module = ptxlab.parse(text + ".entry k() .maxntid 64 { .reg .b32 %r<4>; " + body + " }")
>>> facts = Facts.of(module.functions[0])
>>> facts.value(2, facts.instructions[2].operands[1]).range
(0, 31)
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from math import prod
from typing import NamedTuple

from ptxlab import ir
from ptxlab.ir.effects import RegisterEffects
from ptxlab.ir.flow import Flow, flow_of
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match, Operation, Type
from ptxlab.values import dataclass

from .chains import Chains
from .control import Control
from .effort import Effort
from .engine import Node, NodePlan
from .expressions import Linear
from .numbers import Addresses, Numbers, named_by
from .presence import Presence
from .symbolic import Symbolic
from .value import Value


class Loaded(NamedTuple):
    """A number of a type at an offset in a parameter."""

    variable: ir.Variable
    offset: int
    type: Type


@dataclass(eq=False)
class Facts:
    """A function with a body: its instructions in order and, beside them, the form that each is; calls have none."""

    function: ir.Function
    instructions: list[ir.Instruction] = field(default_factory=list)
    matches: list[Match | None] = field(default_factory=list)

    @classmethod
    def of(cls, function: ir.Function) -> Facts:
        """The facts of a function whose instructions are all legal."""
        instructions = list(function.instructions())
        return cls(function, instructions, [match_of(instruction) for instruction in instructions])

    @cached_property
    def plans(self) -> dict[Node, NodePlan | None]:
        """How the results of instructions are computed, in any domain, as far as some was asked for them."""
        return {}

    @cached_property
    def flow(self) -> Flow:
        """Its basic blocks."""
        return flow_of(self.function)

    @cached_property
    def effects(self) -> RegisterEffects:
        """The registers that each instruction reads and writes."""
        return RegisterEffects(self.instructions, self.matches)

    @cached_property
    def chains(self) -> Chains:
        """Which writes of a register an instruction can read, and what reads its results."""
        return Chains(self)

    @cached_property
    def effort(self) -> Effort:
        """The steps that may be spent on following its values."""
        return Effort(self.instructions)

    @cached_property
    def control(self) -> Control:
        """Which branches decide whether a block runs."""
        return Control(self, self.effort)

    @cached_property
    def presence(self) -> Presence:
        """Which threads of a block can reach its instructions."""
        return Presence(self)

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers and addresses in its registers."""
        return Numbers(self)

    @cached_property
    def expressions(self) -> Symbolic:
        """What its registers hold, as expressions."""
        return Symbolic(self)

    @cached_property
    def addresses(self) -> Addresses:
        """The variables that its addresses are in."""
        return Addresses(self)

    @cached_property
    def taking_addresses(self) -> list[int]:
        """The instructions that take the address of a variable as a value."""
        naming = (ir.VariableReference, ir.Sum, ir.Element)
        return [
            at
            for at, instruction in enumerate(self.instructions)
            for operand in instruction.operands
            if operand.__class__ in naming and named_by(operand) is not None
        ]

    def may_be_fixed(self, register: int) -> bool:
        """Whether a register may hold an address that follows from variables and constants alone: quickly answered."""
        return bool(self.taking_addresses) and self.chains.is_constant(register)

    def loaded_parameter(self, at: int, register: int) -> Loaded | None:
        """What instruction `at` loads into a register, if it is part of a parameter of a kernel."""
        instruction, match = self.instructions[at], self.matches[at]
        if match is None or self.function.kind != "entry":
            return None
        loads = any(one.kind == "load" and one.space == "param" for one in match.effects.accesses)
        source = instruction.operands[1] if loads else None
        type = match.expected[0].type
        if type is None or not isinstance(source, ir.Address) or not isinstance(source.base, ir.VariableReference):
            return None
        results = instruction.operands[0]
        for number, one in enumerate(results.elements if isinstance(results, ir.Vector) else (results,)):
            if isinstance(one, ir.Register) and one.index == register:
                return Loaded(source.base.variable, source.base.offset + source.offset + number * type.width // 8, type)
        return None

    def value(self, at: int, operand: ir.Operand) -> Value:
        """What instruction `at` reads of an operand: a register, a constant, a name, or the address in brackets."""
        return Value(self, at, operand)

    def symbolic(self, at: int, operand: ir.Operand) -> Linear:
        """What instruction `at` reads of an operand, as a function of the thread, parameters and turns of loops."""
        return self.expressions.closed(at, operand)

    def operation(self, at: int) -> Operation | None:
        """What instruction `at` computes, where there is a word for it."""
        match = self.matches[at]
        return None if match is None else match.effects.computes

    @property
    def most_threads(self) -> int | None:
        """The most threads that a block of a kernel can have, if its header says."""
        return threads_of(self.function)


def threads_of(kernel: ir.Function) -> int | None:
    """The most threads that a block of a kernel can have, if its header says."""
    directive = kernel.directive("reqntid") or kernel.directive("maxntid")
    # Without a single thread, another rule reports it.
    return None if directive is None else prod(n for n in directive.arguments if isinstance(n, int)) or None
