"""A module in which a function has several results: `check` and ptxas say the same of what needs a stack there."""

import pytest

import ptxlab
from ptxlab.toolchain import accepted, judge
from tests.tools import header, needs_ptxas

SEVERAL = ".func (.reg .u32 a, .reg .u32 b) several(.reg .u32 x) { mov.u32 a, x; mov.u32 b, x; ret; }\n"
SEVERAL_ELSEWHERE = ".extern .func (.reg .u32 a, .reg .u32 b) several(.reg .u32 x);\n"
ONE = ".func (.reg .u32 b) one(.reg .u32 x) { mov.u32 b, x; ret; }\n"
RECURSIVE = ".func (.reg .u32 b) again(.reg .u32 x) { call (b), again, (x); ret; }\n"
MUTUAL = ".func first();\n.func second() { call first; ret; }\n.func first() { .reg .pred p; @p call second; ret; }\n"
NARROW = ".func (.reg .pred b) is_zero(.reg .u8 x) { .reg .u16 w; cvt.u16.u8 w, x; setp.eq.u16 b, w, 0; ret; }\n"
ELSEWHERE = ".extern .func elsewhere();\n"
THROUGH = "P: .callprototype (.reg .u32 _) _ (.reg .u32 _); call (r), w, (r), P;"

NEEDS_A_STACK = {
    "`again` is called recursively": (RECURSIVE, "call (r), again, (r);"),
    "`first` is called recursively": (MUTUAL, "call first;"),
    "a function is called through a register": (ONE, THROUGH),
    "the address of `one` is taken": (ONE, "mov.u64 w, one;"),
    "the initial value of `table` is the address of a function": (ONE + ".global .u64 table[2] = {0, one};\n", ""),
    "`elsewhere` is called, which is defined elsewhere": (ELSEWHERE + ".func f() { call elsewhere; ret; }\n", ""),
}
FINE = {
    "a call": (ONE, "call (r), one, (r);"),
    "narrow values": (NARROW, ".reg .u8 c; cvt.u8.u32 c, r; call (p), is_zero, (c);"),
    "recursion that no kernel calls": (RECURSIVE, ""),
    "declared only": (ELSEWHERE, ""),
    "an address that no kernel takes": (ONE + ".func f() { .reg .u64 w; mov.u64 w, one; ret; }\n", ""),
}


def module(several: str, functions: str, body: str) -> str:
    kernel = ".visible .entry k() { .reg .u32 r, s; .reg .u64 w; .reg .pred p; mov.u32 r, 0; mov.u64 w, 0;"
    return f"{header('8.0', 'sm_80')}{several}{functions}{kernel} {body} ret; }}\n"


def errors(text: str) -> list[str]:
    return [found.message for found in ptxlab.check(ptxlab.parse(text)) if found.level == "error"]


@pytest.mark.parametrize("several", [SEVERAL, SEVERAL_ELSEWHERE], ids=["defined", "declared"])
@pytest.mark.parametrize("what", NEEDS_A_STACK)
def test_what_needs_a_stack(what: str, several: str) -> None:
    assert f"{what} in a module without a stack" in errors(module(several, *NEEDS_A_STACK[what]))
    assert errors(module("", *NEEDS_A_STACK[what])) == []


@pytest.mark.parametrize("what", FINE)
def test_what_needs_none(what: str) -> None:
    assert errors(module(SEVERAL, *FINE[what])) == []


@needs_ptxas
@pytest.mark.parametrize("what", [*NEEDS_A_STACK, *FINE])
def test_ptxas_says_the_same(what: str) -> None:
    text = module(SEVERAL, *(NEEDS_A_STACK | FINE)[what])
    assert accepted(judge(text)) == (what in FINE)
