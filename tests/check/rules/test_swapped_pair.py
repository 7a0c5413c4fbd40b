"""Pairs packed in one order and used in the other: through memory, through `mov`, and against the values themselves."""

import pytest

import ptxlab

from ..lints import findings, kernel, line_of

CODE = "swapped-pair"
IN = "ld.param.u64 %rd1, [out]; add.s64 %rd2, %rd1, 4096;\n"
LOAD = "ld.global.v2.f32 {%f1, %f2}, [%rd1];\n"
LOADS = "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+64];\n"
HOPPER = {"target": "sm_90", "version": "8.1"}
BLACKWELL = {"target": "sm_100a", "version": "8.6"}
UNPACK = "mov.b32 {%h1, %h2}, %r1;\n"

WRONG = {
    "vector load": ("cvt.rn.f16x2.f32 %r1, %f1, %f2;", IN + LOAD + "{} st.global.b32 [%rd2], %r1;", {}),
    "two loads": (
        "cvt.rn.bf16x2.f32 %r1, %f1, %f2;",
        IN + "ld.global.f32 %f1, [%rd1+8]; ld.global.f32 %f2, [%rd1+12];\n{} st.global.b32 [%rd2], %r1;",
        {},
    ),
    "under a guard": (
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        IN + "ld.param.u32 %r3, [n]; setp.gt.u32 %p1, %r3, 4; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000;\n"
        "@%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1];\n{} @%p1 st.global.b32 [%rd2], %r1;",
        {},
    ),
    "scaled on the way": (
        "cvt.rn.f16x2.f32 %r1, %f4, %f5;",
        IN
        + LOAD
        + "mov.f32 %f3, 0f40000000; mul.f32 %f4, %f1, %f3; mul.f32 %f5, %f2, %f3;\n{} st.global.b32 [%rd2], %r1;",
        {},
    ),
    "second pair of four": (
        "cvt.rn.f16x2.f32 %r2, %f3, %f4;",
        IN + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; cvt.rn.f16x2.f32 %r1, %f2, %f1;\n"
        "{} st.global.v2.b32 [%rd2], {%r1, %r2};",
        {},
    ),
    "eight bits": (
        "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
        IN + LOAD + "{} st.global.b16 [%rd2], %h1;",
        HOPPER,
    ),
    "eight bits in a wider register": (
        "cvt.rn.satfinite.e5m2x2.f32 %h2, %f3, %f4;",
        IN + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; cvt.rn.satfinite.e5m2x2.f32 %h1, %f2, %f1;\n"
        "{} mov.b32 %r1, {%h1, %h2}; st.global.b32 [%rd2], %r1;",
        HOPPER,
    ),
    "integers": (
        "cvt.pack.sat.s16.s32 %r1, %r2, %r3;",
        IN + "ld.global.v2.s32 {%r2, %r3}, [%rd1];\n{} st.global.b32 [%rd2], %r1;",
        {},
    ),
    "halves unpacked and stored": (
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        IN + LOAD + "{}\n" + UNPACK + "st.global.b16 [%rd2], %h1; st.global.b16 [%rd2+2], %h2;",
        {},
    ),
    "right packed, wrong unpacked": (
        "cvt.rn.f16x2.f32 %r1, %f2, %f1;",
        IN + LOAD + "{}\n" + UNPACK + "st.global.v2.b16 [%rd2], {%h2, %h1};",
        {},
    ),
    "converted back and stored": (
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        IN
        + LOAD
        + "{}\n"
        + UNPACK
        + "cvt.f32.f16 %f3, %h1; cvt.f32.f16 %f4, %h2; st.global.v2.f32 [%rd2], {%f3, %f4};",
        {},
    ),
    "rounding error of the other one": (
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        IN + "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+64];\n{}\n" + UNPACK + "cvt.f32.f16 %f3, %h1; "
        "cvt.f32.f16 %f4, %h2; sub.f32 %f5, %f1, %f3; sub.f32 %f6, %f2, %f4; st.global.v2.f32 [%rd2], {%f5, %f6};",
        {},
    ),
    "rounding error of bf16 by shifts": (
        "cvt.rn.bf16x2.f32 %r1, %f1, %f2;",
        IN + "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+64];\n{}\n"
        "shl.b32 %r2, %r1, 16; and.b32 %r3, %r1, 0xffff0000; mov.b32 %f3, %r2; mov.b32 %f4, %r3; "
        "sub.f32 %f5, %f1, %f3; sub.f32 %f6, %f2, %f4; st.global.v2.f32 [%rd2], {%f5, %f6};",
        {},
    ),
}
RIGHT = {
    "vector load": IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f2, %f1; st.global.b32 [%rd2], %r1;",
    "two loads": IN + "ld.global.f32 %f1, [%rd1+8]; ld.global.f32 %f2, [%rd1+12];\n"
    "cvt.rn.f16x2.f32 %r1, %f2, %f1; st.global.b32 [%rd2], %r1;",
    "swapped twice": IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f1, %f2;\n" + UNPACK + "st.global.v2.b16 [%rd2], {%h2, %h1};",
    "not neighbours": IN + "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+64];\n"
    "cvt.rn.f16x2.f32 %r1, %f1, %f2; st.global.b32 [%rd2], %r1;",
    "one value twice": IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f1, %f1; st.global.b32 [%rd2], %r1;",
    "turned by ninety degrees": IN
    + LOAD
    + "neg.f32 %f3, %f2; cvt.rn.f16x2.f32 %r1, %f1, %f3; st.global.b32 [%rd2], %r1;",
    "another base": IN + "ld.global.f32 %f1, [%rd1]; add.s64 %rd1, %rd1, 128; ld.global.f32 %f2, [%rd1+4];\n"
    "cvt.rn.f16x2.f32 %r1, %f1, %f2; st.global.b32 [%rd2], %r1;",
    "rounding error": IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f2, %f1;\n" + UNPACK + "cvt.f32.f16 %f3, %h1; "
    "cvt.f32.f16 %f4, %h2; sub.f32 %f5, %f1, %f3; sub.f32 %f6, %f2, %f4; st.global.v2.f32 [%rd2], {%f5, %f6};",
    "compared with both halves": IN + LOADS + "cvt.rn.f16x2.f32 %r1, %f2, %f1;\n" + UNPACK + "cvt.f32.f16 %f3, %h1; "
    "cvt.f32.f16 %f4, %h2; setp.eq.f32 %p1, %f1, %f3; setp.gt.f32 %p2, %f2, %f4; setp.gt.f32 %p3, %f1, %f4;",
    "compared with both halves, in the other order": IN
    + LOADS
    + "cvt.rn.f16x2.f32 %r1, %f1, %f2;\n"
    + UNPACK
    + "cvt.f32.f16 %f3, %h1; cvt.f32.f16 %f4, %h2; setp.eq.f32 %p1, %f1, %f3; setp.gt.f32 %p2, %f2, %f4; "
    "setp.gt.f32 %p3, %f1, %f4;",
    "only kept in registers": IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f1, %f2; add.f16x2 %r2, %r1, %r1;\n"
    "mov.b32 {%h1, %h2}, %r2; add.f16 %h3, %h1, %h2; st.global.b16 [%rd2], %h3;",
    "one conversion each": IN + LOAD + "cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2; mov.b32 %r1, {%h1, %h2};\n"
    "st.global.b32 [%rd2], %r1;",
}


@pytest.mark.parametrize("name", WRONG)
def test_swapped(name: str) -> None:
    convert, body, module = WRONG[name]
    text = kernel(body.replace("{}", convert, 1), **module)
    (found,) = findings(text, CODE)
    assert found.level == "warning"
    assert found.line == line_of(text, convert)
    packed, first, second = convert.split(" ", 1)[1].rstrip(";").split(", ")
    assert found.message == f"`{first}` and `{second}` are packed in one order and used in the other"
    assert found.labels[0].text == f"`{first}` becomes the upper half of `{packed}`, `{second}` the lower"


@pytest.mark.parametrize("name", RIGHT)
def test_in_order(name: str) -> None:
    assert findings(kernel(RIGHT[name]), CODE) == []


def test_help_names_the_other_order() -> None:
    convert, body, _ = WRONG["vector load"]
    (found,) = findings(kernel(body.replace("{}", convert, 1)), CODE)
    assert found.helps[0].text == "if they should not be swapped, write `cvt.rn.f16x2.f32 %r1, %f2, %f1`"
    assert [label.text for label in found.labels[1:]] == [
        "stores the lower half, `%f2`, first",
        "`%f1` and `%f2` come from here",
    ]


def test_four_bits() -> None:
    body = ".reg .b8 %b;\n" + IN + LOAD + "cvt.rn.satfinite.e2m1x2.f32 %b, %f1, %f2; st.global.b8 [%rd2], %b;"
    (found,) = findings(kernel(body, **BLACKWELL), CODE)
    assert found.labels[0].text == "`%f1` becomes the upper half of `%b`, `%f2` the lower"


def test_an_instruction_that_is_wrong_is_not_judged_for_its_pair() -> None:
    text = kernel(IN + LOAD + "cvt.rn.f16x2.f32 %r1, %f1, %f2; st.global.b32 [%rd2], %r1, %r1;")
    assert [found.code for found in ptxlab.check(ptxlab.parse(text))] == ["operand-count"]
