"""One thread of a kernel of `programs.py`, run by the reference machine of the table."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.isa.exact import evaluate
from ptxlab.isa.operand import Expected
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.types import Type

OUT, DATA, TILE = 1 << 40, 1 << 41, 0x7000


class Thread:
    """The registers of one thread, and where it is."""

    def __init__(self, facts: Facts, number: int, size: int, data: npt.NDArray[np.uint64]) -> None:
        self.facts, self.number = facts, number
        self.registers: dict[int, int] = {}
        self.data = data.tobytes()
        self.stored: dict[int, int] = {}
        self.special = {"%tid": number, "%laneid": number % 32, "%ntid": size, "%ctaid": 0}

    def run(self) -> dict[int, int]:
        """What it stores, by the offset from `OUT`."""
        at = 0
        blocks = self.facts.flow.blocks
        while True:
            instruction = self.facts.instructions[at]
            guard = instruction.guard
            holds = guard is None or bool(self.bits(guard.register, None)) != guard.negated
            word = instruction.opcode.mnemonic
            if word == "ret":
                return self.stored
            if holds and word == "bra":
                at = blocks[self.facts.flow.targets[at][0]].start
                continue
            if holds:
                self.step(instruction, at)
            at += 1

    def step(self, instruction: ir.Instruction, at: int) -> None:
        match = self.facts.matches[at]
        assert match is not None
        first, *others = instruction.operands
        type = match.expected[0].type
        if instruction.opcode.mnemonic == "st":
            assert isinstance(first, ir.Address)
            assert match.expected[1].type is not None
            stored = self.bits(others[0], match.expected[1].type)
            self.stored[self.bits(first.base, match.expected[0].type) + first.offset - OUT] = stored
        elif instruction.opcode.mnemonic == "ld":
            assert type is not None
            self.write(first, type, self.load(others[0], type.width // 8))
        else:
            given = {expected.name: self.operand(operand, expected)
                     for operand, expected in zip(instruction.operands, match.expected, strict=True)
                     if expected.role == "read"}  # fmt: skip
            results = evaluate(match.form, match.candidate.modifiers, given)
            targets = (first.first, first.second) if isinstance(first, ir.Pair) else (first,)
            for target, result in zip(targets, results, strict=False):
                parts = result if isinstance(result, tuple) else (result,)
                elements = target.elements if isinstance(target, ir.Vector) else (target,)
                for element, part in zip(elements, parts, strict=True):
                    self.write(element, part.type, part.bits)

    def load(self, address: ir.Operand, bytes: int) -> int:
        assert isinstance(address, ir.Address)
        if isinstance(address.base, ir.VariableReference):
            return {"out": OUT, "data": DATA}[address.base.name]
        at = self.bits(address.base, None) + address.offset - DATA
        return int.from_bytes(self.data[at : at + bytes], "little")

    def operand(self, operand: ir.Operand, expected: Expected) -> Any:
        if expected.kind == "immediate":
            assert isinstance(operand, ir.Immediate)
            return operand.value
        assert expected.type is not None
        if isinstance(operand, ir.Vector):
            return tuple(Pattern.of(expected.type, self.bits(one, expected.type)) for one in operand.elements)
        return Pattern.of(expected.type, self.bits(operand, expected.type))

    def bits(self, operand: ir.Operand, type: Type | None) -> int:
        match operand:
            case ir.Register():
                return self.registers[operand.index]
            case ir.Immediate():
                return operand.value
            case ir.SpecialRegister():
                return self.special[operand.name]
            case ir.VariableReference():
                return TILE + operand.offset
            case ir.Negated():
                return 1 - self.bits(operand.operand, type)
        raise AssertionError(operand)

    def write(self, register: ir.Operand, type: Type, bits: int) -> None:
        assert isinstance(register, ir.Register)
        extended = bits - (1 << type.width) if type.kind == "s" and bits >> (type.width - 1) else bits
        self.registers[register.index] = extended & ((1 << register.type.width) - 1)
