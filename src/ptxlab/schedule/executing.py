"""Instructions of a naive kernel on symbols: what each register holds, and which elements are read and stored."""

from __future__ import annotations

import struct
from typing import Any, NoReturn

from ptxlab.ir import Function, Module
from ptxlab.ir.operands import Address, Immediate, Register, SpecialRegister
from ptxlab.ir.statements import Instruction, Label
from ptxlab.isa.operation import Operation
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.recognized import Recognized
from ptxlab.schedule.symbolic import Float, Predicate, Value, compared, multiplied, times

BYTES = 4
_COPIES = (Operation.COPY, Operation.ADDRESS, Operation.CONVERSION)
_JOINED = {Operation.OR: "or", Operation.AND: "and"}
_NUMBERS = {
    Operation.SUM: "({} + {})",
    Operation.DIFFERENCE: "({} - {})",
    Operation.PRODUCT: "({} * {})",
    Operation.PRODUCT_SUM: "({} * {} + {})",
    Operation.QUOTIENT: "({} / {})",
    Operation.NEGATION: "(-{})",
    Operation.MAGNITUDE: "abs({})",
    Operation.MINIMUM: "min({}, {})",
    Operation.MAXIMUM: "max({}, {})",
}
_FUNCTIONS = {"sqrt": "sqrt({})", "rsqrt": "rsqrt({})", "tanh": "tanh({})", "rcp": "(1.0 / {})"}
CHANGED = {"sat", "relu", "rz", "rm", "rp", "NaN", "xorsign"}  # what an algorithm does not say of a number


class Execution:
    """The values of registers, and what is recognized so far."""

    def __init__(self, module: Module, function: Function) -> None:
        self.values: dict[str, Value] = {}
        self.found = Recognized(module, function)
        self.here: Instruction | Label | None = None
        instructions = [one for one in function.body or () if isinstance(one, Instruction)]
        self.special = {
            f"{operand.name}.{operand.component}"
            for one in instructions
            for operand in one.operands
            if isinstance(operand, SpecialRegister)
        }

    def refuse(self, message: str, help: str = "") -> NoReturn:
        """Refuse the kernel, on the line that is executed."""
        self.found.refuse(self.here, message, help)

    def execute(self, one: Instruction) -> None:
        """Execute an instruction that is not a branch."""
        words, effects = one.opcode.modifiers, effects_of(one)
        is_number = words[-1] == "f32"
        kinds = {access.kind for access in effects.accesses}
        if kinds:
            if "param" in words:
                self._parameter(one)
            elif not is_number or not {"shared", "local", "const"}.isdisjoint(words) or "update" in kinds:
                self.refuse_instruction(one)
            elif kinds == {"load"}:
                self.values[self._target(one)] = self._element(one)
            else:
                self._store(one)
        elif effects.computes in _COPIES and not (effects.computes is Operation.CONVERSION and "f32" in words):
            self._assign(one, self.operand(one.operands[1]))
        elif effects.computes is Operation.CONVERSION and words[-2] == "f32" and words[-1] in ("s32", "u32"):
            self._assign(one, Float(self.found.number(self.integer(one.operands[1]), one)))
        elif effects.computes is Operation.COMPARISON:
            self._assign(one, self._comparison(one))
        elif effects.computes in (*_JOINED, Operation.NOT) and words[-1] == "pred":
            self._assign(one, self._joined(one, effects.computes))
        elif is_number:
            self._assign(one, self._computed(one, effects.computes))
        else:
            self._assign(one, self._indexed(one, effects.computes))

    def refuse_instruction(self, one: Instruction) -> NoReturn:
        """Refuse what is not executed."""
        self.refuse(f"`{one.opcode.text}` is not part of what is recognized", "write the algorithm in Python")

    def _target(self, one: Instruction) -> str:
        if one.guard is not None:
            self.refuse("an instruction that some threads skip", "`max`, `min` or a branch to the end are recognized")
        return name_of(one.operands[0])

    def _assign(self, one: Instruction, value: Value) -> None:
        name = self._target(one)
        self.values[name] = self._with_index(value, name) if isinstance(value, Linear) else value

    def _comparison(self, one: Instruction) -> Predicate:
        left, right = (self.integer(r) for r in one.operands[1:3])
        found = compared(one.opcode.modifiers[0], left, right) if len(one.operands) == 3 else None
        return found or self.refuse_instruction(one)

    def _joined(self, one: Instruction, how: Operation | None) -> Predicate:
        parts = [self.predicate(r) for r in one.operands[1:]]
        if how is Operation.NOT:
            return parts[0].negated
        join = _JOINED[how] if how is not None else ""
        if any(part.join not in ("", join) for part in parts):
            self.refuse("a condition of both `or` and `and`")
        return Predicate(tuple(one for part in parts for one in part.parts), join)

    def _computed(self, one: Instruction, how: Operation | None) -> Float:
        text = _FUNCTIONS.get(one.opcode.mnemonic) if how is Operation.FUNCTION else _NUMBERS.get(how) if how else None
        if text is None or not CHANGED.isdisjoint(one.opcode.modifiers):
            self.refuse_instruction(one)
        return Float(text.format(*(self._number(r) for r in one.operands[1:])))

    def _parameter(self, one: Instruction) -> None:
        address = one.operands[1]
        if not isinstance(address, Address) or address.offset:
            self.refuse("a part of a parameter")
        name = self.found.parameters.get(name_of(address.base))
        if name is None:
            self.refuse(f"`{name_of(address.base)}` is not a parameter of the kernel")
        if one.opcode.modifiers[-1] == "f32":
            self.found.scalars.append(name)
            self.values[self._target(one)] = Float(name)
        else:
            self.values[self._target(one)] = Linear.of(name)

    def _indexed(self, one: Instruction, how: Operation | None) -> Linear:
        values = [self.integer(r) for r in one.operands[1:]]
        match how, values:
            case Operation.SUM, [left, right]:
                return left + right
            case Operation.DIFFERENCE, [left, right]:
                return left - right
            case Operation.PRODUCT, [left, right]:
                return multiplied(left, right)
            case Operation.PRODUCT_SUM, [left, right, third]:
                return multiplied(left, right) + third
            case Operation.LEFT_SHIFT, [left, right]:
                if not right.is_constant:
                    self.refuse("a shift by a number that is not known")
                return left * (1 << right.constant)
        return self.refuse_instruction(one)

    def _with_index(self, value: Linear, register: str) -> Linear:
        """An integer in which the number of a block and that of a thread in it are the index of a loop."""
        for direction in "xyz":
            block, thread = f"%ctaid.{direction}", f"%tid.{direction}"
            size = times(block, f"%ntid.{direction}")
            count, apart = value.coefficient(thread), value.coefficient(block)
            if count and value.coefficient(size) == count:
                pair = {size, thread}
            elif count and apart % count == 0 and abs(apart) > abs(count):
                self._check_threads(direction, apart // count)
                pair = {block, thread}
            elif (block in self.special) != (thread in self.special):  # all blocks do the same, or all threads
                count = apart or count
                pair = {block if block in self.special else thread} if count else set()
            else:
                pair = set()
            if pair:
                name = self.found.axes.setdefault(direction, self.found.named(register))
                value = value - value.only(pair) + Linear.of(name) * count
        return value

    def _check_threads(self, direction: str, count: int) -> None:
        """A block has as many threads as the kernel says in one place."""
        if self.found.threads.setdefault(direction, count) != count:
            self.refuse(
                f"blocks of {count} and of {self.found.threads[direction]} threads in dimension {direction}",
                f"an index is `%ctaid.{direction} * %ntid.{direction} + %tid.{direction}`",
            )

    def predicate(self, operand: object) -> Predicate:
        """The predicate in a register."""
        value = self.values.get(name_of(operand))
        if not isinstance(value, Predicate):
            self.refuse(f"`{name_of(operand)}` does not compare an index with a limit")
        return value

    def integer(self, operand: object) -> Linear:
        """The integer that an operand is."""
        value = self.operand(operand)
        if not isinstance(value, Linear):
            self.refuse(f"`{name_of(operand)}` is not a sum of indices and sizes")
        return value

    def _number(self, operand: object) -> str:
        value = self.operand(operand)
        if not isinstance(value, Float):
            self.refuse(f"`{name_of(operand)}` is not a number in f32 that is known")
        return value.text

    def operand(self, operand: object) -> Value:
        """The value of an operand."""
        match operand:
            case Register(name=name):
                if name not in self.values:
                    self.refuse(f"`{name}` depends on a loop, or is not written")
                return self.values[name]
            case SpecialRegister(name=name, component=component):
                return Linear.of(f"{name}.{component}")
            case Immediate(value=value, kind="f32"):
                return Float(repr(struct.unpack("<f", struct.pack("<I", value))[0]))
            case Immediate(value=value, kind="f64"):
                return Float(repr(struct.unpack("<d", struct.pack("<Q", value))[0]))
            case Immediate(value=value):
                return Linear.of(int(value))
        return self.refuse("an operand that is not a register or a number")

    def _place(self, one: Instruction, address: object) -> tuple[str, Linear]:
        """The array that an address is in, and how many elements on."""
        if not isinstance(address, Address) or not isinstance(address.base, Register):
            self.refuse("an address that is not in a register")
        value = self.integer(address.base) + address.offset
        found = [name for name, count in value.terms if name in self.found.pointers and count == 1]
        if len(found) != 1 or not (value - found[0]).is_multiple(BYTES, {}):
            self.refuse("an address that is not a pointer and a multiple of 4 bytes")
        offset = (value - found[0]) // BYTES
        self.found.accesses.append((found[0], offset, one))
        return found[0], offset

    def _element(self, one: Instruction) -> Float:
        array, _ = self._place(one, one.operands[1])
        return Float(f"{array}[{{{len(self.found.accesses) - 1}}}]")

    def _store(self, one: Instruction) -> None:
        if one.guard is not None:
            self.refuse("a store that some threads skip", "let them branch to the end of the kernel")
        array, offset = self._place(one, one.operands[0])
        self.found.stores.append((array, offset, self._number(one.operands[1]), one))


def effects_of(one: Instruction) -> Any:
    """What the table says that an instruction does."""
    return one.opcode.candidates[0].effects


def name_of(operand: object) -> str:
    """The name of a register, a variable or a label; others have none."""
    return str(getattr(operand, "name", ""))
