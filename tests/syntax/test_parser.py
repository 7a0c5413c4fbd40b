"""The whole language, through `parse` and `read`."""

import pytest

from ptxlab import ir
from ptxlab.report import PtxError
from ptxlab.syntax import format, parse, read
from tests.tools import header

HEADER = header("8.0", "sm_90")


def body(text: str, before: str = "") -> list[ir.Statement]:
    """The statements of a kernel that declares a few registers and continues with `text`."""
    module = parse(
        f"{HEADER}{before}.entry k(.param .u64 p0, .param .u32 p1) {{\n"
        ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .v4 .b32 %v;\n"
        f"{text}\n}}\n"
    )
    found = module["k"].body
    assert found is not None
    return found[5:]


def operands(text: str, before: str = "") -> tuple[ir.Operand, ...]:
    """The operands of the only instruction of `text`."""
    (instruction,) = [s for s in body(text, before) if isinstance(s, ir.Instruction)]
    return instruction.operands


def errors(text: str) -> list[tuple[str, int, str]]:
    """Code, line and message of each error of a file."""
    return [(found.code, found.line or 0, found.message) for found in read(text)[1]]


class TestHeader:
    def test_version_target_and_address_size(self) -> None:
        module = parse(".version 8.7\n.target sm_100a, debug\n.address_size 64\n")
        assert module.version == (8, 7)
        assert (module.target, module.options, module.address_size) == ("sm_100a", ["debug"], 64)
        assert module.span_of(module.header_spans["target"]).text == ".target sm_100a, debug"  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("text", "code", "line"),
        [
            ("", "missing-version", 1),
            ("\n  \n", "missing-version", 1),
            ("// only a comment\n", "missing-version", 2),
            (".entry k { ret; }", "missing-version", 1),
            (".version 8.0\n.entry k { ret; }", "missing-target", 2),
            (".version 8\n.target sm_80\n", "missing-version", 1),
            (f".version {'9' * 5000}.0\n.target sm_80\n", "missing-version", 1),
            (f"{HEADER}.section .debug_str {{\n.b8 {'9' * 5000}\n}}\n", "constant-overflow", 5),
            (".version 8.0\n.target sm_80;\n", "unexpected-token", 2),
        ],
    )
    def test_wrong(self, text: str, code: str, line: int) -> None:
        assert errors(text)[0][:2] == (code, line)

    def test_entries_and_lookup(self) -> None:
        module = parse(HEADER + ".func f();\n.entry a { ret; }\n.func f() { ret; }\n.entry b { ret; }")
        assert module.entries == ["a", "b"]
        assert module["f"].body is not None
        assert [function.name for function in module.functions] == ["f", "a", "f", "b"]
        with pytest.raises(KeyError, match="no function `c`"):
            module["c"]


class TestOperands:
    def test_register_is_one_object(self) -> None:
        first, second = body("mov.b32 %r1, %r2; mov.b32 %r2, %r1;")
        assert isinstance(first, ir.Instruction)
        assert isinstance(second, ir.Instruction)
        assert first.operands[0] is second.operands[1]
        assert isinstance(first.operands[0], ir.Register)
        assert first.operands[0].type.name == "b32"

    def test_number_of_a_register_may_have_zeros(self) -> None:
        first, second = operands("mov.b32 %r07, %r7;")
        assert first is second

    @pytest.mark.parametrize(
        ("text", "value", "kind"),
        [
            ("42", 42, "s64"), ("-1", -1, "s64"), ("0x10", 16, "s64"), ("010", 8, "s64"), ("0b101", 5, "s64"),
            ("7U", 7, "u64"), ("0xffffffffffffffff", 2**64 - 1, "u64"), ("WARP_SZ", 32, "s64"),
            ("0f3F800000", 0x3F800000, "f32"), ("0d3FF0000000000000", 0x3FF0000000000000, "f64"),
            ("1.5", 0x3FF8000000000000, "f64"), ("-1e3", 0xC08F400000000000, "f64"), (".5", 0x3FE0000000000000, "f64"),
            ("3 + 4 * 2", 11, "s64"), ("(3 + 4) * 2", 14, "s64"), ("1 << 2 + 1", 8, "s64"), ("-7 / 2", -3, "s64"),
            ("20 % 7 - 1", 5, "u64"), ("1 | 2 ^ 3 & 4", 3, "s64"), ("~0", 2**64 - 1, "u64"), ("!5", 0, "s64"),
            ("1 < 2 == 1", 1, "s64"), ("0 ? 2 : 0 ? 4 : 5", 5, "s64"), ("-1 >> 1", -1, "s64"),
            ("(.u64)-1 >> 63", 1, "u64"), ("1.0 + 2.0 * 3.0", 0x401C000000000000, "f64"), ("1.0 < 2.0", 1, "s64"),
            ("0x7fffffffffffffff + 1", -(2**63), "s64"), ("1 << 65", 2, "s64"), ("1 ? -8 : 5U", -8, "s64"),
            ("18446744073709551617", 1, "s64"),
        ],
    )  # fmt: skip
    def test_constants(self, text: str, value: int, kind: str) -> None:
        constant = operands(f"mov.b32 %r1, {text};")[1]
        assert constant == ir.Immediate(value, kind)

    @pytest.mark.parametrize(
        ("text", "printed"),
        [
            ("[%rd1]", "Address(base=%rd1)"), ("[%rd1+-4]", "Address(base=%rd1, offset=-4)"),
            ("[%rd1+4*2]", "Address(base=%rd1, offset=8)"), ("[p0+8]", "Address(base=p0, offset=8)"),
            ("[64]", "Address(base=64)"), ("[%rd1, {%r1, %r2}]", "Address(base=%rd1, arguments={%r1, %r2})"),
        ],
    )  # fmt: skip
    def test_addresses(self, text: str, printed: str) -> None:
        address = operands(f"ld.global.b32 %r1, {text};")[1]
        assert isinstance(address, ir.Address)
        from ptxlab.syntax.print_operands import print_operand

        parts = [f"base={print_operand(address.base)}"]
        parts += [f"offset={address.offset}"] if address.offset else []
        parts += ["arguments=" + print_operand(argument) for argument in address.arguments]
        assert f"Address({', '.join(parts)})" == printed

    def test_other_kinds(self) -> None:
        assert isinstance(operands("setp.lt.s32 %p1|%p2, %r1, %r2;")[0], ir.Pair)
        assert isinstance(operands("mov.pred %p1, !%p2;")[1], ir.Negated)
        assert isinstance(operands("vmad.s32.s32.s32 %r1, -%r2, %r3, %r4;")[1], ir.Minus)
        assert operands("mov.b32 %r1, %tid.x;")[1] == ir.SpecialRegister("%tid", "x")
        assert isinstance(operands("mov.b32 %r1, %v.x;")[1], ir.VectorElement)
        assert isinstance(operands("vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;")[1], ir.Selection)
        assert isinstance(operands("mov.b32 %r1, %r2+4;")[1], ir.Sum)
        assert isinstance(operands("mov.b64 {%r1, _}, %rd1;")[0], ir.Vector)
        assert isinstance(operands("{ .shared .b32 s[4]; mov.b32 %r1, s[2]; }".strip("{ }"))[1], ir.Element)
        assert operands("mov.b32 %r1, nowhere;")[1] == ir.Unresolved("nowhere")

    def test_calls(self) -> None:
        before = ".func (.param .u32 r) f(.param .u32 a) { ret; }\n.func g() { ret; }\n"
        results, function, arguments = operands("call.uni (%r1), f, (%r2);", before)
        assert (type(results), type(function), type(arguments)) == (ir.Arguments, ir.FunctionReference, ir.Arguments)
        assert len(operands("call g;", before)) == 1
        prototype = "T: .callprototype (.param .u32 _) _ (.param .u32 _);\ncall (%r1), %rd1, (3 + 4), T;"
        assert operands(prototype)[3] == ir.LabelReference("T")
        assert operands(prototype)[2] == ir.Arguments((ir.Immediate(7),))

    def test_parentheses_are_an_expression_outside_of_calls(self) -> None:
        assert operands("mov.b32 %r1, (3);")[1] == ir.Immediate(3)


class TestNames:
    def test_inner_scope_hides_the_outer(self) -> None:
        outer, block = body("mov.b32 %r1, 1; { .reg .f32 %r<2>; mov.f32 %r1, 0f00000000; }")
        assert isinstance(outer, ir.Instruction)
        assert isinstance(block, ir.BlockStatement)
        inner = block.body[1]
        assert isinstance(inner, ir.Instruction)
        assert outer.operands[0] != inner.operands[0]

    def test_names_end_with_their_scope(self) -> None:
        *_, last = body("{ .reg .b32 t; mov.b32 t, 1; } mov.b32 %r1, t;")
        assert isinstance(last, ir.Instruction)
        assert last.operands[1] == ir.Unresolved("t")

    def test_declared_after_use_is_unresolved(self) -> None:
        first, _, second = body("mov.b32 %r1, t; .reg .b32 t; mov.b32 %r1, t;")
        assert isinstance(first, ir.Instruction)
        assert isinstance(second, ir.Instruction)
        assert first.operands[1] == ir.Unresolved("t")
        assert isinstance(second.operands[1], ir.Register)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("bra L; L:", True), ("{ bra L; } L:", True), ("bra L; { L: }", False), ("bra M; L:", False),
            ("bra L; L /* here */ :", True), ("// M:\nbra M; L:", False),
        ],
    )  # fmt: skip
    def test_labels_are_seen_from_inside(self, text: str, found: bool) -> None:
        module = parse(f"{HEADER}.entry k {{ {text} }}")
        (branch,) = module["k"].instructions()
        assert isinstance(branch.operands[0], ir.LabelReference) is found

    def test_a_variable_can_be_called_like_a_special_register(self) -> None:
        assert isinstance(operands(".reg .b32 %tid; mov.b32 %r1, %tid;")[1], ir.Register)

    def test_huge_families_cost_nothing(self) -> None:
        assert isinstance(operands(".reg .b32 x<4000000000>; mov.b32 %r1, x3999999999;")[1], ir.Register)


class TestItems:
    def test_variables(self) -> None:
        module = parse(
            HEADER + ".visible .global .attribute(.managed) .align 8 .v2 .f32 a[4], b;\n"
            ".global .u64 p[] = {generic(a)+4, 0xff00(a+8), 0xFF(1000 + 546)};\n"
            ".global .texref t = {width = 32, normalized_coords = 1};\n"
        )
        a, b, p, t = module.variables
        assert (a.linkage, a.state_space, a.align, a.vector, a.dimensions) == ("visible", "global", 8, 2, (4,))
        assert a.attributes == (ir.Attribute("managed"),)
        assert b.elements == 2
        assert p.elements == 3
        assert isinstance(p.initializer, ir.InitializerList)
        assert p.initializer.elements[0] == ir.SymbolAddress("a", 4, generic=True)
        assert p.initializer.elements[1] == ir.SymbolAddress("a", 8, mask=0xFF00)
        assert p.initializer.elements[2] == ir.MaskedConstant(0xFF, ir.Immediate(1546))
        assert isinstance(t.initializer, ir.InitializerList)

    def test_functions(self) -> None:
        module = parse(
            HEADER + ".extern .func (.param .b32 r) f(.param .b64 a) .noreturn\n"
            ".visible .entry k(.param .u64 .ptr.global.align 16 p)\n"
            '.maxntid 16, 2 .minnctapersm 2 .pragma "nounroll"; { ret; }\n'
        )
        f, k = module.functions
        assert (f.linkage, f.noreturn, f.body) == ("extern", True, None)
        assert k.parameters[0].pointer == ir.PointerAttribute("global", 16)
        assert [(d.name, d.arguments) for d in k.directives] == [
            ("maxntid", (16, 2)), ("minnctapersm", (2,)), ("pragma", ("nounroll",)),
        ]  # fmt: skip

    @pytest.mark.parametrize("what", ["const", "texref", "samplerref", "surfref"])
    def test_what_a_parameter_points_to(self, what: str) -> None:
        module = parse(HEADER + f".entry k(.param .u64 .ptr .{what} .align 8 p) {{ ret; }}\n")
        assert module.functions[0].parameters[0].pointer == ir.PointerAttribute(what, 8)
        assert f".param .u64 .ptr .{what} .align 8 p" in format(module)

    def test_prototype_inside_a_body_belongs_to_the_module(self) -> None:
        module = parse(HEADER + ".entry k { { .extern .func f(); } call f; ret; }")
        assert [function.name for function in module.functions] == ["f", "k"]
        assert isinstance(next(module["k"].instructions()).operands[0], ir.FunctionReference)

    def test_debug_information(self) -> None:
        module = parse(
            HEADER + '.file 1 "a.cu", 12, 34\n.entry k {\n.loc 1 2 3\n'
            ".loc 1 2 3, function_name name+4, inlined_at 1 9 8\nret; }\n"
            ".section .debug_str {\nname:\n.b8 1, -2 // text\n.b32 .debug_loc+4, name-name\n}\n"
        )
        file, function, section = module.items
        assert file == ir.File(1, "a.cu", 12, 34)
        assert isinstance(function, ir.Function)
        assert function.body is not None
        assert function.body[1] == ir.Location(1, 2, 3, ("name", 4), (1, 9, 8))
        assert isinstance(section, ir.Section)
        assert section.lines[1] == ir.DataLine("b8", (1, -2))
        assert section.lines[2] == ir.Comment("// text", trailing=True)

    def test_targets_of_branches_are_written_out(self) -> None:
        (targets,) = [s for s in body("L0: L1: A: T: .branchtargets L<2>, A; ret;") if isinstance(s, ir.BranchTargets)]
        assert targets.targets == ("L0", "L1", "A")


class TestErrors:
    def test_all_errors_in_one_run(self) -> None:
        text = (
            HEADER + ".entry k {\n.reg .b32 %r<9>;\nadd.s32 %r1, %r2, %r3\nmov.b32 %r1 %r2;\n"
            "mov.b32 %r1, [;\nmov.b32 %r1, 1;\n@ ret;\n.reg .b33 %x;\n}\n.global .u32 a\n.entry m { ret; }\n"
        )
        assert [line for _, line, _ in errors(text)] == [7, 7, 8, 10, 11, 14]

    def test_message_says_what_to_do(self) -> None:
        with pytest.raises(PtxError) as raised:
            parse(HEADER + ".entry k {\n  ret\n}\n", "a.ptx")
        assert str(raised.value) == (
            "error[missing-semicolon]: expected `;` after `ret`, found `}`\n"
            " --> a.ptx:6:1\n"
            "  |\n"
            "6 | }\n"
            "  | ^\n"
            "  |\n"
            "  = help: end `ret` with `;`"
        )

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (".entry k {\nret;\n", "unclosed-brace"),
            (".entry k {\nret;\n.entry m { ret; }\n", "unclosed-brace"),
            (".entry k {\nret;\n}\n}\n", "stray-brace"),
            ('.pragma "abc\n', "unterminated-string"),
            (".entry k { /* ret; }\n", "unterminated-comment"),
            (".entry k { mov.b32 %r1, 99999999999999999999; }", "constant-overflow"),
            (".entry k { mov.b32 %r1, 1 / 0; }", "division-by-zero"),
            (".entry k { mov.b32 %r1, 1 + 1.0; }", "constant-type-mismatch"),
            (".entry k { .visible .shared .u32 a; }", "misplaced-directive"),
            (".entry k { .nonsense; }", "unknown-directive"),
            (".nonsense", "unknown-directive"),
            (".func f()\nret;\n}\n", "missing-body"),
            ("// \u00e9\n", "non-ascii-character"),
        ],
    )
    def test_one_cause_one_error(self, text: str, code: str) -> None:
        assert [found[0] for found in errors(HEADER + text)] == [code]

    @pytest.mark.parametrize(
        "text",
        [
            "{" * 10_000, "}" * 10_000, "mov.b32 %r1, " + "(" * 10_000, "mov.b32 %r1, " + "-" * 10_000, "a" * 100_000,
            "a:" * 20_000, "@\n" * 10_000, ";" * 10_000, "add.s32 %r1, %r2, %r3\n" * 5_000, '"\n' * 10_000,
            "/*" * 10_000, "mov.b32 %r1, " + "1?" * 10_000,
        ],
    )  # fmt: skip
    def test_absurd_files_are_refused(self, text: str) -> None:
        assert errors(f"{HEADER}.entry k {{\n{text}")

    def test_deep_initial_value(self) -> None:
        assert errors(f"{HEADER}.global .u32 a = {'{' * 10_000}")[0][0] == "nested-too-deeply"
