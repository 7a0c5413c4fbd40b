"""SASS: instructions, their control bits, their PTX lines, and the comparison of targets."""

from __future__ import annotations

import pytest

from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, assemble, disassemble, lower_instructions, side_by_side

pytestmark = pytest.mark.usefixtures("ptxas", "nvdisasm")


def test_functions_and_instructions(kernel: str) -> None:
    cubin = assemble(kernel).cubin
    assert cubin
    (function,) = disassemble(cubin)
    assert function.name == "k"
    assert [instruction.address for instruction in function.instructions][:2] == [0, 16]
    assert function.instructions[-1].opcode == "EXIT"
    assert any(instruction.text.startswith("STG.E") for instruction in function.instructions)


def test_control_bits_order_a_load_before_its_use(kernel: str) -> None:
    listing = side_by_side(kernel)
    read = next(i for row in listing.rows for i in row.sass if i.opcode == "S2R")
    added = next(i for row in listing.rows if "add.u32" in row.text for i in row.sass)
    assert read.control.write_barrier is not None
    assert read.control.write_barrier in added.control.waits


def test_line_information_leaves_the_code_as_it_is(kernel: str) -> None:
    plain, annotated = assemble(kernel).cubin, assemble(kernel, options=["-lineinfo"]).cubin
    assert plain
    assert annotated
    encodings = [[i.encoding for f in disassemble(cubin) for i in f.instructions] for cubin in (plain, annotated)]
    assert encodings[0] == encodings[1]


def test_ptx_and_sass_side_by_side(kernel: str) -> None:
    listing = side_by_side(kernel, name="k.ptx")
    assert [row.text for row in listing.rows] == kernel.split("\n")
    opcodes = {row.line: [instruction.opcode for instruction in row.sass] for row in listing.rows}
    assert opcodes[9] == ["S2R"]
    assert opcodes[10][0].startswith("IADD")
    assert "STG.E" in opcodes[11]
    assert opcodes[12] == ["EXIT"]
    assert opcodes[6] == []


def test_side_by_side_of_wrong_ptx_raises(kernel: str) -> None:
    with pytest.raises(PtxError) as caught:
        side_by_side(kernel.replace("mov", "movx"))
    assert caught.value.diagnostics[0].line == 9


@pytest.mark.bulk
def test_what_an_instruction_becomes_on_each_target(kernel: str) -> None:
    text = kernel.replace("add.u32 %r2, %r1, 7", "redux.sync.max.u32 %r2, %r1, -1")
    targets = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
    lowered = lower_instructions(text, targets)
    assert [lowering.target for lowering in lowered] == targets
    refused, *others = lowered
    assert refused.sass == {}
    assert refused.diagnostics[0].line == 10
    assert "requires .target sm_80" in refused.diagnostics[0].message
    for lowering in others:
        assert lowering.diagnostics == ()
        assert any("REDUX" in instruction.opcode for instruction in lowering.sass[10])


def test_a_target_specific_module_is_shown_on_others(kernel: str) -> None:
    text = kernel.replace("sm_80", "sm_90a").replace("add.u32 %r2, %r1, 7", "setmaxnreg.inc.sync.aligned.u32 40")
    hopper, ampere, blackwell = lower_instructions(text, ["sm_90a", "sm_80", "sm_100a"])
    assert ampere.diagnostics[0].labels[0].span.text.startswith("setmaxnreg")
    assert hopper.sass
    assert blackwell.sass


def test_what_is_not_an_object_is_reported(nvdisasm: Tool) -> None:
    with pytest.raises(PtxError) as caught:
        disassemble(b"not an object", tool=nvdisasm)
    assert caught.value.diagnostics[0].code == "nvdisasm-error"


def test_a_called_function_is_one_of_its_own(kernel: str) -> None:
    callee = """.func (.param .b32 out) twice(.param .b32 in)
    {
        .reg .b32 %r<3>;
        .reg .pred %p;
        ld.param.b32 %r1, [in];
        setp.eq.u32 %p, %r1, 0;
        @%p bra DONE;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r1, [b]; }
    DONE:
        st.param.b32 [out], %r1;
        ret;
    }
    .visible .entry"""
    call = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r2, [b]; }"
    text = kernel.replace("add.u32 %r2, %r1, 7;", call).replace(".visible .entry", callee)
    cubin = assemble(text).cubin
    assert cubin
    names = [function.name for function in disassemble(cubin)]
    assert names[0] == "k"
    assert any(name.endswith("twice") for name in names[1:]), names
