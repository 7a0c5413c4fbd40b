"""The detectors as such: switched off, out of memory, many findings, and findings beside a fault."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.host import running
from tests.emulate.ordering import HEAD, run

RACE = "st.shared.u32 [tile], %t;"
READ = "ld.shared.u32 %r1, [tile]; st.global.u32 [%out], %r1;\n"


def launch(body: str, **how: Any) -> list[tuple[str, str]]:
    kernel = ptxlab.parse(f"{HEAD}{body}\n    ret;\n}}\n", name="k.ptx")["k"]
    arrays = [np.zeros(4096, np.uint32), np.zeros(64, np.uint32)]
    given: dict[str, Any] = {"grid": (1,), "block": (64,), "device": "cpu", "on_error": "collect"} | how
    return [(found.level, found.code) for found in kernel.launch(args=arrays, **given).diagnostics]


def test_without_checks_nothing_is_looked_for() -> None:
    assert launch(RACE) == [("error", "data-race")]
    assert launch(RACE, detectors=False) == []
    assert launch(READ, detectors=False) == []


def test_one_detector_without_the_other() -> None:
    both = READ.replace("tile", "tile+64") + RACE
    assert {code for _, code in launch(both)} == {"data-race", "uninitialized-read"}
    assert {code for _, code in launch(both, detectors="data-race")} == {"data-race"}
    assert {code for _, code in launch(both, detectors=["uninitialized-read"])} == {"uninitialized-read"}
    with pytest.raises(ValueError, match="the detectors that can be chosen are data-race, "):
        launch(both, detectors="hang")


def test_a_race_fails_the_launch_and_a_warning_does_not() -> None:
    with pytest.raises(ptxlab.KernelError, match="two threads write the same shared memory"):
        launch(RACE, on_error="raise")
    assert launch(READ, on_error="raise") == [("warning", "uninitialized-read")]


def test_the_kernel_runs_to_its_end_after_a_race() -> None:
    kernel = ptxlab.parse(f"{HEAD}{RACE}\n st.global.u32 [%out], 5;\n ret;\n}}\n")["k"]
    out = np.zeros(4096, np.uint32)
    kernel.launch((1,), (64,), [out, np.zeros(64, np.uint32)], device="cpu", on_error="collect")
    assert out[0] == 5


def test_too_little_memory_to_remember_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "mad.wide.u32 %rd1, %t, 256, %out;\n st.global.u32 [%rd1], %t;"
    assert launch(body) == []
    monkeypatch.setattr(running, "available", lambda: 1 << 40)
    assert launch(body) == []
    monkeypatch.setattr(running, "available", lambda: 160_000)
    assert launch(body) == [("warning", "incomplete-check")]


def test_each_pair_of_instructions_is_reported_once() -> None:
    assert len(run(RACE, grid=5)) == 1
    assert len(run(f"{RACE}\n bar.sync 0;\n {RACE}")) == 2
    assert len(run("\n bar.sync 0;\n".join([RACE] * 50))) == 20


def test_a_race_is_reported_beside_the_fault_it_may_explain() -> None:
    found = launch(f"{RACE}\n setp.eq.u32 %p1, %t, 63;\n @%p1 trap;")
    assert found == [("error", "trap"), ("error", "data-race")]


def test_blocks_that_end_leave_no_trace() -> None:
    body = "st.shared.u32 [%own], %b;\n bar.sync 0;\n ld.shared.u32 %r1, [%far];"
    assert run(body, grid=200) == []


# `word` is read before anything writes it: a warning, as hardware gives some value.
WARNED = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .shared .b32 word;
    ld.param.u64 %rd1, [out];
    ld.shared.u32 %r1, [word];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_strict_launches_raise_for_warnings_too() -> None:
    kernel = ptxlab.parse(WARNED)["k"]
    out = np.zeros(1, np.uint32)
    (found,) = kernel.launch(1, 1, [out]).diagnostics
    assert (found.level, found.code) == ("warning", "uninitialized-read")
    with pytest.raises(ptxlab.KernelError, match="uninitialized-read"):
        kernel.launch(1, 1, [out], on_error="strict")
    with pytest.raises(ptxlab.KernelError, match="uninitialized-read"):
        kernel.launch(1, 1, [out], seeds=2, on_error="strict")
    kernel.launch(1, 1, [out], detectors=False, on_error="strict")


def test_strict_launches_raise_for_warnings_of_the_check() -> None:
    text = WARNED.replace("ld.shared.u32 %r1, [word];", "").replace(".reg .b32 %r<2>", ".reg .b32 %r<3>")
    kernel = ptxlab.parse(text)["k"]
    out = np.zeros(1, np.uint32)
    assert kernel.launch(1, 1, [out]).diagnostics == []
    with pytest.raises(ptxlab.PtxError, match="unwritten-register"):
        kernel.launch(1, 1, [out], on_error="strict")


def test_there_is_no_other_way_to_treat_errors() -> None:
    with pytest.raises(ValueError, match="expected one of 'raise', 'strict', 'collect'"):
        ptxlab.parse(WARNED)["k"].launch(1, 1, [np.zeros(1, np.uint32)], on_error="ignore")


def test_a_result_and_a_module_say_what_they_are() -> None:
    module = ptxlab.parse(WARNED, name="k.ptx")
    assert repr(module) == "<module k.ptx: PTX 8.0 for sm_80, kernels: k>"
    result = module["k"].launch(1, 1, [np.zeros(1, np.uint32)])
    assert repr(result).startswith("<result: 1 warning in the run, 4 instructions in ")
