"""The registers of a PTX function: variables on the stack, which LLVM turns into values.

Within a basic block what was written or read last is known by its name, so that LLVM never sees variables that it
would have to remove again: a register is read from its variable once, and written to it only if that is read later.

In a function that is too large for LLVM to optimize (`flat`), a register is in the frame all the time, and nothing is
saved or fetched where a thread waits: the text, and the time that LLVM takes, grow with the instructions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.translate.values import LlvmValue, bits_of
from ptxlab.ir.effects import RegisterEffects, registers_in
from ptxlab.isa import Match
from ptxlab.isa.operation import Operation
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function


@dataclass(slots=True)
class _Known:
    """A register's value here, also as a `float` if it has such a name; and the text that writes it to its variable."""

    text: str
    raw: str | None
    stores: list[str]


class Registers:
    """The registers of a function while that is translated, by their numbers."""

    def __init__(self, function: Function, instructions: Sequence[ir.Instruction], effects: RegisterEffects) -> None:
        self._function = function
        self.by_index = _used(instructions)
        self._flat = function.unit.flat
        self._sums = frozenset() if self._flat else _sums(instructions, function.matches, effects, self.by_index)
        self._known: dict[tuple[int, int], _Known] = {}
        self.shadows: Mapping[int, ir.Register] = {}  # see `undefined`
        self._guarded: set[tuple[int, int]] | None = None  # what became known where a guard holds
        self._labels = 0  # of the text, when the instruction started

    def declarations(self) -> Iterator[str]:
        """The variables."""
        if self._flat:
            return
        for register in self.by_index.values():
            for element in range(register.vector):
                yield f"  {variable(register, element)} = alloca {bits_of(register.type)}"
        for index in sorted(self._sums):
            yield f"  %r{index}.raw = alloca float"

    def get(self, register: ir.Register, element: int = 0) -> LlvmValue:
        """The value of a register."""
        known = self._known.get((register.index, element))
        if known is not None:
            return LlvmValue(self._function, register.type, known.text, known.raw)
        name = self._variable(register, element, self._function.builder.gap)
        text = self._function.builder.value(f"load {bits_of(register.type)}, ptr {name}")
        raw = f"{name}.raw" if register.index in self._sums else None
        if self._labels == self._function.builder.labels:  # else this may be a part that is not always executed
            self._remember((register.index, element), _Known(text, raw, []))
        return LlvmValue(self._function, register.type, text, raw)

    def put(
        self, register: ir.Register, text: str, element: int = 0, raw: str | None = None, undefined: str = "0"
    ) -> None:
        """Write a register and its shadow; `raw` is the value as a `float` before its NaNs became canonical."""
        if register.index in self.shadows:
            self.put(self.shadows[register.index], undefined, element)
        builder = self._function.builder
        before = self._known.get((register.index, element))
        if before is not None and self._guarded is None:
            before.stores.clear()
        if raw is not None and raw[:2] == "%r":
            raw = builder.value(f"load float, ptr {raw}")
        if self._function.recording is not None and register.variable is not None:
            self._function.recording.note_register(register, element, text)
        stores = builder.gap()
        name = self._variable(register, element, lambda: stores)
        stores.append(f"  store {bits_of(register.type)} {text}, ptr {name}")
        stores += self.raw_stores(register, text, raw)
        self._remember((register.index, element), _Known(text, raw if register.type.width == 32 else None, stores))

    def _variable(self, register: ir.Register, element: int, lines: Callable[[], list[str]]) -> str:
        """The name of what holds a register; if that is in the frame, `lines` get its address."""
        if not self._flat:
            return variable(register, element)
        offset = self._function.frame.offset((register.index, element), register.type.width // 8)
        name = self._function.builder.fresh()
        lines().append(f"  {name} = getelementptr i8, ptr %frame, i64 {offset}")
        return name

    def raw_stores(self, register: ir.Register, text: str, raw: str | None = None) -> list[str]:
        """The lines that also keep the value as a `float`, if arithmetic wants that."""
        if register.index not in self._sums:
            return []
        lines = []
        if raw is None:
            raw = self._function.builder.fresh()
            lines.append(f"  {raw} = bitcast i32 {text} to float")
        return [*lines, f"  store float {raw}, ptr %r{register.index}.raw"]

    def _remember(self, key: tuple[int, int], known: _Known) -> None:
        self._known[key] = known
        if self._guarded is not None:
            self._guarded.add(key)

    # What is known where.

    def begin_instruction(self) -> None:
        self._labels = self._function.builder.labels

    def begin_guarded(self) -> None:
        """From here on the guard of an instruction holds."""
        self._guarded = set()
        self.begin_instruction()

    def end_guarded(self) -> None:
        """Here it may not have held: what became known since is not."""
        for key in self._guarded or ():
            self._known.pop(key, None)
        self._guarded = None

    def forget(self) -> None:
        """A thread comes here from elsewhere: its registers are in their variables."""
        self._known.clear()

    def drop(self, live: int) -> None:
        """Do not write registers that are known here and not read later, `live` being those that are."""
        for (index, _), known in self._known.items():
            if not live >> index & 1:
                known.stores.clear()


def variable(register: ir.Register, element: int = 0) -> str:
    """The variable that holds a register, or one element of a vector register."""
    return f"%r{register.index}.{element}" if register.vector > 1 else f"%r{register.index}"


_SUMS = (Operation.SUM, Operation.DIFFERENCE, Operation.PRODUCT, Operation.PRODUCT_SUM)


def _sums(
    instructions: Sequence[ir.Instruction],
    matches: Sequence[Match | None],
    effects: RegisterEffects,
    registers: dict[int, ir.Register],
) -> frozenset[int]:
    """The registers that sums and products of f32 both read and write."""
    reads: set[int] = set()
    writes: set[int] = set()
    for position, (instruction, match) in enumerate(zip(instructions, matches, strict=True)):
        if match is not None and match.form.computes in _SUMS and "f32" in instruction.opcode.modifiers:
            reads.update(effects.reads[position])
            writes.update(effects.writes[position])
    return frozenset(
        index for index in reads & writes if registers[index].type.width == 32 and registers[index].vector == 1
    )


def _used(instructions: Sequence[ir.Instruction]) -> dict[int, ir.Register]:
    found: dict[int, ir.Register] = {}
    for instruction in instructions:
        if instruction.guard is not None and isinstance(instruction.guard.register, ir.Register):
            found.setdefault(instruction.guard.register.index, instruction.guard.register)
        for operand in instruction.operands:
            for register in registers_in(operand):
                found.setdefault(register.index, register)
    return found
