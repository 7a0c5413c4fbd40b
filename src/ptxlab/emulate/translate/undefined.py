"""Undefined values in the registers of a thread, from where they come to where they are used.

A load of memory that no thread has written gives one, and so does `shfl` from a lane that takes no part. A compiler
loads before it knows whether the value is wanted: what a `selp` then discards is not a mistake. So a register that such
a value can reach has a shadow, a register of 32 bits: 0 if the value is defined, else the set of the instructions that
it comes from, a bit each. Instructions that compute hand shadows on, stores to shared and local memory mark what they
write; everything else that reads an undefined value uses it, and that is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.emulate.abi.clocks import SOURCES
from ptxlab.emulate.translate.provenance import UNKNOWN, WINDOW
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.ir.effects import reads_sum, registers_in
from ptxlab.isa import Match, Operation
from ptxlab.isa.effects import Access, Effects
from ptxlab.isa.types import type_named
from ptxlab.isa.undefined import UNDEFINED, deciding

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

DEFINED = "0"
_U32 = type_named("u32")


class Undefined:
    """What of a function may be undefined, and where it is used."""

    def __init__(self, function: Function, follows: bool) -> None:
        """`follows`: whether there are shadows at all."""
        self.function = function
        self.handed_on: list[str] = []  # what goes into the results of the instruction that is being translated
        self._sources: dict[int, int] = {}  # the bit of an instruction, by its position
        self._shadows: dict[int, ir.Register] = {}  # by the number of the register
        self._stored: list[LlvmValue] = []  # the shadows of what is stored, perhaps after a wait
        if follows:
            self._find_sources()
            self._add_shadows(self._reached())

    # What may be undefined.

    def _find_sources(self) -> None:
        for position, match in enumerate(self.function.matches):
            if match is not None and self._is_source(position, match.effects):
                self._sources[position] = self.function.unit.undefined_sources % SOURCES
                self.function.unit.undefined_sources += 1

    def _is_source(self, position: int, effects: Effects) -> bool:
        if effects.computes is Operation.SHUFFLE:
            return True
        loads = [access for access in effects.accesses if access.kind == "load" and not access.is_async]
        return bool(loads) and not effects.steps and any(self._may_be_unwritten(position, one) for one in loads)

    def _may_be_unwritten(self, position: int, access: Access) -> bool:
        """Whether a load can read memory that only the kernel itself writes."""
        function, space = self.function, access.space or ""
        tracking, instruction = function.unit.tracking, function.instructions[position]
        if space.startswith("shared"):
            return True
        if space == "local":
            return tracking.is_alone
        if space == "" or (space == "global" and "malloc" in function.unit.services):
            return bool(tracking.roots_of(function).of_addresses(instruction) & (UNKNOWN | WINDOW))
        return False

    def _reached(self) -> set[int]:
        """The registers that an undefined value can get to; the order of instructions does not matter here."""
        effects = self.function.effects
        found = {register for position in self._sources for register in effects.writes[position]}
        if not found:
            return found
        steps = [
            (reads, writes)
            for reads, writes, match in zip(effects.reads, effects.writes, self.function.matches, strict=True)
            if match is not None and (is_plain(match.effects) or match.effects.follows)
        ]
        before = 0
        while before != len(found):
            before = len(found)
            for reads, writes in steps:
                if not found.isdisjoint(reads):
                    found.update(writes)
        return found

    def _add_shadows(self, reached: Iterable[int]) -> None:
        """Have the shadows be registers of the function, which every instruction reads and writes with their own."""
        registers, effects = self.function.registers.by_index, self.function.effects
        free = max(registers, default=0) + 1
        for number in sorted(reached):
            register = registers[number]
            shadow = ir.Register(f"{register.name}?", _U32, register.vector, None, free + len(self._shadows))
            self._shadows[number] = shadow
        registers.update({shadow.index: shadow for shadow in self._shadows.values()})
        self.function.registers.shadows = self._shadows
        for sets in (effects.reads, effects.writes):
            for position, numbers in enumerate(sets):
                sets[position] += tuple(self._shadows[one].index for one in numbers if one in self._shadows)

    # Shadows.

    def of(self, register: ir.Register, element: int = 0) -> str:
        """The shadow of a register."""
        shadow = self._shadows.get(register.index)
        return DEFINED if shadow is None else self.function.registers.get(shadow, element).text

    def of_result(self, value: LlvmValue) -> str:
        """The shadow of a result of the instruction that is being translated."""
        return self.combine(self.handed_on) if value.undefined is None else value.undefined

    def _of_operands(self, operands: Iterable[ir.Operand]) -> str:
        found = [
            self.of(register, element)
            for operand in operands
            for register in registers_in(operand)
            if register.index in self._shadows
            for element in range(register.vector)
        ]
        return self.combine(found)

    def combine(self, shadows: Iterable[str]) -> str:
        """The shadow of what is computed from values with these."""
        found, *others = [shadow for shadow in dict.fromkeys(shadows) if shadow != DEFINED] or [DEFINED]
        for other in others:
            found = self.function.builder.value(f"or i32 {found}, {other}")
        return found

    # Instructions.

    def begin(self, instruction: ir.Instruction, match: Match, given: dict[str, object]) -> None:
        """Turn to an instruction: what it hands on, and what it uses."""
        self.handed_on = []
        self._stored = []
        if not self._shadows:
            return
        effects = match.effects
        pairs = zip(match.expected, instruction.operands, strict=True)
        read = [operand for expected, operand in pairs if expected.role == "read"]
        if is_plain(effects):
            self.handed_on = [self._computed(effects.computes, read, given)]
            return
        used = read
        is_access = bool(effects.accesses) and not effects.steps and not passes_argument(instruction)
        if effects.follows:
            used = read[1:] if effects.computes is Operation.SHUFFLE else _addresses(read)
        elif is_access and all(access.kind != "update" for access in effects.accesses):
            used = _addresses(read)
            data = [operand for operand in read if operand not in used]
            shadows = [self._of_operands((part,)) for one in data for part in _parts(one)]
            self._stored = [LlvmValue(self.function, _U32, shadow) for shadow in shadows]
        self.use(self.combine((self._of_operands(used), self._of_sum(instruction, match, given))))

    def _of_sum(self, instruction: ir.Instruction, match: Match, given: dict[str, Any]) -> str:
        """The shadow of what an MMA adds to, which makes no difference where it does not add."""
        pairs = zip(match.expected, instruction.operands, strict=True)
        updated = [operand for expected, operand in pairs if expected.role == "update"]
        if not updated or not reads_sum(instruction, match):
            return DEFINED
        shadow = self._of_operands(updated)
        if shadow != DEFINED:
            shadow = self.function.builder.value(f"select i1 {given['scale_d'].text}, i32 {shadow}, i32 0")
        return shadow

    def _computed(self, operation: Operation | None, read: Sequence[ir.Operand], given: dict[str, Any]) -> str:
        """The shadow of what an instruction computes; a value that makes no difference does not count."""
        shadows = [self._of_operands((operand,)) for operand in read]
        together = self.combine(shadows)
        if together == DEFINED:
            return together
        builder = self.function.builder
        if operation is Operation.SELECTION and given["c"].type.width == 1:
            yes, no, condition = shadows
            chosen = builder.value(f"select i1 {given['c'].text}, i32 {yes}, i32 {no}")
            return self.combine((chosen, condition))
        if operation in (Operation.AND, Operation.OR) or (operation is Operation.COMPARISON and "c" in given):
            wanted = deciding(operation, self.function.instructions[self.function.position].opcode.modifiers)
            names = () if wanted is None else ("c",) if operation is Operation.COMPARISON else ("a", "b")
            for value, shadow in zip(
                (given[name] for name in names), shadows[len(shadows) - len(names) :], strict=True
            ):
                known = (value == wanted).text
                if shadow != DEFINED:
                    defined = builder.value(f"icmp eq i32 {shadow}, 0")
                    known = builder.value(f"and i1 {known}, {defined}")
                together = builder.value(f"select i1 {known}, i32 0, i32 {together}")
        return together

    def use(self, shadow: str) -> None:
        """Report an undefined value, whatever the instruction then does with it."""
        self._if_undefined(shadow, "use_undefined", LlvmValue(self.function, _U32, shadow))

    def use_guard(self, register: ir.Register) -> None:
        """A guard decides whether an instruction is executed."""
        self.use(self.of(register))

    def use_operands(self, instruction: ir.Instruction) -> None:
        """A jump or a call reads its operands, but for the results of a call, which come first."""
        has_results = len(instruction.operands) > 1 and isinstance(instruction.operands[0], ir.Arguments)
        self.use(self._of_operands(instruction.operands[has_results:]))

    def _if_undefined(self, shadow: str, name: str, *given: LlvmValue | int) -> None:
        function = self.function
        if shadow != DEFINED:
            with self.where(shadow):
                function.unit.calls.runtime_call(function, name, (*given, function.instruction_number), "u32")

    @contextmanager
    def where(self, shadow: str) -> Iterator[None]:
        """What is written meanwhile is only executed where a shadow is not zero, which is rare."""
        builder = self.function.builder
        undefined, on = builder.new_label("undefined"), builder.new_label("on")
        builder.branch(builder.value(f"icmp ne i32 {shadow}, 0"), undefined, on, likely=False)
        builder.label(undefined)
        yield
        builder.jump(on)
        builder.label(on)

    # Memory and lanes.

    @property
    def is_source(self) -> bool:
        """Whether the instruction that is being translated can give an undefined value."""
        return self.function.position in self._sources

    @property
    def source(self) -> int:
        """The bit of a load whose value is followed; else 0."""
        return 1 << self._sources[self.function.position] if self.is_source else 0

    def stored(self, address: LlvmAddress, values: Sequence[LlvmValue], is_strong: bool) -> str:
        """The shadow of what is stored; of a vector, if some of it is defined and not in global memory, there is none.

        What others see at once is used, and so are the arguments of `printf`, which are in local memory.
        """
        shadows = [value.undefined for value in values if value.undefined is not None]
        shadows = shadows or [shadow.text for shadow in self._stored]
        some = self.combine(shadows)
        if is_strong or (address.space == "local" and "vprintf" in self.function.unit.services):
            self.use(some)
            return DEFINED
        if address.space == "global":
            return some
        builder = self.function.builder
        for shadow in dict.fromkeys(shadows) if len(shadows) > 1 else ():
            some = builder.value(f"select i1 {builder.value(f'icmp ne i32 {shadow}, 0')}, i32 {some}, i32 0")
        return some

    def taken(self, shadow: str, parts: bool) -> str:
        """The shadow of what comes from other lanes, as the exchange buffer has it.

        If `parts` of words moved, all that is known is whether it is zero; `shfl` has its own for absent lanes.
        """
        builder, source = self.function.builder, self._sources.get(self.function.position)
        if parts:
            sources = -1 if source is None else 1 << source
            return builder.value(f"select i1 {builder.value(f'icmp ne i32 {shadow}, 0')}, i32 {sources}, i32 0")
        if source is None:
            return shadow
        absent = builder.value(f"icmp eq i32 {shadow}, {UNDEFINED}")
        given = (1, 1 << source, 0, 0, 0)
        self._if_undefined(builder.value(f"zext i1 {absent} to i32"), "note_undefined", *given)
        return builder.value(f"select i1 {absent}, i32 {1 << source}, i32 {shadow}")


def is_plain(effects: Effects) -> bool:
    """Whether an instruction computes, and does nothing else."""
    return not (
        effects.accesses or effects.steps or effects.fences or effects.converges or effects.barrier
        or effects.jump or effects.more_registers or effects.fewer_registers
    )  # fmt: skip


def passes_argument(instruction: ir.Instruction) -> bool:
    """Whether an instruction accesses a parameter: what is stored there goes to another function."""
    return any(word.startswith("param") for word in instruction.opcode.modifiers)


def _addresses(operands: Iterable[ir.Operand]) -> list[ir.Operand]:
    return [operand for operand in operands if isinstance(operand, ir.Address)]


def _parts(operand: ir.Operand) -> Sequence[ir.Operand]:
    return operand.elements if isinstance(operand, ir.Vector) else (operand,)
