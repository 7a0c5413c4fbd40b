"""Random programs whose results are defined: integers, floats, predicates, branches, loops, calls and warp collectives.

`Program` writes one; `interpret` runs it on the reference machine, a lane at a time, so that what the emulator makes of
registers across branches, guards and waits can be compared bit for bit.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from typing import Any

from ptxlab import ir
from ptxlab.emulate.translate.operands import immediate_bits
from ptxlab.ir.flow import flow_of
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Match
from ptxlab.isa.exact import Exact, evaluate, evaluate_warp
from ptxlab.isa.operand import Expected
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.types import type_named

INTEGERS, FLOATS, WIDE, PREDICATES = 12, 8, 6, 4
STRIDE = 4 * INTEGERS + 4 * FLOATS + 8 * WIDE

INTEGER_STATEMENTS = [
    "add.s32 R, R, R;", "sub.s32 R, R, I;", "mul.lo.s32 R, R, R;", "mul.hi.u32 R, R, R;", "mad.lo.s32 R, R, R, R;",
    "and.b32 R, R, R;", "or.b32 R, R, I;", "xor.b32 R, R, R;", "not.b32 R, R;", "shl.b32 R, R, R;", "shr.s32 R, R, I;",
    "shr.u32 R, R, R;", "min.s32 R, R, R;", "max.u32 R, R, R;", "abs.s32 R, R;", "popc.b32 R, R;", "clz.b32 R, R;",
    "brev.b32 R, R;", "bfe.u32 R, R, R, R;", "bfi.b32 R, R, R, R, R;", "prmt.b32 R, R, R, R;", "div.u32 R, R, R;",
    "rem.s32 R, R, R;", "selp.b32 R, R, R, P;", "sad.s32 R, R, R, R;", "shf.l.wrap.b32 R, R, R, R;", "mov.b32 R, F;",
    "cvt.rzi.s32.f32 R, F;", "cvt.u32.u64 R, D;", "mov.u32 R, %laneid;", "mov.u32 R, %tid.x;", "cnot.b32 R, R;",
    "add.cc.u32 R, R, R;", "addc.u32 R, R, R;", "subc.cc.u32 R, R, R;", "dp4a.s32.s32 R, R, R, R;",
    "fns.b32 R, R, R, R;",
]  # fmt: skip
FLOAT_STATEMENTS = [
    "add.f32 F, F, F;", "sub.f32 F, F, F;", "mul.f32 F, F, F;", "fma.rn.f32 F, F, F, F;", "fma.rn.f32 F, F, F, F;",
    "min.f32 F, F, F;", "max.NaN.f32 F, F, F;", "neg.f32 F, F;", "abs.f32 F, F;", "cvt.rn.f32.s32 F, R;",
    "mov.b32 F, R;", "add.rz.f32 F, F, F;", "mul.ftz.f32 F, F, F;", "fma.rn.sat.f32 F, F, F, F;",
    "selp.f32 F, F, F, P;",
    "add.f32 F, F, 0f3F800000;", "div.rn.f32 F, F, F;", "sqrt.rn.f32 F, F;", "mov.f32 F, F;",
]  # fmt: skip
WIDE_STATEMENTS = [
    "add.s64 D, D, D;", "mul.wide.u32 D, R, R;", "shl.b64 D, D, R;", "cvt.s64.s32 D, R;", "mov.b64 D, {R, R};",
    "xor.b64 D, D, D;", "mad.wide.s32 D, R, R, D;", "sub.u64 D, D, D;", "selp.b64 D, D, D, P;",
]  # fmt: skip
PREDICATE_STATEMENTS = [
    "setp.lt.s32 P, R, R;", "setp.ge.u32 P, R, I;", "setp.ne.and.s32 P, R, R, P;", "setp.lt.f32 P, F, F;",
    "and.pred P, P, P;", "not.pred P, P;", "xor.pred P, P, P;", "setp.gtu.f32 P, F, F;", "setp.eq.u64 P, D, D;",
]  # fmt: skip
COLLECTIVES = [
    "shfl.sync.bfly.b32 R|P, R, I, 31, -1;", "shfl.sync.idx.b32 R|P, R, R, 31, -1;", "vote.sync.ballot.b32 R, P, -1;",
    "match.any.sync.b32 R, R, -1;", "redux.sync.add.s32 R, R, -1;", "bar.warp.sync -1;", "bar.sync 0;",
]  # fmt: skip
FUNCTION = """.func (.param .b32 result) mix(.param .b32 a, .param .b32 b)
{
    .reg .b32 %r<6>;
    .reg .pred %p1;
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    shfl.sync.bfly.b32 %r3|%p1, %r1, 3, 31, -1;
    mad.lo.s32 %r4, %r3, %r2, %r1;
    @%p1 xor.b32 %r4, %r4, %r2;
    bar.warp.sync -1;
    add.s32 %r5, %r4, %r1;
    st.param.b32 [result], %r5;
    ret;
}
"""


class Program:
    """A kernel made from a seed; it writes all its registers to memory at the end."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = 0

    def text(self) -> str:
        lines = ["ld.param.u64 %rd7, [out];", "mov.u32 %r12, %tid.x;", f"mad.wide.u32 %rd7, %r12, {STRIDE}, %rd7;"]
        for number in range(INTEGERS):
            value = self.random.choice([0, 1, -1, 0x7FC00001, 0x80000000, self.random.getrandbits(32)])
            lines.append(f"mad.lo.s32 %r{number}, %r12, {self.random.getrandbits(16)}, {value};")
        lines += [f"mov.b32 %f{number}, %r{number};" for number in range(FLOATS)]
        lines += [f"cvt.u64.u32 %rd{number}, %r{number};" for number in range(WIDE)]
        lines += self.statements(self.random.randrange(10, 40), depth=0, together=True)
        offset = 0
        for name, count, type, size in (("r", INTEGERS, "b32", 4), ("f", FLOATS, "f32", 4), ("rd", WIDE, "b64", 8)):
            for number in range(count):
                lines.append(f"st.global.{type} [%rd7+{offset}], %{name}{number};")
                offset += size
        lines.append("ret;")
        head = ".version 8.0\n.target sm_90\n.address_size 64\n"
        registers = ".reg .b32 %r<20>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<8>;\n.reg .pred %p<4>;\n"
        slots = ".param .b32 pa;\n.param .b32 pb;\n.param .b32 pc;\n"
        body = "\n".join(lines)
        return f"{head}{FUNCTION}.visible .entry k(.param .u64 out)\n{{\n{registers}{slots}{body}\n}}\n"

    def statements(self, count: int, depth: int, together: bool) -> list[str]:
        """Statements; `together` where all lanes of the block come by."""
        lines: list[str] = []
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.08 and depth < 3:
                lines += self.choice(depth)
            elif kind < 0.16 and depth < 2:
                lines += self.loop(depth, together)
            elif kind < 0.26 and together:
                lines.append(self.filled(self.random.choice(COLLECTIVES)))
            elif kind < 0.30 and together:
                lines += [self.filled("st.param.b32 [pa], R;"), self.filled("st.param.b32 [pb], R;")]
                lines += ["call (pc), mix, (pa, pb);", self.filled("ld.param.b32 R, [pc];")]
            else:
                lines.append(self.random.choice(["", "", "", self.filled("@P "), self.filled("@!P ")]) + self.plain())
        return lines

    def plain(self) -> str:
        kinds = [INTEGER_STATEMENTS, INTEGER_STATEMENTS, FLOAT_STATEMENTS, WIDE_STATEMENTS, PREDICATE_STATEMENTS]
        return self.filled(self.random.choice(self.random.choice(kinds)))

    def choice(self, depth: int) -> list[str]:
        """A branch that lanes take or not."""
        self.labels += 2
        other, end = f"L{self.labels}", f"L{self.labels + 1}"
        self.labels += 1
        first = self.statements(self.random.randrange(1, 5), depth + 1, together=False)
        second = self.statements(self.random.randrange(1, 5), depth + 1, together=False)
        return [self.filled(f"@P bra {other};"), *first, f"bra {end};", f"{other}:", *second, f"{end}:"]

    def loop(self, depth: int, together: bool) -> list[str]:
        """A loop of a few iterations: as many for all lanes, or for each its own number."""
        self.labels += 1
        label, counter, predicate = f"L{self.labels}", f"%r{13 + 2 * depth}", "%p3"
        same = together and self.random.random() < 0.6
        start = [f"mov.u32 {counter}, {self.random.randrange(1, 4)};"]
        if not same:
            start = [f"and.b32 {counter}, %r12, 3;"]
        body = self.statements(self.random.randrange(1, 6), depth + 1, together=same)
        end = [
            f"setp.gt.s32 {predicate}, {counter}, 0;",
            f"sub.s32 {counter}, {counter}, 1;",
            f"@{predicate} bra {label};",
        ]
        return [*start, f"{label}:", *body, *end]

    def filled(self, text: str) -> str:
        """A statement with registers for its capital letters."""
        names = {"R": ("%r", INTEGERS), "F": ("%f", FLOATS), "D": ("%rd", WIDE), "P": ("%p", PREDICATES - 1)}
        found = ""
        for at, letter in enumerate(text):
            alone = (at == 0 or text[at - 1] in " {|!@") and (at + 1 == len(text) or text[at + 1] in ",;|} ")
            if letter in names and alone:
                name, count = names[letter]
                found += f"{name}{self.random.randrange(count)}"
            elif letter == "I" and alone:
                found += str(self.random.choice([0, 1, 5, 31, 32, self.random.getrandbits(31)]))
            else:
                found += letter
        return found


class Thread:
    """One thread on the reference machine."""

    def __init__(self, module: ir.Module, number: int, active: int) -> None:
        self.module = module
        self.number = number
        self.machine = Exact(number % 32, active)
        self.output: dict[int, int] = {}

    def run(self, function: ir.Function, given: Mapping[str, int]) -> Generator[Any, Any, int]:
        """Execute a function; stops at warp collectives, returns the first result."""
        instructions = list(function.instructions())
        flow = flow_of(function)
        registers: dict[int, int] = {}
        slots = dict(given)
        position = 0
        while position < len(instructions):
            instruction = instructions[position]
            position += 1
            guard = instruction.guard
            if guard is not None:
                assert isinstance(guard.register, ir.Register)
                if bool(registers.get(guard.register.index, 0)) == guard.negated:
                    continue
            opcode = instruction.opcode
            operands = instruction.operands
            if opcode.mnemonic == "bra":
                position = flow.blocks[flow.targets[position - 1][0]].start
            elif opcode.mnemonic == "ret":
                break
            elif opcode.mnemonic == "call":
                target = self.module["mix"]
                result = yield from self.run(target, {"a": slots["pa"], "b": slots["pb"]})
                slots["pc"] = result
            elif opcode.mnemonic == "ld":
                register, address = operands
                assert isinstance(register, ir.Register)
                assert isinstance(address, ir.Address)
                assert isinstance(address.base, ir.VariableReference)
                registers[register.index] = slots.get(address.base.name, 0)
            elif opcode.mnemonic == "st":
                address, value = operands
                assert isinstance(address, ir.Address)
                assert isinstance(value, ir.Register)
                bits = registers.get(value.index, 0)
                if isinstance(address.base, ir.VariableReference):
                    slots[address.base.name] = bits
                else:
                    self.output[address.offset] = bits
            else:
                yield from self._execute(instruction, registers)
        return slots.get("result", 0)

    def _execute(self, instruction: ir.Instruction, registers: dict[int, int]) -> Generator[Any, Any, None]:
        if instruction.opcode.mnemonic == "bar":
            yield None
            return
        match = instruction.opcode.match(tuple(shape_of(operand) for operand in instruction.operands))
        assert isinstance(match, Match)
        given: dict[str, Any] = {}
        written: list[ir.Operand] = []
        for expected, operand in zip(match.expected, instruction.operands, strict=True):
            first, second = (operand.first, operand.second) if isinstance(operand, ir.Pair) else (operand, None)
            if expected.role != "read":
                written += [first] if expected.second is None else [first, second]  # type: ignore[list-item]
            else:
                given[expected.name] = self._value(expected, first, registers)
        if instruction.opcode.mnemonic in ("shfl", "vote", "match", "redux"):
            results = yield match, given
        else:
            results = evaluate(match.form, match.candidate.modifiers, given, self.machine)
        for operand, result in zip(written, results, strict=False):
            if isinstance(operand, ir.Register):
                registers[operand.index] = result.bits

    def _value(self, expected: Expected, operand: ir.Operand, registers: Mapping[int, int]) -> Any:
        if isinstance(operand, ir.Vector):
            return tuple(self._value(expected, element, registers) for element in operand.elements)
        type = expected.type or type_named("u32")
        match operand:
            case ir.Register():
                return Pattern.of(type, registers.get(operand.index, 0))
            case ir.Immediate():
                return Pattern.of(type, immediate_bits(operand, type))
            case ir.SpecialRegister():
                return Pattern.of(type, self.number if operand.name == "%tid" else self.number % 32)
            case ir.Negated():
                return ~self._value(expected, operand.operand, registers)
        raise AssertionError(operand)


def interpret(module: ir.Module, threads: int) -> list[dict[int, int]]:
    """What each thread of a block writes, by offset."""
    lanes = [Thread(module, number, (1 << min(32, threads - number // 32 * 32)) - 1) for number in range(threads)]
    running = {number: lane.run(module["k"], {}) for number, lane in enumerate(lanes)}
    answers: dict[int, Any] = dict.fromkeys(running)
    while running:
        stopped: dict[int, Any] = {}
        for number in list(running):
            try:
                stopped[number] = running[number].send(answers[number])
            except StopIteration:
                del running[number]
        answers = dict.fromkeys(stopped)
        for warp in {number // 32 for number in stopped}:
            here = {number: stop for number, stop in stopped.items() if number // 32 == warp}
            first = next(iter(here.values()))
            if first is None:
                continue
            match = first[0]
            machines = {number % 32: lanes[number].machine for number in here}
            operands = {number % 32: stop[1] for number, stop in here.items()}
            for lane, results in evaluate_warp(match.form, match.candidate.modifiers, operands, machines).items():
                answers[32 * warp + lane] = results
    return [lane.output for lane in lanes]
