"""Parts of registers: elements of vectors, components of special registers, what video instructions select.

`check` and ptxas say the same of each, but for elements that a vector does not have: ptxas takes those as results, and
crashes where they are read.
"""

import pytest

import ptxlab
from ptxlab.isa.selectors import SELECTORS
from ptxlab.isa.special_registers import SPECIAL_REGISTERS, SpecialRegister
from ptxlab.toolchain import accepted, judge
from tests.isa.conformance import ask
from tests.isa.sample import module
from tests.tools import needs_ptxas

COMPONENTS = "x y z w r g b a b0 h1 h10 b3210 b16 u32 pred e2m3x2 q xx X s0".split()
KNOWN = [
    one
    for one in SPECIAL_REGISTERS.values()
    if any(version <= (9, 0) for version, _ in one.since.alternatives) and not one.name[-2:].isdigit()
]


def is_legal(line: str) -> bool:
    text, _ = module([line], (9, 0), "sm_90")
    try:
        return all(finding.level != "error" for finding in ptxlab.check(ptxlab.parse(text)))
    except ptxlab.PtxError:
        return False


@pytest.mark.bulk(one_in=3)
@needs_ptxas
@pytest.mark.parametrize("register", KNOWN, ids=lambda register: register.name)
def test_components_of_special_registers(register: SpecialRegister) -> None:
    move, type = ("mov.pred", "pred") if register.type.width == 1 else (f"mov.b{register.type.width}",) * 2
    into = f"%{type.removeprefix('mov.')}_0"
    lines = [f"{move} {into}, {register.name}.{component};" for component in COMPONENTS]
    ours = [is_legal(line) for line in lines]
    assert ours == [not messages for messages in ask(lines, (9, 0), "sm_90")]
    assert ours == [bool(register.vector) and component in "xyzwrgba" for component in COMPONENTS]


@needs_ptxas
@pytest.mark.parametrize(
    ("instruction", "first"),
    [("vadd.s32.s32.s32", "part"), ("vadd2.s32.s32.s32", "halves"), ("vadd4.s32.s32.s32", "bytes")],
)
def test_selectors_of_other_instructions(instruction: str, first: str) -> None:
    every = [*COMPONENTS, *(sorted(names)[at] for names in SELECTORS.values() for at in (0, -1))]
    lines = [f"{instruction} %s32_0, %s32_1.{part}, %s32_2, %s32_3;" for part in dict.fromkeys(every)]
    if first == "part":
        lines = [line.replace(", %s32_3", "") for line in lines]
    assert [is_legal(line) for line in lines] == [not messages for messages in ask(lines, (9, 0), "sm_90")]


def kernel(line: str, declared: str = "") -> str:
    return (
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n"
        f".reg .b32 r, s; .reg .v2 .u32 two; .reg .v4 .s32 four; .reg .pred p; {declared}\n{line}\nret;\n}}\n"
    )


# A kernel, and what is said of it; None: ptxas says otherwise, see above.
CASES = [
    (kernel("mov.u32 s, two.y; mov.u32 two.g, s; add.s32 four.w, four.x, four.b;"), ""),
    (kernel("mov.u32 s, r.x;"), "operand 2 of `mov.u32` is `r.x`, which has no such part"),
    (kernel("mov.u32 r.x, s;"), "operand 1 of `mov.u32` is `r.x`, which has no such part"),
    (kernel("mov.u32 s, two.xy;"), "operand 2 of `mov.u32` is `two.xy`, which has no such part"),
    (kernel("mov.u32 s, two.b0;"), "operand 2 of `mov.u32` is `two.b0`, which has no such part"),
    (kernel("mov.u32 r, %tid.x;", ".reg .b32 %tid;"), "operand 2 of `mov.u32` is `%tid.x`, which has no such part"),
    (kernel("mov.u32 r, %tid;", ".reg .b32 %tid;"), ""),
    (kernel("vadd.s32.s32.s32 four.x, four.y, four.z;"), "operand 1 of `vadd.s32.s32.s32` is an element of the vector "
     "register `four`, expected a `.s32` register"),
    (kernel("vote.sync.ballot.b32 two.x, p, -1;"), ""),
    (kernel("shfl.sync.up.b32 two.x|p, r, 1, 0, -1;"), "operand 1 of `shfl.sync.up.b32` is a pair `p|q`, expected a "
     "`.b32` register"),
    (".version 8.6\n.target sm_90\n.global .u32 %laneid;\n", "`%laneid` is the name of a special register"),
    (".version 8.6\n.target sm_90\n.func %clock() { ret; }\n", "`%clock` is the name of a special register"),
]  # fmt: skip
ABSENT = [
    (kernel("mov.u32 two.z, s;"), "operand 1 of `mov.u32` is `two.z`, which has no such part"),
    (kernel("mov.u32 s, two.a;"), "operand 2 of `mov.u32` is `two.a`, which has no such part"),
]


@pytest.mark.parametrize(("text", "message"), [*CASES, *ABSENT])
def test_each_is_judged_as_written(text: str, message: str) -> None:
    found = [finding.message for finding in ptxlab.check(ptxlab.parse(text)) if finding.level == "error"]
    assert found == [message] * bool(message)


@needs_ptxas
@pytest.mark.parametrize(("text", "message"), CASES)
def test_ptxas_takes_the_same_side(text: str, message: str) -> None:
    assert accepted(judge(text)) == (not message)
