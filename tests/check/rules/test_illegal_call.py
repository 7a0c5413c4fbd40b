"""What a call may pass: `check` and ptxas say the same of each kind of argument for each kind of parameter."""

import re

import pytest

import ptxlab
from ptxlab.report import Diagnostic
from ptxlab.toolchain import accepted, judge
from tests.tools import header, needs_ptxas

HEADER = header("8.6", "sm_90")
TYPES = "b8 u8 s8 b16 u16 s16 f16 f16x2 b32 u32 s32 f32 b64 u64 s64 f64 b128".split()
CONSTANTS = ("3", "-3", "1.5", "0f3f800000", "0d3ff0000000000000", "0x1ffffffffff", "3U")
WIDTHS = {name: 32 if name == "f16x2" else int(name[1:]) for name in TYPES}
DECLARATIONS = [
    *(f".reg .{type} {{}}" for type in TYPES),
    *(f".reg .v{count} .{type} {{}}" for type in TYPES for count in (2, 4) if WIDTHS[type] * count <= 128),
    *(f".param .{type} {{}}{count}" for type in TYPES if type != "f16x2" for count in ("", "[1]", "[4]")),
]
NARROW = re.compile(r"\.(reg|param) \.[us](8|16) \S+[^\]]$")  # of which ptxas speaks only where all else is right


def errors(text: str) -> list[Diagnostic]:
    try:
        found = ptxlab.check(ptxlab.parse(text))
    except ptxlab.PtxError as problem:
        found = problem.diagnostics
    return [finding for finding in found if finding.level == "error"]


@pytest.mark.bulk(one_in=3)
@needs_ptxas
@pytest.mark.parametrize("what", ["parameter", "result"])
@pytest.mark.parametrize("formal", [one for one in DECLARATIONS if not NARROW.match(one.format("xx"))])
def test_every_argument_for_every_parameter(formal: str, what: str) -> None:
    """All calls are in one kernel, a line each: ptxas names all that it refuses."""
    declared = [f"{actual.format(f'a{number}')};" for number, actual in enumerate(DECLARATIONS)]
    given = [f"a{number}" for number in range(len(DECLARATIONS))]
    if what == "parameter":
        signature, calls = f"f({formal.format('i')})", [f"call f, ({one});" for one in (*given, *CONSTANTS)]
    else:
        signature, calls = f"({formal.format('i')}) f()", [f"call ({one}), f;" for one in given]
    lines = [
        *HEADER.splitlines(),
        f".func {signature} {{ ret; }}",
        ".visible .entry k() {",
        *declared,
        *calls,
        "ret; }",
    ]
    text = "\n".join(lines)
    ours = {finding.line for finding in errors(text)}
    theirs = {verdict.line for verdict in judge(text) if verdict.level == "error"}
    assert [lines[line - 1] for line in sorted(ours ^ theirs, key=str) if line] == []


FUNCTIONS = """.func (.reg .u32 r) f(.reg .u32 a) { mov.u32 r, a; ret; }
.func (.reg .u64 r) wide(.reg .u32 a) { cvt.u64.u32 r, a; ret; }
.func (.reg .b32 r) bits(.reg .u32 a) { mov.b32 r, a; ret; }
.func none(.reg .u32 a) { ret; }
.func open(.param .b32 a, .param .align 4 .b8 rest[]) { ret; }
.func narrow(.reg .u16 a) { ret; }
.func flag(.reg .pred a) { ret; }
.func (.param .s8 r) byte() { ret; }
"""
BODY = """.reg .b64 p; .reg .u32 x, y; .reg .u16 h; .reg .pred q; .param .b32 one; .param .s8 small;
.param .align 4 .b8 many[12]; .param .align 8 .b8 other[12];"""


def kernel(line: str, before: str = "") -> str:
    return (
        f"{HEADER}{FUNCTIONS}{before}.visible .entry k(.param .u64 own, .param .b32 word) {{ {BODY}\nmov.b64 p, f;\n"
        f"{line}\nret; }}"
    )


# A module, and the message of its one error or none.
CASES = {
    # Every function of a list of targets has to fit.
    kernel("T: .calltargets f, bits; call (x), p, (y), T;"): "",
    kernel("T: .calltargets f, wide; call (x), p, (y), T;"): "result `r` of `wide` is `.u64`, the call passes the "
    "`.u32` register `x`",
    kernel("T: .calltargets f, none; call (x), p, (y), T;"): "`none` has 0 results, the call passes 1",
    # An open array at the end takes any array of its alignment, or nothing.
    kernel("call open, (one, many);"): "",
    kernel("call open, (one);"): "",
    kernel("call open, (one, other);"): "parameter `rest` of `open` is aligned to 4 bytes, the variable `other` is not",
    # What a function was given itself is not passed on.
    kernel("call (x), f, (word);"): "`word` is a parameter of `k`, which no call can pass on",
    kernel("call open, (one+0);"): "expected `,` or `)` in the list of the call, found `+`",
    # Scalars of less than 32 bits, if they have a sign or are predicates, where the code is reached.
    kernel("call narrow, (h);"): "parameter `a` of `narrow` is a single `.u16`, which no call can pass",
    kernel("call flag, (q);"): "parameter `a` of `flag` is a single `.pred`, which no call can pass",
    kernel("call (small), byte;"): "result `r` of `byte` is a single `.s8`, which no call can pass",
    kernel("mov.b64 p, via;", ".func via() { .reg .pred q; call flag, (q); ret; }\n"): "parameter `a` of `flag` is a "
    "single `.pred`, which no call can pass",
    kernel("", ".func unused() { .reg .pred q; call flag, (q); ret; }\n"): "",
    # Predicates form no vectors.
    kernel(".reg .v2 .pred qs;"): "`qs` is a vector of predicates",
}


@pytest.mark.parametrize(("text", "message"), CASES.items())
def test_each_is_judged_as_written(text: str, message: str) -> None:
    assert [finding.message for finding in errors(text)] == [message] * bool(message)


@needs_ptxas
@pytest.mark.parametrize(("text", "message"), CASES.items())
def test_ptxas_takes_the_same_side(text: str, message: str) -> None:
    assert accepted(judge(text)) == (not message)


KINDS = {"p: .callprototype _ ();": "call %rd, p;", "p: .calltargets f;": "call %rd, p;"}


@needs_ptxas
@pytest.mark.parametrize(("declared", "call"), KINDS.items(), ids=["prototype", "targets"])
def test_what_a_call_conforms_to_comes_first_and_is_not_code(declared: str, call: str) -> None:
    head = f"{HEADER}.func f() {{ ret; }}\n.entry k() {{ .reg .b64 %rd; mov.u64 %rd, f;\n"
    orders = {
        f"{declared}\n{call}\nret;": [],
        f"{call}\n{declared}\nret;": ["`p` comes too late"],
        f"{{ {call} }}\n{declared}\nret;": ["`p` comes too late"],
        f"{declared}\nbra p;\nret;": ["`p` is not a label in front of an instruction"],
    }
    for body, expected in orders.items():
        found = errors(f"{head}{body}\n}}\n")
        assert [finding.message for finding in found] == expected
        assert accepted(judge(f"{head}{body}\n}}\n")) == (not found)
