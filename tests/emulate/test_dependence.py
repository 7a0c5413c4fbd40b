"""`result.depends_on`: what makes the results of a kernel differ, and where."""

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.device.dependence import Dependence

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.entry k (.param .u64 words, .param .u64 out)
{
    .reg .pred %p;
    .reg .f32 %f1;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b32 tile[64];
    ld.param.u64 %rd1, [words];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd2;
"""
BODIES = {
    "independent": "st.global.u32 [%rd2], %r1;",
    "integer sum": "red.global.add.u32 [%rd1], %r1;",
    "float sum": "cvt.rn.f32.u32 %f1, %r1;\n mul.f32 %f1, %f1, 0f3DCCCCCD;\n red.global.add.f32 [%rd1], %f1;",
    "ticket": "atom.global.add.u32 %r2, [%rd1], 1;\n st.global.u32 [%rd2], %r2;",
    "relaxed": "st.relaxed.gpu.global.u32 [%rd1], %r1;\n ld.relaxed.gpu.global.u32 %r2, [%rd1];\n"
    " st.global.u32 [%rd2], %r2;",
    "race": "st.global.u32 [%rd1], %r1;",
    "unwritten": "ld.shared.u32 %r2, [tile];\n st.global.u32 [%rd2], %r2;",
}


def depends_on(body: str, **options: int) -> Dependence:
    kernel = ptxlab.parse(f"{HEAD}{body}\n ret;\n}}\n")["k"]
    args = [np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
    return kernel.launch(1, 64, args, on_error="collect", **options).depends_on


@pytest.mark.parametrize("name", ["independent", "integer sum"])
def test_nothing(name: str) -> None:
    found = depends_on(BODIES[name], seeds=6)
    assert not found
    assert str(found) == "nothing that 6 schedules show"


@pytest.mark.parametrize(
    ("name", "output", "causes"),
    [
        ("float sum", "words", [("atomics", (18,))]),
        ("ticket", "out", [("atomics", (16,))]),
        ("relaxed", "words", [("schedule", ())]),
    ],
)
def test_schedules_give_other_results(name: str, output: str, causes: list[tuple[str, tuple[int, ...]]]) -> None:
    found = depends_on(BODIES[name], seeds=6)
    assert [(cause.kind, cause.lines) for cause in found.causes] == causes
    assert found.outputs[0].name == output
    assert found.outputs[0].elements <= found.outputs[0].total


def test_the_text_names_what_differs() -> None:
    found = depends_on(BODIES["ticket"], seeds=[0, 2])
    elements = found.outputs[0].elements
    differ = f"`out`: {elements} of 64 elements differ between seeds 0 and 2"
    assert str(found) == f"the order of atomic operations (line 16); {differ}"


@pytest.mark.parametrize(("name", "kind"), [("race", "race"), ("unwritten", "uninitialized memory")])
def test_findings_are_causes_also_of_one_schedule(name: str, kind: str) -> None:
    assert [cause.kind for cause in depends_on(BODIES[name]).causes] == [kind]


def test_one_schedule_shows_little() -> None:
    assert str(depends_on(BODIES["ticket"])) == "not known: use `seeds=`"


def test_lockstep() -> None:
    case = Path(__file__).parents[1] / "cases" / "order" / "lockstep_reduction.ptx"
    out = np.zeros(1, np.uint32)
    found = ptxlab.load(case)["k"].launch(1, 32, [out], seeds=4).depends_on
    assert [cause.kind for cause in found.causes] == ["lockstep"]
    assert [(output.name, output.elements) for output in found.outputs] == [("out", 1)]
    assert out[0] == 32
