"""What `facts.symbolic` says of an operand is what it holds: whenever an instruction of a random kernel runs.

The reference machine runs single threads and notes what atoms are: how often loops came round, what instructions
wrote, and what registers held at the places that they name.
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.expressions import Atom, Linear
from ptxlab.ir.effects import registers_in
from tests.flow.programs import THREADS, jumps, kernel
from tests.flow.reference import DATA, OUT, TILE, Thread

SEEDS = int(os.environ.get("PTXLAB_FLOW_SEEDS", "5"))  # by hand: 2000
MOST_STEPS = 800  # of a kernel that does not end
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


class Watched(Thread):
    """A thread that compares each register that it reads with the expression for it."""

    def __init__(self, facts: Facts, number: int, data: npt.NDArray[np.uint64], claims: dict[str, int]) -> None:
        super().__init__(facts, number, THREADS, data)
        self.claims = claims
        self.counters: dict[int, int] = {}
        self.written: dict[tuple[int, int], int] = {}
        self.held: dict[int, dict[int, int]] = {}
        self.entered: dict[int, dict[int, int]] = {}

    def run(self) -> dict[int, int]:
        blocks, at, before = self.facts.flow.blocks, 0, -1
        above = self.facts.flow.dominators()
        for _ in range(MOST_STEPS):
            block = self.facts.chains.block_of(at)
            if blocks[block].start == at:
                number = before
                while number not in (block, above.get(number, number)):
                    number = above[number]
                is_back = number == block and before >= 0
                self.counters[block] = self.counters.get(block, 0) + 1 if is_back else 0
                if not is_back:
                    self.entered[block] = dict(self.registers)
            self.held[at] = dict(self.registers)
            instruction = self.facts.instructions[at]
            guard = instruction.guard
            holds = guard is None or bool(self.bits(guard.register, None)) != guard.negated
            self.compare(at, instruction, holds)
            if instruction.opcode.mnemonic == "ret":
                return self.stored
            before = block
            if holds and instruction.opcode.mnemonic == "bra":
                at = blocks[self.facts.flow.targets[at][0]].start
                continue
            if holds:
                self.step(instruction, at)
                for register in self.facts.effects.writes[at]:
                    self.written[at, register] = self.registers[register]
            at += 1
        return self.stored

    def compare(self, at: int, instruction: ir.Instruction, holds: bool) -> None:
        match = self.facts.matches[at]
        expected = match.expected if match is not None else ()
        reads = [operand for operand, one in zip(instruction.operands, expected, strict=True) if one.role == "read"]
        registers = [one for operand in reads if holds for one in registers_in(operand)]
        if instruction.guard is not None and isinstance(instruction.guard.register, ir.Register):
            registers.append(instruction.guard.register)
        for register in registers:
            said = self.facts.symbolic(at, register)
            assert said.evaluate(self.atom) == self.registers[register.index], (at, str(register), str(said))
            self.claims["exact"] += 1
            self.claims["counted"] += "counter" in str(said)
            self.claims["of the thread"] += not any(word in str(said) for word in ("held", "written", "entered"))

    def atom(self, atom: Atom) -> int:
        detail: Any = atom.detail
        match atom.kind:
            case "special":
                return self.special[detail.partition(".")[0]]
            case "parameter":
                return {"out": OUT, "data": DATA}[detail[0].name]
            case "address":
                return TILE
            case "counter":
                return self.counters[detail]
            case "written":
                return self.written[detail]
            case "held":
                return self.held[detail[0]][detail[1]]
        assert atom.kind == "entered", atom
        return self.entered[detail[0]][detail[1]]


def test_an_expression_is_what_a_register_holds_whenever_it_is_read() -> None:
    claims = {"exact": 0, "counted": 0, "of the thread": 0}
    for seed in range(SEEDS):
        data = np.random.default_rng(seed).integers(0, 1 << 63, 8, np.uint64)
        for text in (kernel(seed), *(jumps(SEEDS * n + seed) for n in range(3))):
            facts = Facts.of(ptxlab.parse(text).functions[0])
            Watched(facts, 1 + seed % 63, data, claims).run()
    assert claims["counted"] > 20 * SEEDS
    assert claims["of the thread"] > claims["exact"] / 3


def facts_of(body: str) -> Facts:
    start = ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<9>; .shared .b8 tile[4096];\n"
    text = f"{HEAD}.entry k(.param .u64 p, .param .u32 n) .maxntid 256 {{ {start}{body} ret; }}"
    return Facts.of(ptxlab.parse(text).functions[0])


def stored(body: str) -> list[str]:
    """The expressions of the addresses that a kernel stores to."""
    facts = facts_of("ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; " + body)
    stores = [at for at, one in enumerate(facts.instructions) if one.opcode.mnemonic == "st"]
    return [str(facts.symbolic(at, facts.instructions[at].operands[0])) for at in stores]


def test_an_address_is_a_sum_of_what_the_thread_is_given() -> None:
    assert stored("mul.wide.u32 %d2, %r2, 16; add.s64 %d3, %d1, %d2; st.global.u32 [%d3+8], %r2;") == [
        "16*%tid.x + parameter(p, 0) + 8"
    ]


def test_quotients_and_remainders_are_taken_apart_in_mixed_radix() -> None:
    tile = "shr.u32 %r3, %r2, 5; and.b32 %r4, %r2, 31; mad.lo.u32 %r5, %r3, 128, %r4; "
    assert stored(tile + "shr.u32 %r6, %r5, 7; shl.b32 %r7, %r6, 2; st.shared.u32 [%r7], %r1;") == ["4*(%tid.x >> 5)"]
    assert stored(tile + "and.b32 %r6, %r5, 127; st.shared.u32 [%r6], %r1;") == ["(%tid.x & 31)"]
    assert stored("shl.b32 %r3, %r2, 3; or.b32 %r4, %r3, 5; st.shared.u32 [%r4], %r1;") == ["8*%tid.x + 5"]
    assert stored("shl.b32 %r3, %r2, 3; or.b32 %r4, %r3, 12; st.shared.u32 [%r4], %r1;") == ["(8*%tid.x | 12)"]


def test_a_sum_of_bits_apart_has_no_others() -> None:
    low, other = "and.b32 %r3, %r2, {}; ", "and.b32 %r4, %r2, {}; add.u32 %r5, %r3, %r4; or.b32 %r6, %r5, {}; "
    text = low + other + "st.shared.u32 [%r6], %r1;"
    assert stored(text.format(1, 4, 2)) == ["(%tid.x & 1) + (%tid.x & 4) + 2"]
    assert stored(text.format(3, 6, 8)) == ["((%tid.x & 3) + (%tid.x & 6) | 8)"]  # a carry may come there


def test_a_product_has_the_bits_of_its_largest_value() -> None:
    text = "and.b32 %r3, %r2, 7; mul.lo.u32 %r4, %r3, {}; or.b32 %r5, %r4, {}; st.shared.u32 [%r5], %r1;"
    assert stored(text.format(3, 32)) == ["3*(%tid.x & 7) + 32"]  # at most 21
    assert stored(text.format(3, 16)) == ["(3*(%tid.x & 7) | 16)"]
    assert stored(text.format(3, 2)) == ["(3*(%tid.x & 7) | 2)"]
    assert stored(text.format(12, 3)) == ["12*(%tid.x & 7) + 3"]  # multiples of 4
    assert stored(text.format(12, 64)) == ["(12*(%tid.x & 7) | 64)"]


def test_a_sum_that_may_wrap_is_not_widened() -> None:
    assert stored("add.u32 %r3, %r1, %r2; cvt.u64.u32 %d2, %r3; st.global.u32 [%d2], %r2;") == [
        "cast(%tid.x + parameter(n, 0))"
    ]


COUNTING = (
    "mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; L: st.shared.u8 [%r3], %r2; {} setp.lt.u32 %p1, %r3, %r1; @%p1 bra L;"
)


def test_a_loop_counts() -> None:
    assert stored(COUNTING.format("add.u32 %r3, %r3, 8;")) == ["cast(%tid.x + 8*counter(1) + address(tile))"]
    assert stored(COUNTING.format("add.u32 %r3, %r3, %r1;")) == [
        "cast(%tid.x + (parameter(n, 0) * counter(1)) + address(tile))"
    ]


def test_what_differs_from_turn_to_turn_is_not_counted() -> None:
    assert stored(COUNTING.format("shl.b32 %r3, %r3, 1;")) == ["held(5, 7)"]
    assert stored(COUNTING.format("@%p2 add.u32 %r3, %r3, 1;")) == ["held(5, 7)"]
    assert stored(COUNTING.format("ld.shared.u32 %r4, [%r2]; add.u32 %r3, %r3, %r4;")) == ["held(5, 7)"]
    again = COUNTING.format("add.u32 %r3, %r3, 8;").replace("L:", "M: @%p2 bra L; L:") + "@%p3 bra M;"
    assert stored(again)[0].startswith(("cast(8*counter(2) + entered(2", "cast(8*counter(2) + held(", "held("))


def test_a_register_of_another_turn_is_not_taken_for_this_one() -> None:
    late = "mov.u32 %r3, 0; mov.u32 %r4, 0; L: st.shared.u32 [%r4], %r2; shl.b32 %r4, %r3, 2; add.u32 %r3, %r3, 1;"
    assert stored(late + "setp.lt.u32 %p1, %r3, %r1; @%p1 bra L;") == ["held(5, 8)"]


def test_expressions_print_and_compare() -> None:
    facts = facts_of("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 4; sub.u32 %r3, %r2, %r1; mov.u32 %r4, %r3;")
    said: Linear = facts.symbolic(3, facts.instructions[3].operands[1])
    assert (said.is_constant, said.constant, str(said)) == (True, 4, "4")


def test_what_is_nested_deeply_is_printed_and_computed_at_once() -> None:
    squares = "mov.u32 %r2, %tid.x; " + "mul.lo.u32 %r2, %r2, %r2; " * 40 + "mov.u32 %r3, %r2;"
    facts = facts_of(squares)
    said = facts.symbolic(41, facts.instructions[41].operands[1])
    assert said.evaluate(lambda atom: 3) == pow(3, 1 << 40, 1 << 32)
    assert len(str(said)) < 10_000


def test_arithmetic_on_floats_is_an_operation() -> None:
    floats = "cvt.rn.f32.u32 %r3, %r2; add.rn.f32 %r4, %r3, 0f3F800000; cvt.rzi.u32.f32 %r5, %r4; "
    (said,) = stored(floats + "st.shared.u32 [%r5], %r1;")
    assert "arithmetic" in said or "call" in said
    assert "%tid.x" in said


def test_a_number_of_128_bits_is_not_taken_apart() -> None:
    wide = ".reg .b128 %q; mov.b64 %d2, 1; mov.b128 %q, {%d1, %d2}; mov.b128 {%d3, %d4}, %q; "
    text = HEAD.replace("8.0", "8.3").replace("sm_80", "sm_90")
    body = f".entry k(.param .u64 p) {{ .reg .b64 %d<5>; ld.param.u64 %d1, [p]; {wide} st.global.u32 [%d3], 0; ret; }}"
    facts = Facts.of(ptxlab.parse(text + body).functions[0])
    assert "parameter(p, 0)" in str(facts.symbolic(4, facts.instructions[4].operands[0]))


@pytest.mark.parametrize(
    ("register", "shift", "is_wide"),
    [
        ("%tid.x", 24, True), ("%tid.x", 25, False),  # up to 255, of 256 threads
        ("%ntid.x", 23, True), ("%ntid.x", 24, False),
        ("%laneid", 27, True), ("%laneid", 28, False),
        ("%ctaid.x", 1, True), ("%ctaid.x", 2, False),
    ],
)  # fmt: skip
def test_special_registers_have_bounds(register: str, shift: int, is_wide: bool) -> None:
    body = f"mov.u32 %r3, {register}; shl.b32 %r3, %r3, {shift}; cvt.u64.u32 %d2, %r3; st.global.u32 [%d2], %r2;"
    expected = f"{1 << shift}*{register}"
    assert stored(body) == [expected if is_wide else f"cast({expected})"]
