"""What `operand-type` says of constants in the operands of `mma`."""

import ptxlab
from ptxlab.report import render

KERNEL = """.version 8.0
.target sm_80
.entry k() {
    .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .f32 %d<4>;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
        {CONSTANTS};
    ret;
}
"""


def said(constants: str) -> str:
    found = ptxlab.check(ptxlab.parse(KERNEL.replace("CONSTANTS", constants), name="k.ptx"))
    return render([finding for finding in found if finding.code == "operand-type"], format="full")


def test_decimal_constants_alone_have_too_many_bits() -> None:
    reason = "a constant must have 32 bits here, as `0f00000000` has; a decimal one has 64"
    assert reason in said("0.0, 0.0, 0.0, 0.0")
    assert reason in said("0f00000000, 0.0, 0.0, 0.0")
    assert said("0f00000000, 0f00000000, 0f00000000, 0f00000000") == ""
    assert said("0.0, %d1, 0.0, 0.0") == ""


def verdicts_on(line: str, target: str = "sm_100a", ptxas: str | None = None) -> list[tuple[str, str]]:
    """What is said of an instruction on textures, surfaces or registers: level and code."""
    text = f""".version 8.8
.target {target}
.address_size 64
.global .texref t;
.global .surfref s;
.entry k(.param .texref p) {{
    .reg .b32 %r<8>; .reg .s32 %s<8>; .reg .f32 %f<8>; .reg .b64 %rd; .reg .f64 %d; .reg .b128 %q;
    .reg .b16 %h; .reg .pred %p;
    {line}
    ret;
}}
"""
    found = ptxlab.check(ptxlab.parse(text, name="k.ptx"), ptxas=ptxas)
    return [(finding.level, finding.code) for finding in found if finding.code != "unwritten-register"]


def test_what_holds_a_pair_of_bf16() -> None:
    doubt = [("warning", "operand-type")]
    assert verdicts_on("cvt.rn.bf16x2.ue8m0x2 %r0, %h;") == []
    assert verdicts_on("cvt.rn.bf16x2.ue8m0x2 %s0, %h;", ptxas="13.0") == doubt
    assert verdicts_on("cvt.rn.bf16x2.ue8m0x2 %s0, %h;") == [("warning", "refused-spelling")]
    assert verdicts_on("cvt.rn.bf16x2.ue8m0x2 %s0, %h;", ptxas="13.4") == [("error", "refused-spelling")]
    assert verdicts_on("cvt.rz.ue8m0x2.bf16x2 %h, %f0;", ptxas="13.0") == doubt
    assert verdicts_on("cvt.rn.bf16x2.ue8m0x2 %rd, %h;") == [("error", "operand-type")]


def test_constants_in_place_of_a_register() -> None:
    def reasons(line: str) -> str:
        text = f".version 8.0\n.target sm_80\n.entry k() {{\n.reg .b32 %r;\n{line}\nret;\n}}\n"
        return render(ptxlab.check(ptxlab.parse(text, name="k.ptx")), format="full")

    assert "a constant must have 32 bits here" in reasons("cvt.rna.tf32.f32 %r, 1.0;")
    assert "operand-type" not in reasons("cvt.rna.tf32.f32 %r, 0f3F800000;")
    assert "an immediate is not allowed here" in reasons("movmatrix.sync.aligned.m8n8.trans.b16 %r, 1.0;")


def test_textures_and_surfaces_have_no_parts() -> None:
    refused = [("error", "operand-type")]
    for base in ("t", "p", "%rd"):
        assert verdicts_on(f"txq.width.b32 %r0, [{base}];") == []
        assert verdicts_on(f"txq.width.b32 %r0, [{base}+4];") == refused
    assert verdicts_on("suq.width.b32 %r0, [%rd+0];") == refused
    for register in ("%d", "%q"):
        assert verdicts_on(f"suld.b.1d.b32.trap %r0, [{register}, {{%r1}}];") == refused


def test_levels_and_offsets_of_textures() -> None:
    texel, doubt = "{%f0, %f1, %f2, %f3}", [("warning", "operand-type")]
    lookup = f"tex.level.1d.v4.f32.f32 {texel}, [t, {{%f4}}]"
    assert (
        verdicts_on(f"{lookup}, %f5;")
        == verdicts_on(f"{lookup}, {{%f5, %f6}};")
        == verdicts_on(f"{lookup}, {{%s5}};")
        == []
    )
    assert verdicts_on(f"{lookup}, 5;") == [("error", "operand-type")]
    assert verdicts_on(f"{lookup}, %f5, {{%s1}};") == []
    assert (
        verdicts_on(f"{lookup}, %f5, %s1;") == verdicts_on(f"{lookup}, %f5, 5;") == doubt
    )  # one register for the vector of offsets
    assert verdicts_on(f"{lookup}, %f5, %r1;") == []  # a depth
    assert verdicts_on("tex.level.1d.v4.f32.f32 %f0|%p, [t, {%f4}], %f5;") == [("error", "operand-type")]


def test_redux_takes_no_pair_of_halves_for_an_integer() -> None:
    for line in ("add.u32 %v, %r1", "min.s32 %r0, %v", "and.b32 %v, %r1"):
        assert verdicts_on(f".reg .f16x2 %v; redux.sync.{line}, -1;") == [("error", "operand-type")]
        assert verdicts_on(f".reg .b32 %v; redux.sync.{line}, -1;") == []
    assert verdicts_on(".reg .f16x2 %v; add.u32 %v, %v, %r1;") == []
