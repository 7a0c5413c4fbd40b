"""Integer instructions at the edges: a selector's sign bit, a count above the width, zero, a maximum with a sign."""

import pytest

from ptxlab.isa import opcode
from ptxlab.isa.exact import evaluate
from ptxlab.isa.operand import expect
from ptxlab.isa.pattern import Pattern


@pytest.mark.parametrize(
    ("spelling", "operands", "result"),
    [
        ("prmt.b32", (0x3322_1100, 0x7766_5544, 0x5140), 0x5511_4400),
        ("prmt.b32", (0x0000_7F80, 0, 0x2298), 0x0000_00FF),  # copies of the signs of two bytes
        ("slct.u32.s32", (1, 2, 0), 1),
        ("slct.u32.s32", (1, 2, 0xFFFF_FFFF), 2),
        ("szext.clamp.u32", (0xFFFF_FFFF, 40), 0xFFFF_FFFF),
        ("szext.clamp.s32", (0x0000_0018, 5), 0xFFFF_FFF8),
        ("vadd.s32.s32.s32.max", (5, 0xFFFF_FFF0, 3), 3),
        ("abs.f32", (0xC049_0FDB,), 0x4049_0FDB),
        ("fns.b32", (0b101, 0, 1), 0),
        ("fns.b32", (0b101, 2, 0xFFFF_FFFE), 0),
        ("fns.b32", (0x8000_0001, 0, 2), 31),
        ("fns.b32", (0b100, 0, 0), 0xFFFF_FFFF),
    ],
)
def test_results(spelling: str, operands: tuple[int, ...], result: int) -> None:
    for one in opcode(spelling).candidates:
        read = [expected for expected in expect(one.form, one.modifiers) if expected.role == "read"]
        if len(read) == len(operands):
            values = {e.name: Pattern(e.type, bits) for e, bits in zip(read, operands, strict=True) if e.type}
            (found,) = evaluate(one.form, one.modifiers, values)
            assert found.bits == result
            return
    pytest.fail("no form takes so many operands")
