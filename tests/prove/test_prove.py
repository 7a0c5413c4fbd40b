"""Kernels that are proved for any size, their wrong twins, the command line, and what is not followed."""

from __future__ import annotations

import json
from ctypes import ArgumentError
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.measure.data import Host
from ptxlab.prove import ContractError, MissingSolverError
from ptxlab.prove.theories import solver
from ptxlab.report import Source
from tests.prove.kernels import kernel, needs_solver

KERNELS = Path(ptxlab.__file__).parent / "kernels"


ROW = {"rows": 3, "columns": 70, "type": "f32"}
BULK = pytest.mark.bulk
GALLERY = [
    ("vector_addition", {"n": 1000}, "one element a thread"),
    ("vector_addition", {"n": 1}, "one element a thread"),
    pytest.param("vector_addition", {"n": 3000}, "four elements a thread", marks=BULK),
    ("softmax", ROW, "plain"),
    ("rms_norm", ROW, "plain"),
    pytest.param("layer_norm", ROW, "plain", marks=BULK),
    pytest.param("softmax", ROW, "read once", marks=BULK),
    pytest.param("rms_norm", ROW, "read once", marks=BULK),
    pytest.param("layer_norm", ROW, "read once", marks=BULK),
    pytest.param("transpose", {"rows": 33, "columns": 70, "type": "f32"}, "elements", marks=BULK),
    pytest.param("reduction", {"n": 5003, "type": "f32"}, "last block", marks=BULK),
    pytest.param("sgemm", {"m": 1, "n": 1, "k": 1}, "naive", marks=BULK),
]


@needs_solver
@pytest.mark.parametrize(("name", "size", "variant"), GALLERY)
def test_gallery(name: str, size: dict[str, Any], variant: str) -> None:
    entry = import_module(f"ptxlab.kernels.{name}").entry
    (launch,) = entry.launches(variant, entry.arrays(Host(), **size))
    found = ptxlab.prove(launch, timeout=600)
    assert found.level == "proved", str(found)


SGEMM = [
    pytest.param("naive", (32, 32), marks=BULK),
    pytest.param("coalesced", 1024, marks=BULK),
    ("shared", (32, 32)),
    pytest.param("tiled_1d", 512, marks=BULK),
]
LENGTHS = ["len(a) == m * k", "len(b) == k * n", "len(c) == m * n"]


@needs_solver
@pytest.mark.parametrize(("name", "block"), SGEMM)
def test_sgemm_of_any_size(name: str, block: Any) -> None:
    module = ptxlab.load(KERNELS / "sgemm" / f"{name}.ptx")
    found = ptxlab.prove(module[module.entries[0]], block=block, assume=LENGTHS, timeout=600)
    assert found.level == "proved", str(found)


TWINS = [
    pytest.param("shared", (32, 32), ("bar.sync        0;", ""), "data-race", marks=BULK),
    ("shared", (32, 32), ("setp.lt.u32     %row_inside", "setp.le.u32     %row_inside"), "out-of-bounds"),
]


@needs_solver
@pytest.mark.parametrize(("name", "block", "change", "code"), TWINS)
def test_wrong_twins(name: str, block: Any, change: tuple[str, str], code: str) -> None:
    text = (KERNELS / "sgemm" / f"{name}.ptx").read_text()
    module = ptxlab.parse(text.replace(*change, 1))
    found = ptxlab.prove(module[module.entries[0]], block=block, assume=LENGTHS, timeout=600)
    assert found.level == "counterexample", str(found)
    assert found.counterexample is not None
    assert found.counterexample.finding.code == code


@needs_solver
def test_bounds_can_be_assumed() -> None:
    body = "mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x;\nst.global.u32 [%d1], %t;"
    assert ptxlab.prove(kernel(body), assume="grid.x == 1", replays=False).level == "not-proved"
    found = ptxlab.prove(kernel(body), assume="grid.x == 1", bounds=False)
    assert found.level == "proved", str(found)
    assert "accesses are in bounds of their array or variable" in found.assumptions
    assert "out of bounds" not in str(found)
    assert ptxlab.prove(kernel(body), bounds=False, replays=False).level == "not-proved"  # blocks race


@needs_solver
@pytest.mark.parametrize(("type", "level"), [("u8", "proved"), ("s8", "not-proved")])
def test_a_byte_from_memory_is_small(type: str, level: str) -> None:
    body = f"cvt.u64.u32 %d1, %t; add.u64 %d1, %d1, %x; ld.global.{type} %r1, [%d1]; shr.u32 %r1, %r1, 2;\n"
    body += "mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2; red.shared.add.u32 [%r2], 1;"
    assert ptxlab.prove(kernel(body), assume=["len(x) == 64", "grid.x == 1"], replays=False).level == level


UNKNOWN = [
    ("mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x; ld.global.u32 %r1, [%d1]; mul.wide.u32 %d2, %r1, 4;"
     " add.u64 %d2, %d2, %x;\nst.global.u32 [%d2], %t;", "a value from memory"),
    ("setp.lt.u32 %p1, %t, 5; @%p1 bra skip;\nbar.sync 0;\nskip:", "threads of one block may decide differently"),
    ("mbarrier.init.shared.b64 [tile], 1;\nmbarrier.inval.shared.b64 [tile];", "`mbarrier.inval.shared.b64` is not"),
    ("setp.lt.u32 %p1, %t, 5; @%p1 bra skip;\nshfl.sync.bfly.b32 %r1, %t, 1, 31, -1;\nskip:",
     "threads of one warp may decide differently"),
    ("bar.warp.sync 15;", "a mask of lanes other than a constant for the whole warp is not followed"),
    ("setp.gt.u32 %p1, %t, 3;\n@%p1 bar.sync 0;", "threads of one block may decide differently"),
    ("bar.sync 1, 32;", "this barrier expects 32 threads, and 64 come to it"),
    ("bar.sync 1, 128;", "this barrier expects 128 threads, and 64 come to it"),
    ("setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 1, 32;", "barrier for a part of the block is not followed"),
]  # fmt: skip


@needs_solver
@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("body", "reason"), UNKNOWN)
def test_what_is_not_followed_is_said(body: str, reason: str) -> None:
    found = ptxlab.prove(kernel(body), assume=["len(x) == 64", "grid.x == 1"], replays=False)
    assert found.level == "not-proved"
    assert any(reason in gap.reason for gap in found.gaps), str(found)
    assert all(gap.lines[0] > 4 for gap in found.gaps)


@needs_solver
def test_wrapping_is_not_overlooked() -> None:
    """`4 * n` wraps at 2^30: what is left of it is below `n`, and yet outside."""
    body = "shl.b32 %r1, %n, 2; sub.u32 %r1, %r1, 4; setp.ge.u32 %p1, %t, %r1; @%p1 ret; mul.wide.u32 %d1, %t, 4;"
    body += " add.u64 %d1, %d1, %x;\nld.global.u32 %r2, [%d1];"
    assert ptxlab.prove(kernel(body), assume="len(x) == 4 * n", replays=False).level == "not-proved"
    assert ptxlab.prove(kernel(body), assume=["len(x) == 4 * n", "n > 0", "n < 1000"]).level == "proved"


@needs_solver
@needs_solver
def test_wrapping_in_a_later_turn_is_not_overlooked() -> None:
    """An index that does not wrap in the first turn of a loop does in the third: it is that of another thread."""
    body = """mov.u32 %r1, 0; ld.param.u32 %r2, [a]; ld.param.u32 %r3, [b]; add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %t; and.b32 %r4, %t, 16;
loop: mul.lo.u32 %r5, %r1, STEP; add.u32 %r5, %r5, %r2;
        setp.eq.u32 %p1, %r4, 0; @%p1 bra low; setp.ge.u32 %p2, %r5, %n; @%p2 bra next;
        mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %x;
st.global.u32 [%d1], %t;
bra next;
        low: setp.ge.u32 %p2, %r2, %n; @%p2 bra next; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d1, %x;
        st.global.u32 [%d1], %t;
next: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, %n; @%p3 bra loop;"""
    parameters = ".param .u64 x, .param .u32 n, .param .u32 a, .param .u32 b"
    assumed = ["n <= len(x)", "a + b < 100", "grid.x == 1"]
    for step, level in ((1431655760, "not-proved"), (0, "proved")):  # three times the first is 2^32 - 16
        own = kernel(body.replace("STEP", str(step)), parameters, ".reqntid 32")
        assert ptxlab.prove(own, assume=assumed, replays=False).level == level
    found = kernel(body.replace("STEP", "1431655760"), parameters, ".reqntid 32").launch(
        1, 32, [np.zeros(64, np.uint32), 64, 1, 1], device="cpu", on_error="collect"
    )
    assert [one.code for one in found.diagnostics] == ["data-race"]


@needs_solver
def test_a_form_that_does_not_hold_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of registers in a loop are guesses: a wrong one is found by induction."""
    body = "mov.u32 %r1, 0;\nloop: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %n; @%p1 bra loop;"
    body += " and.b32 %r2, %r1, 31; mov.u32 %r3, tile; mad.lo.u32 %r3, %r2, 4, %r3; ld.shared.u32 %r4, [%r3];"
    execution = import_module("ptxlab.prove.execution.execution")
    right = execution.closed_form
    assert ptxlab.prove(kernel(body), replays=False).level == "proved"
    monkeypatch.setattr(execution, "closed_form", lambda *given: None if right(*given) is None else given[1])
    found = ptxlab.prove(kernel(body), replays=False)
    assert [gap.kind for gap in found.gaps] == ["loop"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m <= len(x)", "`m` in `m <= len(x)` is not an integer parameter; expected one of `n`"),
        ("n <= len(y)", "`y` in `n <= len(y)` is not an array; expected one of `x`"),
        ("n +", "`n +` is not an expression"),
        ("n + 1", "`n + 1` in `n + 1` is not a condition"),
    ],
)
def test_contracts_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ContractError, match=r"^prove: ") as raised:
        ptxlab.prove(kernel(""), assume=text)
    assert message in str(raised.value)


@needs_solver
@pytest.mark.parametrize(
    ("assume", "message"),
    [
        (["n >= 512", "grid.x == 1", "n < 100"], "`n >= 512` and `n < 100`, with integers from 0 to 2^31 - 1"),
        ("n < 0", "`n < 0`, with integers from 0 to 2^31 - 1"),
        ("grid.x == 0", "`grid.x == 0`"),
        ("block.x == 32", "`block.x == 32`"),
        ("n * n == 3", "`n * n == 3`, with integers from 0 to 2^31 - 1"),
        (["len(x) == n", "len(x) > n"], "`len(x) == n` and `len(x) > n`, with integers from 0 to 2^31 - 1"),
    ],
)
def test_of_no_launch_nothing_is_proved(assume: str | list[str], message: str) -> None:
    with pytest.raises(ContractError) as raised:
        ptxlab.prove(kernel("ld.global.u32 %r1, [%x];"), assume=assume)
    assert str(raised.value) == f"prove: no launch meets {message}"


@needs_solver
@pytest.mark.parametrize("assume", ["grid.y == 2", "grid.z == 2", "grid.x == 16", "n >= 512", "grid.x >= 5"])
def test_launches_as_large_as_is_assumed(assume: str) -> None:
    """Blocks of any dimension race; the launch that shows it is as large as it must be."""
    number = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; add.u32 %r1, %r1, %r2; mov.u32 %r2, %ctaid.z;"
    body = f"{number} add.u32 %r1, %r1, %r2; setp.eq.u32 %p1, %t, 0; @%p1 st.global.u32 [%x], %r1;"
    found = ptxlab.prove(kernel(body), assume=assume, bounds=False)
    assert found.level == "counterexample", str(found)


@needs_solver
def test_command_line(tmp_path: Path) -> None:
    file = KERNELS / "vector_addition" / "vector_addition.ptx"
    given = ["prove", str(file), "--entry", "vector_addition", "--block", "256"]
    assumed = [word for name in "abc" for word in ("--assume", f"n <= len({name})")]
    found = CliRunner().invoke(command_line, [*given, *assumed, "--explain"])
    assert found.exit_code == 0, found.output
    assert "`vector_addition` is proved" in found.output
    assert "line 45: c in bounds" in found.output
    found = CliRunner().invoke(command_line, [*given, "--format", "json"])
    assert found.exit_code == 2
    said = json.loads(found.output)
    assert said["level"] == "not-proved"
    assert {tuple(gap["lines"]) for gap in said["gaps"]} == {(42,), (43,), (45,)}
    found = CliRunner().invoke(command_line, [*given, "--format", "sarif"])
    results = json.loads(found.output)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results]
    assert places == [42, 43, 45]
    example = ["--grid", "4", *(word for one in (*["f32[1000]"] * 3, "1000") for word in ("--arg", one))]
    found = CliRunner().invoke(command_line, [*given, *example])
    assert found.exit_code == 0, found.output
    assert found.output.count(") == n (from the example launch)") == 3
    found = CliRunner().invoke(command_line, [*given, "--assume", "oops"])
    assert found.exit_code == 2
    assert "`oops`" in found.output
    found = CliRunner().invoke(command_line, [*given, "--set", "x=u32=1"])
    assert found.exit_code == 2
    assert "a proof does not follow `--set` yet" in found.output


@needs_solver
@pytest.mark.parametrize("end", ["", "bra end;", "@%p1 bra end; cp.async.wait_all;"])
def test_a_kernel_may_end_without_ret(end: str) -> None:
    """A copy must be complete there, too."""
    body = f"""mad.wide.u32 %d1, %t, 4, %x; mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1; setp.lt.u32 %p1, %t, 4;
        cp.async.ca.shared.global [%r1], [%d1], 4; {end}\nend:"""
    text = kernel(body).module.source.text.replace("\nret;", "")
    for change, level in (("", "not-proved"), ("cp.async.wait_all;", "proved")):
        changed = ptxlab.parse(text.replace("[%d1], 4;", f"[%d1], 4; {change}"))["k"]
        assert ptxlab.prove(changed, assume="len(x) == 64", replays=False).level == level


@needs_solver
def test_lines_are_those_of_the_source() -> None:
    text = kernel(".loc 1 7 3\nld.global.u32 %r1, [%x];").module.source.text
    module = ptxlab.parse(f'{text}.file 1 "k.cu"\n', "k.ptx")
    module.origins["k.cu"] = Source("k.cu", "\n" * 9)
    found = ptxlab.prove(module["k"])
    assert [gap.lines for gap in found.gaps] == [(7,)]


@needs_solver
def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise ArgumentError("argument 1: KeyboardInterrupt: ")

    monkeypatch.setattr(import_module("ptxlab.prove.answers.proving").Proving, "verdict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ptxlab.prove(kernel(""))


@needs_solver
def test_no_question_after_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a limit in seconds, each question gets what is left; then none is asked."""
    given: list[float] = []
    make = solver.Clock.solver

    def noted(clock: solver.Clock, milliseconds: int) -> Any:
        made = make(clock, milliseconds)
        given.append(clock.left)
        return made

    monkeypatch.setattr(solver.Clock, "solver", noted)
    tested = kernel("mad.wide.u32 %d1, %t, %n, %x;\nst.global.u32 [%d1], %t;")
    assert ptxlab.prove(tested, replays=False, timeout=5).gaps
    assert given
    assert max(given) <= 5
    given.clear()
    found = ptxlab.prove(tested, replays=False, timeout=1e-9)
    assert not given
    assert "the time for the proof is over" in str(found)


SWIZZLED = """mov.u32 %r1, %ctaid.x;
div.s32 %r2, %r1, %n;
rem.s32 %r3, %r1, %n;
mad.lo.s32 %r4, %r2, %n, %r3;
mad.wide.u32 %d1, %r4, 4, %x;
setp.eq.u32 %p1, %t, 0;
@%p1 st.global.u32 [%d1], %r1;
"""


@needs_solver
@pytest.mark.parametrize(
    ("change", "least", "level"),
    [
        (("", ""), "n >= 1", "proved"),
        (("", ""), "n >= 0", "counterexample"),  # a division by 0
        (("mad.lo.s32 %r4, %r2, %n, %r3;", "mov.u32 %r4, %r2;"), "n >= 1", "counterexample"),
    ],
)
def test_a_quotient_by_a_variable(change: tuple[str, str], least: str, level: str) -> None:
    found = ptxlab.prove(kernel(SWIZZLED.replace(*change)), assume=["len(x) == grid.x", least])
    assert found.level == level, str(found)


@needs_solver
def test_an_example_is_run_first() -> None:
    body = "mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x;\nld.global.u32 %r2, [%d1];"
    found = ptxlab.prove(kernel(body), [np.zeros(63, np.uint32), 63])
    assert found.level == "counterexample"
    assert found.counterexample is not None
    assert found.counterexample.lengths == {"x": 63}


def test_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "z3", None)
    with pytest.raises(MissingSolverError, match="pip install --only-binary z3-solver 'ptxlab\\[prove\\]'"):
        ptxlab.prove(kernel(""))
