"""Parts of operands: pairs, vectors, vectors with an index. Right ones pass, and each with one wrong part does not."""

import pytest

import ptxlab
from ptxlab.toolchain import accepted, judge
from tests.tools import header, needs_ptxas

REGISTERS = ".reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<6>; .reg .pred %p<4>;"


def module(line: str) -> str:
    return f"{header('8.6', 'sm_90')}.global .texref tex;\n.visible .entry k() {{ {REGISTERS}\n{line}\nret; }}\n"


CASES = [
    ("setp.eq.and.u32 %p1|%p2, 1, 2, %p3;", True),
    ("setp.eq.and.u32 %r1|%p2, 1, 2, %p3;", False),
    ("setp.eq.and.u32 %p1|%r2, 1, 2, %p3;", False),
    ("shfl.sync.up.b32 %r1|%p1, 1, 1, 0, -1;", True),
    ("shfl.sync.up.b32 %rd1|%p1, 1, 1, 0, -1;", False),
    ("shfl.sync.up.b32 %r1|%r2, 1, 1, 0, -1;", False),
    ("mov.b64 {%r1, %r2}, 5;", True),
    ("mov.b64 {%r1, _}, %rd1;", True),
    ("mov.b64 {%r1, %rd2}, 5;", False),
    ("mov.b64 %rd1, {%r1, _};", False),
    ("tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, {%r1, %f1, %f2, %f3}];", True),
    ("tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, {%rd1, %f1, %f2, %f3}];", False),
    ("tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, {%r1, %rd1, %f2, %f3}];", False),
]


def errors(line: str) -> list[str]:
    return [one.code for one in ptxlab.check(ptxlab.parse(module(line))) if one.level == "error"]


@pytest.mark.parametrize(("line", "is_right"), CASES)
def test_parts_of_an_operand(line: str, is_right: bool) -> None:
    assert (errors(line) == []) is is_right


@needs_ptxas
@pytest.mark.parametrize(("line", "is_right"), CASES)
def test_ptxas_agrees(line: str, is_right: bool) -> None:
    assert accepted(judge(module(line))) is is_right
