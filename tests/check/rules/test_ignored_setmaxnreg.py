"""`setmaxnreg` that ptxas leaves out is found in every way it comes about, and where it works nothing is said."""

import pytest

import ptxlab
from ptxlab.report import Diagnostic
from ptxlab.toolchain import accepted, judge
from tests.tools import header, needs_ptxas

HEADER = header("8.0", "sm_90a")
DEC = "setmaxnreg.dec.sync.aligned.u32 40;"
RECURSIVE = """
.func f(.param .b64 n) {
    .reg .b64 %rd<3>;
    .reg .pred %p<2>;
    ld.param.b64 %rd1, [n];
    setp.eq.s64 %p1, %rd1, 0;
    @%p1 ret;
    sub.s64 %rd2, %rd1, 1;
    { .param .b64 a; st.param.b64 [a], %rd2; call f, (a); }
    ret;
}
"""
CALL = "{ .param .b64 a; st.param.b64 [a], 3; call f, (a); }"
POINTER = """mov.b64 %rd1, g;
    PROTOTYPE: .callprototype _ ();
    call %rd1, (), PROTOTYPE;"""


def kernel(directives: str, body: str = DEC, name: str = "k") -> str:
    return f".visible .entry {name}() {directives}\n{{\n    .reg .b64 %rd<3>;\n    {body}\n    ret;\n}}\n"


def check(text: str) -> list[Diagnostic]:
    return [d for d in ptxlab.check(ptxlab.parse(text)) if d.code == "ignored-setmaxnreg"]


def registers(count: int) -> str:
    return "{" + ", ".join(f"%v{i}" for i in range(count)) + "}"


def wgmma(columns: int, a: str = "%rd1") -> str:
    """One `wgmma` with `columns / 2` accumulators."""
    d = registers(columns // 2)
    rest = "1, 1, 1, 0, 0" if a == "%rd1" else "1, 1, 1, 0"
    return f""".reg .f32 %v<{columns // 2}>; .reg .b32 %a<4>;
    wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {d}, {a}, %rd2, {rest};"""


def tensor_load(count: int) -> str:
    return f""".reg .b32 %v<{count}>; .reg .b32 %t;
    tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {registers(count)}, [%t];
    tcgen05.wait::ld.sync.aligned;"""


INC = "setmaxnreg.inc.sync.aligned.u32 240;"
BLACKWELL = HEADER.replace("8.0", "8.6").replace("sm_90a", "sm_100a")
START = "does not say how many registers a thread starts with"
WRONG = {
    "nothing": (HEADER + kernel(""), 7, START),
    "maxntid alone": (HEADER + kernel(".maxntid 256, 1, 1"), 7, START),
    "reqntid alone": (HEADER + kernel(".reqntid 384"), 7, START),
    "minnctapersm alone": (HEADER + kernel(".minnctapersm 1"), 7, START),
    "too many blocks": (
        HEADER + kernel(".maxntid 512 .minnctapersm 5"),
        7,
        "`.minnctapersm 5` of `k` is more than fits",
    ),
    "too many small blocks": (HEADER + kernel(".maxntid 32 .minnctapersm 33"), 7, "`.minnctapersm 33` of `k`"),
    "blocks of whole warps": (HEADER + kernel(".maxntid 97 .minnctapersm 17"), 7, "`.minnctapersm 17` of `k`"),
    "accumulators for two blocks": (HEADER + kernel(".maxntid 384", INC + wgmma(104)), 7, START),
    "fewer threads": (HEADER + kernel(".maxntid 128", INC + wgmma(256)), 7, START),
    "accumulators, no threads": (HEADER + kernel(".minnctapersm 1", INC + wgmma(256)), 7, START),
    "tensor memory for two blocks": (BLACKWELL + kernel(".maxntid 512", INC + tensor_load(32)), 7, START),
    "recursion": (
        HEADER + RECURSIVE + kernel(".maxntid 256 .minnctapersm 1", DEC + CALL),
        18,
        "`k` calls `f`, which calls itself",
    ),
    "pointer": (
        HEADER + ".func g() { ret; }\n" + kernel(".maxnreg 64", DEC + POINTER),
        8,
        "`k` calls a function through a pointer",
    ),
    "in a function": (HEADER + f".func f() {{ {DEC} ret; }}\n" + kernel("", "call f;"), 4, START),
    "one of two kernels": (
        HEADER + f".func f() {{ {DEC} ret; }}\n" + kernel(".maxnreg 64", "call f;") + kernel("", "call f;", "other"),
        4,
        "the header of `other` does not say",
    ),
}
RIGHT = {
    "maxnreg": HEADER + kernel(".maxnreg 64"),
    "maxntid and minnctapersm": HEADER + kernel(".maxntid 384, 1, 1 .minnctapersm 1"),
    "reqntid and minnctapersm": HEADER + kernel(".minnctapersm 2 .reqntid 128"),
    "three dimensions": HEADER + kernel(".maxntid 16, 8, 2 .minnctapersm 2"),
    "as many blocks as fit": HEADER + kernel(".maxntid 513 .minnctapersm 3", "setmaxnreg.dec.sync.aligned.u32 32;"),
    "in a function": HEADER + f".func f() {{ {DEC} ret; }}\n" + kernel(".maxnreg 64", "call f;"),
    "a call by name": HEADER + ".func f() { ret; }\n" + kernel(".maxnreg 64", DEC + "call f;"),
    "none": HEADER + kernel("", ""),
    "accumulators for one block": HEADER + kernel(".maxntid 384", INC + wgmma(112)),
    "A in registers": HEADER + kernel(".reqntid 384", INC + wgmma(104, "{%a0, %a1, %a2, %a3}")),
    "accumulators in a function": HEADER
    + f".func f() {{ {INC} ret; }}\n"
    + kernel(".maxntid 512", wgmma(80) + "call f;"),
    "tensor memory for one block": BLACKWELL + kernel(".maxntid 512", INC + tensor_load(64)),
    "sm_120a": HEADER.replace("sm_90a", "sm_120a").replace("8.0", "8.7") + kernel(".maxntid 256 .minnctapersm 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_ignored(name: str) -> None:
    text, line, message = WRONG[name]
    (found,) = check(text)
    assert found.line == line
    assert found.message.startswith("`setmaxnreg` has no effect: ")
    assert message in found.message


@pytest.mark.parametrize("name", RIGHT)
def test_effective(name: str) -> None:
    assert check(RIGHT[name]) == []


@needs_ptxas
def test_ptxas_agrees() -> None:
    wrong = [(name, text, True) for name, (text, *_) in WRONG.items()]
    for name, text, ignored in [*wrong, *((name, text, False) for name, text in RIGHT.items())]:
        said = judge(text)
        assert accepted(said), name
        assert any("'setmaxnreg' ignored" in verdict.message for verdict in said) == ignored, name


def test_several_are_one_finding() -> None:
    (found,) = check(HEADER + kernel("", DEC + "setmaxnreg.inc.sync.aligned.u32 232;"))
    assert found.labels[0].text == "ptxas leaves this out, and 1 more"
    assert found.labels[1].text == "has neither `.maxnreg` nor `.maxntid`"
    assert found.helps[0].text == "add `.maxntid` and `.minnctapersm 1` to the header of `k`"


def test_a_function_that_is_compiled_apart() -> None:
    (found,) = check(HEADER + f".visible .func f() {{ {DEC} ret; }}\n")
    assert "no kernel of this module calls `f`" in found.message
    assert found.notes == ("ptxas says so only in an info line, C7504",)


def test_a_broken_function_is_left_alone() -> None:
    assert check(HEADER + kernel("", DEC + "add.u32 %rd1, %rd1, %rd1;")) == []
