"""Sizes as large as can be written: `check` returns at once, and says what ptxas says."""

import time

import pytest

import ptxlab
from ptxlab.toolchain import accepted, judge
from tests.tools import header, needs_ptxas

HEADER = header("8.6", "sm_90a")
KERNEL = ".visible .entry k(.param .u64 a) { ret; }\n"


def body(line: str) -> str:
    return (
        f"{HEADER}.shared .align 16 .b8 buffer[8192];\n.visible .entry k(.param .u64 a)\n{{\n"
        f".reg .b64 %d<3>; .reg .b32 %r<3>;\nld.param.u64 %d1, [a];\n{line}\nret;\n}}\n"
    )


LARGE = 0xFFFFFFFFFFFFFFFF
# A module, and the codes of its errors.
CASES = {
    body(f"cp.async.ca.shared.global [buffer], [%d1], {LARGE:#x}, 4; cp.async.wait_all;"): ["immediate-range"],
    body(f"cp.async.ca.shared.global [buffer], [%d1], 4, {LARGE:#x}; cp.async.wait_all;"): ["immediate-range"],
    body("cp.async.ca.shared.global [buffer], [%d1], 4, 5; cp.async.wait_all;"): ["immediate-range"],
    body("cp.async.ca.shared.global [buffer], [%d1], 8, 9; cp.async.wait_all;"): ["immediate-range"],
    body("cp.async.ca.shared.global [buffer], [%d1], 8, 8; cp.async.wait_all;"): [],
    body("cp.async.cg.shared.global [buffer], [%d1], 16, 16; cp.async.wait_all;"): [],
    body("cp.async.ca.shared.global [buffer], [%d1], 4; cp.async.wait_group 0x7fffffff;"): [],
    body(f"ld.shared.u32 %r1, [buffer+{1 << 40}];"): [],
    # All constants of a module share 64 KB, each at its alignment, in the order they are declared.
    f"{HEADER}.const .b8 x[65536];\n{KERNEL}": [],
    f"{HEADER}.const .b8 x[65537];\n{KERNEL}": ["excessive-constant-memory"],
    f"{HEADER}.const .f32 x[2147483648];\n{KERNEL}": ["excessive-constant-memory"],
    f"{HEADER}.const .b8 x[40000];\n.const .b8 y[40000];\n{KERNEL}": ["excessive-constant-memory"],
    f"{HEADER}.const .b8 x[1];\n.const .b64 y[8191];\n{KERNEL}": [],
    f"{HEADER}.const .b8 x[1];\n.const .b64 y[8191];\n.const .b8 z;\n{KERNEL}": ["excessive-constant-memory"],
    f"{HEADER}.const .b64 y[8191];\n.const .b8 x[1], z[7];\n{KERNEL}": [],
    f"{HEADER}.visible .entry k() {{ .const .b8 x[40000]; ret; }}\n.func f() {{ .const .b8 x[40000]; ret; }}\n": [
        "excessive-constant-memory"
    ],
    ".version 2.0\n.target sm_20\n.const[1] .b8 x[4];\n.entry k() { ret; }\n": ["illegal-declaration"],
    ".version 2.0\n.target sm_20\n.extern .const[1] .b8 x[];\n.entry k() { ret; }\n": [],
    # Memory that is allocated when a kernel runs.
    f"{HEADER}.global .b64 x[{LARGE}];\n{KERNEL}": [],
    f"{HEADER}.shared .b8 x[{1 << 30}];\n{body('').removeprefix(HEADER)}": [],
    f"{HEADER}.func f(.param .b8 x[{(1 << 32) - 1}]) {{ ret; }}\n{KERNEL}": [],
    f"{HEADER}.func f(.param .b8 x[{1 << 32}]) {{ ret; }}\n{KERNEL}": ["illegal-declaration"],
    f"{HEADER}.visible .entry k(.param .b8 x[32764]) {{ ret; }}\n": [],
    f"{HEADER}.visible .entry k(.param .b8 x[32765]) {{ ret; }}\n": ["illegal-declaration"],
    f"{HEADER}.global .align {1 << 20} .b8 x[4];\n{KERNEL}": [],
    f"{HEADER}.global .align {1 << 32} .b8 x[4];\n{KERNEL}": ["constant-overflow"],
}


@pytest.mark.parametrize(("text", "codes"), CASES.items())
def test_each_is_judged_at_once(text: str, codes: list[str]) -> None:
    start = time.perf_counter()
    try:
        found = ptxlab.check(ptxlab.parse(text))
    except ptxlab.PtxError as problem:
        found = list(problem.diagnostics)
    assert [finding.code for finding in found if finding.level == "error"] == codes
    assert time.perf_counter() - start < 10  # most of it is for a machine that is busy


@needs_ptxas
@pytest.mark.parametrize(("text", "codes"), CASES.items())
def test_ptxas_takes_the_same_side(text: str, codes: list[str]) -> None:
    text = text.replace("x[2147483648]", "x[16777216]")  # ptxas writes zeros to all of it before it refuses it
    assert accepted(judge(text)) == (not codes)


def test_many_names_take_a_time_that_grows_with_them() -> None:
    lines = "".join(f".reg .b32 %one{number}_{number}, %family{number}_<{number + 1}>;\n" for number in range(8000))
    start = time.perf_counter()
    assert ptxlab.check(ptxlab.parse(f"{HEADER}.visible .entry k()\n{{\n{lines}ret;\n}}\n")) == []
    assert time.perf_counter() - start < 20
