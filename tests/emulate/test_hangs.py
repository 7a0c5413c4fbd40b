"""How a hang is reported; what is one, and what is not, are the files of `tests/cases/hangs`."""

from typing import Any

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
        "@!%p1 bar.sync 2, 64;": "warp 1 waits here at barrier 2",
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
        "   = help: initialise the mbarrier with 1, or let 1 more arrive",
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
