"""How a hang is reported; what is one, and what is not, are the files of `tests/cases/hangs`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.report import Diagnostic, render
from tests.emulate.launching import problem


def labels(found: Diagnostic) -> dict[str, str]:
    """What is said of each line."""
    said = {}
    for label in found.labels:
        row = label.span.source.position(label.span.start)[0]
        said[label.span.source.text.splitlines()[row - 1].strip()] = label.text
    return said


def test_barriers_that_wait_for_each_other() -> None:
    wrong = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;\nret;"
    found = problem(wrong, grid=3, block=64, blocks=[(2, 0, 0)])
    assert labels(found) == {
        "@%p1 bar.sync 1, 64;": "warp 0 of block (2,0,0) waits here at barrier 1",
        "@!%p1 bar.sync 2, 64;": "warp 1 waits here at barrier 2: 32 of 64 threads have arrived",
    }


def test_a_phase_that_misses_an_arrival() -> None:
    body = """
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [full], 2;
    bar.sync 0;
    @%p1 mbarrier.arrive.shared.b64 %rd1, [full];
    again:
    mbarrier.test_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra again;
    ret;
    """
    found = problem(body, block=64)
    assert render([found]).rstrip("\n").splitlines() == [
        "error[hang]: 64 threads wait on an mbarrier phase that never completes",
        "  --> k.ptx:17:5",
        "   |",
        "13 |     @%p1 mbarrier.init.shared.b64 [full], 2;",
        "   |     ---------------------------------------- expects 2 arrivals a phase",
        "  ...",
        "17 |     mbarrier.test_wait.parity.shared.b64 %p2, [full], 0;",
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ "
        "warps 0 and 1 of block (0,0,0) wait here for phase 0 of the mbarrier `full`",
        "   |",
        "   = note: phase 0: 1 of 2 arrivals (line 15, thread 0), 0 bytes pending; "
        "no running thread or copy can arrive",
        "   = help: initialize the mbarrier with 1, or let 1 more arrive",
    ]  # fmt: skip


def test_an_endless_loop_is_named() -> None:
    found = problem(
        "mov.u32 %r1, 0;\nagain:\nadd.u32 %r1, %r1, 1;\nxor.b32 %r1, %r1, 5;\nbra again;", block=64, timeout=0.2
    )
    assert found.code == "timeout"
    assert found.message == "the kernel was stopped after 0.2 seconds"
    assert labels(found) == {
        "bra again;": "thread (0,0,0) of block (0,0,0) jumps back here, and 63 others of its block do",
        "add.u32 %r1, %r1, 1;": "the loop starts here",
    }
    assert found.notes == ("0 of 1 blocks had ended",)


def test_an_elected_lane_tries_with_a_time_limit() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.shared .align 8 .b64 full;
.entry k() {{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @!%p1 bra after;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], {bytes};
again:
    mbarrier.try_wait.parity.shared.b64 %p2, [full], 0, 1000;
    @!%p2 bra again;
after:
    bar.warp.sync -1;
    ret;
}}
"""
    how: dict[str, Any] = {"device": "cpu", "on_error": "collect", "timeout": 20}
    assert ptxlab.parse(text.format(bytes=0))["k"].launch(1, 32, **how).diagnostics == []
    (found,) = ptxlab.parse(text.format(bytes=64), name="k.ptx")["k"].launch(1, 32, **how).diagnostics
    assert render([found]).rstrip("\n").splitlines() == [
        "error[hang]: a thread waits on an mbarrier phase that never completes",
        "  --> k.ptx:15:5",
        "   |",
        "13 |     mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;",
        "   |     --------------------------------------------------- expects 64 bytes in this phase",
        "14 | again:",
        "15 |     mbarrier.try_wait.parity.shared.b64 %p2, [full], 0, 1000;",
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ "
        "thread 0 of block (0,0,0) waits here for phase 0 of the mbarrier `full`",
        "  ...",
        "18 |     bar.warp.sync -1;",
        "   |     ----------------- lanes 1 to 31 of warp 0 wait here for lanes 0 to 31",
        "   |",
        "   = note: phase 0: 1 of 1 arrivals (line 13, thread 0), 0 of 64 bytes; no running thread or copy can arrive",
        "   = help: start a copy of that many bytes that signals this mbarrier, or expect no bytes",
    ]


LEDGER = """.version 8.0
.target sm_90
.address_size 64
.shared .align 8 .b64 fulls[2];
.shared .align 8 .b64 empty;
.entry k() {
.reg .b32 %r<2>;
.reg .pred %p<4>;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [fulls], 32;
@%p1 mbarrier.init.shared.b64 [fulls+8], 2;
@%p1 mbarrier.init.shared.b64 [empty], 1;
bar.sync 0;
setp.ge.u32 %p3, %r1, 32;
@%p3 bra consumer;
mbarrier.arrive.shared.b64 _, [fulls];
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [fulls+8], 64;
producer:
mbarrier.try_wait.parity.shared.b64 %p2, [empty], 0;
@!%p2 bra producer;
ret;
consumer:
mbarrier.try_wait.parity.shared.b64 %p2, [fulls], 0;
@!%p2 bra consumer;
second:
mbarrier.try_wait.parity.shared.b64 %p2, [fulls+8], 0;
@!%p2 bra second;
ret;
}
"""


def test_all_mbarriers_of_a_hang_are_listed() -> None:
    (found,) = ptxlab.parse(LEDGER)["k"].launch(1, 64, device="cpu", on_error="collect", timeout=20).diagnostics
    assert found.notes[-1].splitlines() == [
        "mbarriers in use:",
        "`fulls`+8 (initialized on line 12): phase 0: 1 of 2 arrivals (line 18: thread 0); 0 of 64 bytes; "
        "warp 1 waits for parity 0 (line 27)",
        "`empty` (initialized on line 13): phase 0: 0 of 1 arrivals; warp 0 waits for parity 0 (line 20)",
    ]
    listed = {entry["mbarrier"]: entry for entry in found.facts["mbarriers"]}
    assert list(listed) == ["fulls+8", "empty", "fulls"]
    first, second = listed["fulls"]["phases"]
    assert first == {
        "phase": 0, "is_complete": True, "arrivals": 32,
        "by": [{"at": "line 17", "threads": "warp 0", "arrivals": 32}],
        "bytes": 0, "expected_bytes": 0, "waits_passed": 32,
    }  # fmt: skip
    assert (second["phase"], second["is_complete"], second["by"]) == (1, False, [])
    assert json.loads(render([found], "json"))[0]["facts"] == found.facts


def test_a_wait_with_the_parity_of_the_next_phase() -> None:
    late = """
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @%p1 mbarrier.arrive.shared.b64 %rd1, [full];
    bar.sync 0;
    again:
    mbarrier.test_wait.parity.shared.b64 %p2, [full], 1;
    @!%p2 bra again;
    ret;
    """
    found = problem(late, block=32)
    assert found.notes[0].startswith("phase 1: 0 of 1 arrivals")
    assert found.helps[0].text == "wait for parity 0: phase 0 is complete, and no wait has seen it"


def test_a_race_comes_before_the_hang_that_follows_from_it() -> None:
    kernel = ptxlab.load(Path(__file__).parents[1] / "cases" / "hangs" / "lost_update.ptx")["k"]
    result = kernel.launch(1, 64, [np.zeros(1, np.uint32)], on_error="collect", timeout=20)
    assert [found.code for found in result.diagnostics] == ["data-race", "hang"]
