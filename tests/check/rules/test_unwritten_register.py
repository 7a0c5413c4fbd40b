"""Registers that are read before anything writes them: everywhere, on some path, when a loop starts."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "unwritten-register"
IN = "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0;\n"

WRONG = {
    "nothing writes it": (
        IN + "add.u32 %r3, %r1, %r2;\nst.global.u32 [%rd1], %r3;",
        "add.u32",
        "%r2",
        "; nothing writes it",
    ),
    "written too late": (
        IN + "add.u32 %r3, %r1, %r2;\nmov.u32 %r2, 1;\nst.global.v2.u32 [%rd1], {%r3, %r2};",
        "add.u32",
        "%r2",
        "",
    ),
    "one branch forgets it": (
        IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nadd.u32 %r3, %r1, %r2;\nst.global.u32 [%rd1], %r3;",
        "add.u32",
        "%r2",
        " on some path to this instruction",
    ),
    "sum never set to zero": (
        IN + "mov.u32 %r4, 0;\nLOOP:\nadd.u32 %r2, %r2, %r4;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r1;\n"
        "@%p2 bra LOOP;\nst.global.u32 [%rd1], %r2;",
        "add.u32 %r2",
        "%r2",
        " when the loop begins",
    ),
    "sum of products never set to zero": (
        IN + "mov.f32 %f1, 0f3F800000; mov.u32 %r4, 0;\nLOOP:\nfma.rn.f32 %f2, %f1, %f1, %f2;\nadd.u32 %r4, %r4, 1;\n"
        "setp.lt.u32 %p2, %r4, 8;\n@%p2 bra LOOP;\nst.global.f32 [%rd1], %f2;",
        "fma",
        "%f2",
        " when the loop begins",
    ),
    "loop that may not run": (
        IN + "mov.u32 %r4, 0;\nbra TEST;\nBODY:\nmov.u32 %r2, %r4;\nadd.u32 %r4, %r4, 1;\n"
        "TEST:\nsetp.lt.u32 %p2, %r4, %r1;\n@%p2 bra BODY;\nst.global.u32 [%rd1], %r2;",
        "st.global",
        "%r2",
        " on some path to this instruction",
    ),
    "address": (IN + "st.global.u32 [%rd2], %r1;", "st.global", "%rd2", "; nothing writes it"),
    "guard": (IN + "@%p2 st.global.u32 [%rd1], %r1;", "@%p2", "%p2", "; nothing writes it"),
    "one element": (IN + "st.global.v2.u32 [%rd1], {%r1, %r7};", "st.global", "%r7", "; nothing writes it"),
    "the other way of the same branch": (
        IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\n@!%p1 bra B;\nst.global.u32 [%rd1], %r2;\nB:",
        "st.global",
        "%r2",
        " on some path to this instruction",
    ),
    "the predicate changed": (
        IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra B;\nst.global.u32 [%rd1], %r2;\nB:",
        "st.global",
        "%r2",
        " on some path to this instruction",
    ),
}
RIGHT = {
    "both branches": IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nbra B;\nA:\nmov.u32 %r2, 2;\nB:\nst.global.u32 [%rd1], %r2;",
    "both guards": IN + "@%p1 mov.u32 %r2, 1;\n@!%p1 mov.u32 %r2, 2;\nst.global.u32 [%rd1], %r2;",
    "one guard": IN + "@%p1 mov.u32 %r2, 1;\n@%p1 st.global.u32 [%rd1], %r2;",
    "loop": IN + "mov.u32 %r2, 0; mov.u32 %r4, 0;\nLOOP:\nadd.u32 %r2, %r2, %r4;\nadd.u32 %r4, %r4, 1;\n"
    "setp.lt.u32 %p2, %r4, %r1;\n@%p2 bra LOOP;\nst.global.u32 [%rd1], %r2;",
    "loop that always runs": IN + "mov.u32 %r4, 0;\nLOOP:\nmov.u32 %r2, %r4;\nadd.u32 %r4, %r4, 1;\n"
    "setp.lt.u32 %p2, %r4, %r1;\n@%p2 bra LOOP;\nst.global.u32 [%rd1], %r2;",
    "same branch again": IN
    + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nbar.sync 0;\n@%p1 bra B;\nst.global.u32 [%rd1], %r2;\nB:",
    "same branch, then a guard": IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\n@!%p1 st.global.u32 [%rd1], %r2;",
    "same comparison again": IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nsetp.ne.u32 %p2, %r1, 0;\n@!%p2 bra B;\n"
    "st.global.u32 [%rd1], %r2;\nB:",
    "the others have returned": IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\n@%p1 ret;\nst.global.u32 [%rd1], %r2;",
    "the others trap": IN + "@!%p1 bra A;\ntrap;\nA:\nmov.u32 %r2, 1;\nst.global.u32 [%rd1], %r2;",
    "read is unreachable from there": IN + "@%p1 bra A;\nmov.u32 %r2, 1;\nst.global.u32 [%rd1], %r2;\nA:",
    "pair of results": IN + "setp.lt.u32 %p2|%p3, %r1, 5;\n@%p3 st.global.u32 [%rd1], %r1;",
    "vector of results": IN + "mov.b64 {%r5, %r6}, %rd1;\nst.global.v2.u32 [%rd1], {%r5, %r6};",
}


@pytest.mark.parametrize("name", WRONG)
def test_unwritten(name: str) -> None:
    body, place, register, how = WRONG[name]
    text = kernel(body)
    (found,) = findings(text, CODE)
    assert found.level == "warning"
    assert found.line == line_of(text, place)
    assert found.message == f"`{register}` is read before it is written{how}"
    span = found.labels[0].span
    assert span.source.text[span.start : span.end] == register


@pytest.mark.parametrize("name", RIGHT)
def test_written(name: str) -> None:
    assert findings(kernel(RIGHT[name]), CODE) == []


def test_parameters_are_written_by_the_caller() -> None:
    function = ".func f(.reg .u64 place, .reg .u32 value) { st.global.u32 [place], value; ret; }"
    assert findings(kernel(IN + "call f, (%rd1, %r1);", before=function), CODE) == []


def test_results_are_not() -> None:
    function = ".func (.reg .u32 result) f() { add.u32 result, result, 1; ret; }"
    (found,) = findings(kernel(IN + "call (%r2), f;\nst.global.u32 [%rd1], %r2;", before=function), CODE)
    assert found.message == "`result` is read before it is written"


@pytest.mark.parametrize("first", ["// Generated by NVIDIA NVVM Compiler\n", "// Generated by LLVM NVPTX Back-End\n"])
def test_compilers_leave_registers_unwritten_where_it_does_not_matter(first: str) -> None:
    body, *_ = WRONG["one branch forgets it"]
    assert findings(first + kernel(body), CODE) == []
    assert findings(first + kernel(IN + "mov.b64 %rd2, {%r1, %r2};\nst.global.u64 [%rd1], %rd2;"), CODE) == []
    body, *_ = WRONG["nothing writes it"]
    (found,) = findings(first + kernel(body), CODE)
    assert found.message == "`%r2` is read before it is written; nothing writes it"


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
A, B = "{%r1, %r1, %r1, %r1}", "{%r1, %r1}"
ZEROS = "{" + ", ".join(["0f00000000"] * 4) + "}"
TOGETHER = {
    "accumulators of an MMA": (
        IN + f"{MMA} {{%f1, %f2, %f3, %f4}}, {A}, {B}, {{%f1, %f2, %f3, %f4}};\nst.global.f32 [%rd1], %f1;",
        ["`%f1` to `%f4` are read before they are written"],
    ),
    "accumulators of MMAs that are alike": (
        IN + "".join(f"{MMA} {{{d}}}, {A}, {B}, {{{d}}};\n" for d in ("%f1, %f2, %f3, %f4", "%f5, %f6, %f7, %f8"))
        + "st.global.f32 [%rd1], %f5;",
        ["`%f1` to `%f8` are read before they are written"],
    ),
    "A and B": (
        IN + f"{MMA} {{%f1, %f2, %f3, %f4}}, {{%r2, %r3, %r4, %r5}}, {{%r9, %r7}}, {ZEROS};\nst.global.f32 [%rd1], %f1;",  # noqa: E501
        [
            "`%r2` to `%r5` are read before they are written; nothing writes them",
            "`%r9` and `%r7` are read before they are written; nothing writes them",
        ],
    ),
    "not numbered in order": (
        IN + "st.global.v4.u32 [%rd1], {%r5, %r9, %r3, %r2};",
        ["`%r5`, `%r9` and 2 more registers are read before they are written; nothing writes them"],
    ),
    "written by one instruction, elsewhere": (
        IN + "@%p1 bra A;\nld.global.v2.u32 {%r4, %r5}, [%rd1];\nA:\nst.global.u32 [%rd1], %r4;\n"
        "st.global.u32 [%rd1], %r5;",
        ["`%r4` and `%r5` are read before they are written on some path to this instruction"],
    ),
    "two instructions": (
        IN + "st.global.u32 [%rd1], %r5;\nst.global.u32 [%rd1], %r6;",
        [f"`%r{n}` is read before it is written; nothing writes it" for n in (5, 6)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOGETHER)
def test_registers_of_one_operand_are_one_finding(name: str) -> None:
    body, messages = TOGETHER[name]
    assert [one.message for one in findings(kernel(body), CODE)] == messages
