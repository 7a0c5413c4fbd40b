"""Arrays that are written exactly once, and shared memory that is written before it is read, with wrong twins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.prove import Verdict
from tests.prove.kernels import kernel, needs_solver

STORE = "mul.wide.u32 %d0, %r0, 4; add.u64 %d0, %d0, %x; st.global.u32 [%d0], %t;"
ELEMENT = f"mad.lo.u32 %r0, %r15, 64, %t; setp.ge.u32 %p0, %r0, %n; @%p0 bra END; {STORE}\nEND:"
ROWS = f"""mul.lo.u32 %r1, %r15, %n; mov.u32 %r3, %t; setp.ge.u32 %p0, %r3, %n; @%p0 bra END;
L:
add.u32 %r0, %r1, %r3; {STORE} add.u32 %r3, %r3, 64; setp.lt.u32 %p1, %r3, %n; @%p1 bra L;
END:"""
LENGTH, COVERED = ["len(x) == n"], ["len(x) == n", "grid.x * 64 >= n"]
MATRIX = ["len(x) == grid.x * n", "n <= 1000000"]
MISSED = "for some element no thread is found that writes it"


def verdict(body: str, assume: list[str], **asked: Any) -> Verdict:
    text = f"mov.u32 %r15, %ctaid.x;\n{body}"
    return ptxlab.prove(kernel(text), assume=assume, replays=False, timeout=300, **asked)


@needs_solver
@pytest.mark.parametrize(
    ("body", "assume"),
    [(ELEMENT, COVERED), pytest.param(ROWS, MATRIX, marks=pytest.mark.bulk)],
)
def test_each_element_is_written_once(body: str, assume: list[str]) -> None:
    found = verdict(body, assume, once="x")
    assert found.level == "proved", str(found)
    assert "each element of `x` is written once" in str(found)


@needs_solver
@pytest.mark.parametrize(
    ("body", "assume", "reason"),
    [
        (ELEMENT, LENGTH, MISSED),
        (ELEMENT.replace("%r0, %n", "%r0, 7"), [*COVERED, "n >= 7"], MISSED),
        (ELEMENT.replace("END:", "st.global.u32 [%d0], %n;\nEND:"), COVERED, "one thread writes it twice"),
        (ELEMENT.replace("END:", "red.global.add.u32 [%d0], 1;\nEND:"), COVERED, "an atomic operation is not followed"),
        (ELEMENT.replace(STORE, ""), COVERED, "there is no store to it"),
        (ELEMENT.replace("%r15, 64, %t", "%r15, 64, %r14").replace("mad", "shr.u32 %r14, %t, 1; mad"), COVERED, MISSED),
        pytest.param(ROWS.replace("add.u32 %r3, %r3, 64", "add.u32 %r3, %r3, 128"), MATRIX, MISSED,
                     marks=pytest.mark.bulk),
    ],
)  # fmt: skip
def test_element_that_is_written_never_or_twice(body: str, assume: list[str], reason: str) -> None:
    found = verdict(body, assume, once="x")
    assert found.level == "not-proved"
    assert any(reason in gap.reason for gap in found.gaps if gap.kind == "once"), str(found)


OWN = "mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 4, %r1;"
NEIGHBOUR = "xor.b32 %r3, %t, 1; mad.lo.u32 %r4, %r3, 4, %r1; ld.shared.u32 %r5, [%r4];"
HALF = "setp.lt.u32 %p0, %t, 32; @%p0 st.shared.u32 [%r2], %t; bar.sync 0;"
EITHER = """ld.global.u32 %r7, [%x]; setp.gt.u32 %p0, %r7, 5; @%p0 bra A; st.shared.u32 [%r2], %t; bra B;
A:
st.shared.u32 [%r2], %n;
B:
bar.sync 0; ld.shared.u32 %r5, [%r2];"""
TURNS = """mov.u32 %r6, 0;
L:
FIRST SECOND add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %n; @%p1 bra L;"""
WRITE, READ = "st.shared.u32 [%r2], %t; bar.sync 0;", f"{NEIGHBOUR} bar.sync 0;"
STRIDED = """mov.u32 %r6, %t;
L:
mad.lo.u32 %r4, %r6, 4, %r1; st.shared.u32 [%r4], %t; add.u32 %r6, %r6, 16; setp.lt.u32 %p1, %r6, 64; @%p1 bra L;"""


@needs_solver
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (f"st.shared.u32 [%r2], %t; bar.sync 0; {NEIGHBOUR}", f"{NEIGHBOUR} bar.sync 0; st.shared.u32 [%r2], %t;"),
        (f"{HALF} and.b32 %r3, %t, 31; mad.lo.u32 %r4, %r3, 4, %r1; ld.shared.u32 %r5, [%r4];", f"{HALF} {NEIGHBOUR}"),
        (EITHER, EITHER.replace("st.shared.u32 [%r2], %n;", "")),
        (TURNS.replace("FIRST", WRITE).replace("SECOND", READ), TURNS.replace("FIRST", READ).replace("SECOND", WRITE)),
        (f"setp.gt.u32 %p0, %n, 5; @%p0 {WRITE} @%p0 ld.shared.u32 %r5, [%r2];",
         f"setp.gt.u32 %p0, %n, 5; @%p0 {WRITE} setp.gt.u32 %p1, %n, 4; @%p1 ld.shared.u32 %r5, [%r2];"),
    ],
)  # fmt: skip
def test_shared_memory_is_written_before_it_is_read(right: str, wrong: str) -> None:
    assume = ["len(x) >= 1", "n >= 1", "n <= 1000"]
    proved = verdict(OWN + right, assume, initialized=True)
    assert proved.level == "proved", str(proved)
    assert "shared memory is written before it is read" in str(proved)
    found = verdict(OWN + wrong, assume, initialized=True)
    assert [gap.kind for gap in found.gaps] == ["initialized"], str(found)
    assert "tile is written before it is read: for some byte no store before it is found" in str(found)
    assert verdict(OWN + wrong, assume).level == "proved"  # it is not asked


@needs_solver
def test_stores_of_a_loop_that_is_over() -> None:
    read = "\nbar.sync 0; ld.shared.u32 %r5, [%r2];"
    threads = ".reqntid 16"
    for body, level in ((STRIDED, "proved"), (STRIDED.replace("%r6, 64", "%r6, 60"), "not-proved")):
        text = f"mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1; {body}{read}\nld.shared.u32 %r5, [%r2+12];"
        assert ptxlab.prove(kernel(text, directive=threads), initialized=True, replays=False).level == level


@needs_solver
def test_command(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(str(kernel(f"mov.u32 %r15, %ctaid.x;\n{ELEMENT}").module.source.text))
    run = CliRunner().invoke(command_line, ["prove", str(path), "--initialized", "--once", "x", *(
        part for one in COVERED for part in ("--assume", one))])  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "each element of `x` is written once, and shared memory is written before it is read" in run.output
    run = CliRunner().invoke(command_line, ["prove", str(path), "--once", "z"])
    assert run.exit_code == 2
    assert "`z` in `once` is not an array; expected one of `x`" in run.output
