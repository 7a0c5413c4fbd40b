"""Spans on demand, and equality of structure."""

from ptxlab import ir
from ptxlab.isa import opcode, type_named
from ptxlab.syntax import format, parse

TEXT = """.version 8.0
.target sm_80
.entry k(.param .u64 p)
{
    .reg .b32 %r<4>;
    @!%q /* why */ mad.lo.s32 %r1, /* a, b */ %r2, {%r1, %r2}, [p+4];
    ret;
}
"""


def test_spans_of_parts() -> None:
    module = parse(TEXT)
    first, last = module["k"].instructions()

    def text(span: object) -> str:
        assert span is not None
        return span.text  # type: ignore[attr-defined, no-any-return]

    assert text(module.opcode_span(first)) == "mad.lo.s32"
    assert text(module.guard_span(first)) == "@!%q"
    assert text(module.modifier_span(first, -1)) == "mad"
    assert text(module.modifier_span(first, 1)) == ".s32"
    assert [text(module.operand_span(first, n)) for n in range(4)] == ["%r1", "%r2", "{%r1, %r2}", "[p+4]"]
    assert text(module.span(last)) == "ret;"
    assert text(module.name_span(module["k"])) == "k"
    assert text(module.span(module["k"].parameters[0])) == "p"
    assert module.guard_span(last) is None


def test_equality_ignores_places_and_spelling() -> None:
    module = parse(TEXT)
    again = parse(TEXT.replace("\n", "\n\n").replace("/* a, b */ ", "").replace("4]", "0x4]").replace("/* why */ ", ""))
    other = parse(TEXT.replace("[p+4]", "[p+8]"))
    assert module["k"].body is not None
    assert list(module["k"].instructions()) == list(again["k"].instructions())
    assert list(module["k"].instructions()) != list(other["k"].instructions())
    assert hash(ir.Immediate(4)) == hash(ir.Immediate(4, base=16))


def test_a_program_that_was_built_has_no_spans_and_prints() -> None:
    register = ir.Register("%r1", type_named("b32"))
    move = ir.Instruction(None, opcode("mov.b32"), (register, ir.Immediate(5)))
    declared = ir.Declaration([ir.Variable("reg", type_named("b32"), "%r", count=2)])
    kernel = ir.Function("entry", "k", body=[declared, move, ir.Instruction(None, opcode("ret"), ())])
    module = ir.Module((8, 0), ["sm_80"], 64, [kernel])
    assert module.span(move) is None
    assert module.operand_span(move, 0) is None
    assert parse(format(module)) == module


def test_statements_come_in_order() -> None:
    module = parse(".version 8.0\n.target sm_80\n.entry k { a: { b: { c: } d: } e: }")
    labels = [s.name for s in module["k"].statements() if isinstance(s, ir.Label)]
    assert labels == list(module["k"].labels()) == ["a", "b", "c", "d", "e"]


def test_a_module_is_a_program_and_where_it_came_from() -> None:
    where = {"source", "header_spans", "origins", "calls"}
    assert set(ir.Module.__slots__) - set(ir.Module.fields) == {*where, "__weakref__"}
