"""The program of a recorded launch: its instructions as they are numbered there, their lines, and the types of
registers."""

from __future__ import annotations

import struct
from functools import cached_property
from itertools import starmap

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.trace_file import TraceError
from ptxlab.ir.effects import registers_in
from ptxlab.ir.inlining import SourceFrame
from ptxlab.ir.shapes import has_form, match_of
from ptxlab.isa import Match
from ptxlab.isa.types import Type
from ptxlab.report import PtxError, Span
from ptxlab.syntax import parse
from ptxlab.values import Json

Value = int | float | bool


class RecordedProgram:
    """The module of a recorded launch, read again from its text."""

    def __init__(self, description: Json) -> None:
        try:
            self.module = parse(description["text"], name=description["name"])
            self.kernel = self.module[description["kernel"]]
        except (PtxError, KeyError) as problem:
            raise TraceError(f"the kernel of the recorded launch cannot be read: {problem}") from None
        chains = [tuple(starmap(SourceFrame, frames)) for frames in description.get("chains", ())]
        self.module.calls = [(offset, chains[number]) for offset, number in description.get("calls", ())]
        self.functions = layout.reachable(self.module, self.kernel)
        self.instructions = [(f, one) for f in self.functions for one in f.instructions()]
        self.variables = layout.Variables(self.module, self.functions)
        self.parameters = layout.block_of(self.kernel.parameters)
        self._matches: dict[int, Match | None] = {}
        if (wrong := next((one for _, one in self.instructions if not has_form(one)), None)) is not None:
            raise TraceError(
                f"the kernel of the recorded launch cannot be read: `{wrong.opcode.text}` has no such form"
            )

    def match(self, number: int) -> Match | None:
        """The form of an instruction; None of calls."""
        if number not in self._matches:
            self._matches[number] = match_of(self.instructions[number][1])
        return self._matches[number]

    def uses(self, unit: str) -> bool:
        """Whether it has an instruction that does anything with a unit: `uses("tensor_memory")`."""
        matches = map(self.match, range(len(self.instructions)))
        return any(match is not None and match.effects.uses(unit) for match in matches)

    def text(self, number: int) -> str:
        """An instruction as it is written."""
        span = self.span(number)
        return "" if span is None else " ".join(span.source.text[span.start : span.end].split()).rstrip(" ;")

    def span(self, number: int) -> Span | None:
        """Where an instruction is in the text."""
        return self.module.span(self.instructions[number][1])

    def line(self, number: int) -> int:
        """The line of an instruction."""
        span = self.span(number)
        return 0 if span is None else span.source.position(span.start)[0]

    @cached_property
    def registers(self) -> list[dict[str, ir.Register]]:
        """The registers of each function by name."""
        found: list[dict[str, ir.Register]] = []
        for function in self.functions:
            own: dict[str, ir.Register] = {}
            for instruction in function.instructions():
                guard = [] if instruction.guard is None else [instruction.guard.register]
                operands = [r for operand in instruction.operands for r in registers_in(operand)]
                for register in (*guard, *operands):
                    if isinstance(register, ir.Register):
                        own.setdefault(register.name, register)
            found.append(own)
        return found

    def find_type(self, function: int, name: str) -> Type | None:
        """The type of a register, or of an element of one, if there is such a register."""
        registers = self.registers[function]
        register = registers.get(name) or registers.get(name.rpartition(".")[0])
        return None if register is None else register.type

    def type_of(self, function: int, name: str) -> Type:
        """The type of a register, or of an element of one."""
        type = self.find_type(function, name)
        if type is None:
            raise KeyError(f"there is no register `{name}` in `{self.functions[function].name}`")
        return type

    def numbers_of(self, function: int) -> range:
        """The numbers of the instructions of a function."""
        counts = [sum(1 for _ in one.instructions()) for one in self.functions[: function + 1]]
        return range(sum(counts[:-1]), sum(counts))

    def value(self, function: int, name: str, data: bytes) -> Value:
        """What a register holds, as its type has it."""
        return typed(self.type_of(function, name), data)


def typed(type: Type, data: bytes) -> Value:
    """Bytes as a value of a type: floats of 32 and 64 bits, integers, predicates; others are their bits."""
    if type.width == 1:
        return bool(data[0])
    if type.name in ("f32", "f64"):
        (number,) = struct.unpack("<f" if type.width == 32 else "<d", data)
        return float(number)
    return int.from_bytes(data, "little", signed=type.kind == "s")
