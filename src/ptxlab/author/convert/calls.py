"""Which instructions are calls in Python, and what each of them reads and returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ptxlab import ir
from ptxlab.author.constants import print_constant
from ptxlab.author.convert.structure import read_indices_of
from ptxlab.author.emit import plan
from ptxlab.author.spelling import spelling
from ptxlab.ir.operands import Operand
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Jump, Match
from ptxlab.isa.operand import Expected
from ptxlab.report import PtxError


class _Awkward(Exception):  # noqa: N818 - not an error: the instruction stays text
    """Python has no call for this instruction."""


@dataclass(slots=True)
class CallResult:
    """One result of an instruction: its registers (one, or those of a vector) as they are written."""

    operand: Operand
    expected: Expected

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Its registers."""
        return self.operand.elements if isinstance(self.operand, ir.Vector) else (self.operand,)


@dataclass(slots=True)
class InstructionCall:
    """An instruction as a call: what it writes, and with what of the table it goes together."""

    instruction: ir.Instruction
    match: Match
    results: list[CallResult]
    reads: list[tuple[Operand, Expected]]
    kinds: tuple[object, ...]  # of what it reads, as `emit.kind_of` will find them
    pair: bool

    @property
    def registers_read(self) -> Iterator[int]:
        """The registers that it reads, its guard included, by their numbers."""
        return read_indices_of(self.instruction.guard, [operand for operand, _ in self.reads])

    @property
    def registers_written(self) -> list[int]:
        """The registers that it writes, by their numbers."""
        return [part.index for r in self.results for part in r.parts if isinstance(part, ir.Register)]


def call_of(instruction: ir.Instruction, typed: bool) -> InstructionCall | None:
    """The instruction as a call, if there is one; `typed` says that registers keep their types."""
    opcode = instruction.opcode
    if opcode.jump is Jump.CALL or not opcode.candidates or opcode.candidates[0].violation is not None:
        return None
    found = opcode.match(tuple(shape_of(operand) for operand in instruction.operands))
    if not isinstance(found, Match):
        return None
    if instruction.guard is not None and not isinstance(instruction.guard.register, ir.Register):
        return None
    results: list[CallResult] = []
    reads: list[tuple[Operand, Expected]] = []
    pair = False
    for operand, expected in zip(instruction.operands, found.expected, strict=True):
        if expected.kind == "sink":
            continue
        if expected.role != "write":
            reads.append((operand, expected))
        elif isinstance(operand, ir.Pair):
            assert expected.second is not None
            pair = pair or expected.second_optional
            results += [CallResult(operand.first, expected), CallResult(operand.second, expected.second)]
        else:
            results.append(CallResult(operand, expected))
    try:
        kinds = tuple(_kind(operand, expected, typed) for operand, expected in reads)
        outs = tuple(_kind(result.operand, result.expected, typed) for result in results) if results else None
        head, _, words = opcode.text.partition(".")
        if words:
            spelling(head)[words]
    except (_Awkward, PtxError):
        return None
    if plan(opcode.text, kinds, outs, pair or len(results) > 1) is None:
        return None
    return InstructionCall(instruction, found, results, reads, kinds, pair)


def _kind(operand: Operand, expected: Expected, typed: bool) -> Any:
    """What `emit.kind_of` will say of the argument."""
    match operand:
        case ir.Register():
            if operand.vector != 1:
                raise _Awkward
            if typed:
                return operand.type.name
            return "pred" if operand.type.kind == "p" else f"b{operand.type.width}"
        case ir.Immediate():
            if operand.is_float:
                return "#float"
            try:
                print_constant(operand.value, expected, "")
            except PtxError:
                raise _Awkward from None
            return "#int"
        case ir.Sink():
            return "_"
        case ir.Vector():
            return ("(", *[_kind(part, expected, typed) for part in operand.elements])
        case ir.Negated(operand=ir.Register()):
            return ("!", "pred")
        case ir.SpecialRegister():
            return ("%", shape_of(operand))
        case ir.LabelReference() if expected.kind in ("label", "targets"):
            return ("@",)
        case ir.Selection(register=ir.Register()):
            return ("=", shape_of(operand))
        case ir.VariableReference():
            return ("*", space_of(operand.variable), f"&{space_of(operand.variable)}")
        case ir.Address():
            return _address_kind(operand, expected, typed)
    raise _Awkward


def _address_kind(address: ir.Address, expected: Expected, typed: bool) -> Any:
    if address.unified or expected.kind != "address":
        raise _Awkward
    base = _kind(address.base, expected, typed)
    if isinstance(address.base, ir.Immediate) or (address.arguments and (address.offset or address.plus_zero)):
        raise _Awkward
    if address.arguments:
        if len(address.arguments) != len(expected.inner):
            raise _Awkward
        inner = [_kind(a, e, typed) for a, e in zip(address.arguments, expected.inner, strict=True)]
        return ("(", base, *inner)
    if isinstance(address.base, ir.Register) and (address.offset or address.plus_zero):
        return ("=", ("[", base))
    if isinstance(address.base, ir.VariableReference) and address.plus_zero:
        return ("=", ("[", f"&{space_of(address.base.variable)}"))
    return base


def returns_the_same(call: InstructionCall) -> bool:
    """Whether the registers that the call makes by itself are as many and as wide as the ones written."""
    made = plan(call.instruction.opcode.text, call.kinds, None, call.pair)
    if made is None:
        return False
    wanted_shape = [(e.type, e.count) for e in made.expected if e.role == "write"]
    written_shape = [
        (e.type, len(operand.elements) if isinstance(operand, ir.Vector) else 0)
        for operand, e in zip(call.instruction.operands, call.match.expected, strict=True)
        if e.role == "write"
    ]
    vector_pair = call.pair and any(isinstance(result.operand, ir.Vector) for result in call.results)
    if call.results and not vector_pair and wanted_shape != written_shape:
        return False
    for result in call.results:
        for part in result.parts:
            wanted = result.expected.type
            if not isinstance(part, ir.Register) or wanted is None or part.type.width != wanted.width:
                return False
            if (part.type.kind == "p") != (wanted.kind == "p") or wanted.width == 8:
                return False
    return True


def space_of(variable: ir.Variable) -> str:
    """The state space of a variable; that of a texture, sampler or surface is its type."""
    return variable.type.name if variable.type.kind == "o" else variable.state_space
