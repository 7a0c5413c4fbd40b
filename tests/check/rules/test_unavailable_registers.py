"""Registers that a block does not have: checked against ptxas, and on an H200 for what hangs."""

import pytest

import ptxlab
from ptxlab.check.rules.unavailable_registers import registers_at_start
from ptxlab.report import Diagnostic
from ptxlab.toolchain import accepted, judge
from tests.tools import needs_ptxas


def kernel(directives: str, first: str, second: str = "") -> str:
    return f""".version 8.0
.target sm_90a
.visible .entry k() {directives} {{
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 128;
    @%p1 bra SECOND;
    {first}
    ret;
SECOND:
    {second}
    ret;
}}
"""


def dec(count: int) -> str:
    return f"setmaxnreg.dec.sync.aligned.u32 {count};"


def inc(count: int) -> str:
    return f"setmaxnreg.inc.sync.aligned.u32 {count};"


def check(text: str) -> list[Diagnostic]:
    return [d for d in ptxlab.check(ptxlab.parse(text)) if d.code == "unavailable-registers"]


TWO = ".maxntid 256, 1, 1 .minnctapersm 2"  # 128 registers for each of 8 warps

# The first three and the last were seen to hang on an H200, and the first three of RIGHT to end; others are computed.
HANGS = {
    "224 beside 40": (kernel(TWO, dec(40), inc(224)), 12, 224, 216),
    "232 beside 40": (kernel(TWO, dec(40), inc(232)), 12, 232, 216),
    "none gives back": (kernel(TWO, "", inc(136)), 12, 136, 128),
    "more warps": (kernel(".maxntid 1024 .minnctapersm 1", dec(56), inc(128)), 12, 128, 120),
    "one group": (kernel(".reqntid 128 .minnctapersm 4", inc(136)), 9, 136, 128),
    "maxnreg": (kernel(".maxntid 256 .maxnreg 100", dec(40), inc(176)), 12, 176, 168),
}
RIGHT = {
    "216 beside 40": kernel(TWO, dec(40), inc(216)),
    "all keep theirs": kernel(TWO, inc(128), inc(128)),
    "maxnreg": kernel(".maxntid 256 .maxnreg 100", dec(40), inc(168)),
    "usual split": kernel(".maxntid 384 .minnctapersm 1", dec(40), inc(232)),
    "threads left open": kernel(".maxnreg 128", dec(24), inc(240)),
    "header says nothing": kernel("", dec(24), inc(240)),
    "dead code": kernel(TWO, "ret;" + dec(240), ""),
}
REFUSED = {
    "dec above the start": (kernel(".maxntid 384 .minnctapersm 1", dec(200)), 200, 168),
    "dec above maxnreg": (kernel(".maxnreg 100", dec(104)), 104, 100),
    "the smaller of both": (kernel(".maxnreg 128 .maxntid 1024 .minnctapersm 1", dec(104)), 104, 64),
    "small maxnreg": (kernel(".maxnreg 16", dec(32)), 32, 24),
}


@pytest.mark.parametrize("name", HANGS)
def test_hangs(name: str) -> None:
    text, line, asked, available = HANGS[name]
    (found,) = check(text)
    assert (found.level, found.line) == ("warning", line)
    assert found.message == (
        f"`setmaxnreg.inc` waits for {asked} registers, and there are never more than {available} for a thread"
    )
    assert found.labels[0].text == "the kernel hangs here"


@pytest.mark.parametrize("name", RIGHT)
def test_fits(name: str) -> None:
    assert check(RIGHT[name]) == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, asked, most = REFUSED[name]
    (found,) = check(text)
    assert (found.level, found.line) == ("error", 9)
    assert found.message == f"`setmaxnreg.dec` cannot keep {asked} registers of {most}"


@needs_ptxas
def test_ptxas_agrees() -> None:
    for name, (text, _, most) in REFUSED.items():
        assert any(f"in the program ({most})" in verdict.message for verdict in judge(text)), name
    for text in [*RIGHT.values(), *(text for text, *_ in HANGS.values())]:
        assert accepted(judge(text)), text


@pytest.mark.parametrize(
    ("directives", "registers"),
    [
        (".maxntid 1024 .minnctapersm 2", 32),
        (".maxntid 512 .minnctapersm 3", 40),
        (".maxntid 513 .minnctapersm 3", 32),
        (".maxntid 384 .minnctapersm 1", 168),
        (".maxntid 160 .minnctapersm 4", 96),
        (".maxntid 32 .minnctapersm 20", 96),
        (".maxntid 672 .minnctapersm 2", 40),
        (".maxntid 16, 16 .minnctapersm 2", 128),
        (".maxntid 32 .minnctapersm 1", 255),
        (".maxnreg 100", 100),
        (".maxntid 384", None),
    ],
)
def test_registers_at_start_are_those_that_ptxas_uses(directives: str, registers: int | None) -> None:
    assert registers_at_start(ptxlab.parse(kernel(directives, ""))["k"]) == registers


def wide(directives: str, columns: int) -> str:
    vector = ", ".join(f"%f{number}" for number in range(columns // 2))
    return f""".version 8.0
.target sm_90a
.visible .entry k() {directives} {{
    .reg .f32 %f<{columns // 2}>;
    .reg .b64 %rd<2>;
    wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{vector}}}, %rd0, %rd1, 1, 1, 1, 0, 0;
    ret;
}}
"""


# The widest `wgmma` that ptxas 13.0 takes, and the registers that a thread has.
LIMITS = {
    ".maxntid 384": (256, 168),
    ".maxntid 512": (200, 128),
    ".reqntid 640": (136, 96),
    ".maxntid 1024": (72, 64),
    ".maxntid 256 .minnctapersm 2": (200, 128),
    ".maxntid 128 .minnctapersm 2": (256, 255),
    ".maxnreg 128": (200, 128),
    ".maxnreg 40 .maxntid 128": (24, 40),
}


@pytest.mark.parametrize("directives", LIMITS)
def test_vectors_that_are_too_long(directives: str) -> None:
    columns, registers = LIMITS[directives]
    assert check(wide(directives, columns)) == []
    if columns == 256:
        return
    (found,) = check(wide(directives, columns + 8))
    assert (found.level, found.line) == ("error", 6)
    needed = (columns + 8) // 2 + 24
    assert found.message == (
        f"`wgmma.mma_async` needs more than {needed} registers, and a thread of `k` has at most {registers}"
    )


@needs_ptxas
def test_ptxas_agrees_on_vectors() -> None:
    for directives, (columns, _) in LIMITS.items():
        assert accepted(judge(wide(directives, columns))), directives
        if columns < 256:
            assert not accepted(judge(wide(directives, columns + 8))), directives
