"""Threads that wait for what never happens: the wrong kernel is explained, the right one beside it ends."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Diagnostic, render
from tests.emulate import launching
from tests.emulate.launching import launch, line_of, problem

PARTS = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, {};\n"


silent = partial(launching.silent, launching.findings)


def labels(found: Diagnostic) -> dict[str, str]:
    """What is said of each line."""
    said = {}
    for label in found.labels:
        row = label.span.source.position(label.span.start)[0]
        said[label.span.source.text.splitlines()[row - 1].strip()] = label.text
    return said


# Barriers of the block.


def test_a_barrier_in_a_branch_of_the_warp() -> None:
    wrong = PARTS.format(16) + "@%p1 bra low;\nbar.sync 0;\nbra end;\nlow:\nbar.sync 0, 32;\nend:\nret;"
    wrong = wrong.replace("bar.sync 0;", "bar.sync 0, 32;  // high")
    found = problem(wrong, block=32)
    assert found.code == "barrier-divergence"
    assert "`bar.sync` needs the whole warp" in found.message
    assert labels(found) == {
        "bar.sync 0, 32;  // high": "thread 16 of block (0,0,0) waits here at barrier 0",
        "bar.sync 0, 32;": "lanes 0 to 15 of warp 0 wait here at barrier 0",
    }
    silent(wrong.replace("bar.sync", "barrier.sync"), block=32)
    silent(wrong.replace("16;", "32;"), block=64 - 32)


def test_whole_warps_may_wait_at_different_barriers() -> None:
    right = PARTS.format(32) + "@%p1 bra low;\nbar.sync 0;\nbra end;\nlow:\nbar.sync 0;\nend:\nret;"
    silent(right, block=64)


def test_lanes_that_have_exited_are_not_waited_for() -> None:
    silent(PARTS.format(40) + "@!%p1 exit;\nbar.sync 0;\nret;", block=128)


def test_a_barrier_that_too_few_come_to() -> None:
    wrong = PARTS.format(96) + "@%p1 bar.sync 1, 128;\nret;"
    found = problem(wrong, block=128)
    assert found.code == "hang"
    assert found.message == "96 threads wait at barrier 1 for threads that never arrive"
    assert found.labels[0].text == "warps 0 to 2 of block (0,0,0) wait here at barrier 1"
    assert found.notes == ("96 of 128 threads have arrived at barrier 1", "warp 3 has exited")
    silent(wrong.replace("1, 128", "1, 96"), block=128)


def test_barriers_that_wait_for_each_other() -> None:
    wrong = PARTS.format(32) + "@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;\nret;"
    found = problem(wrong, grid=3, block=64, blocks=[(2, 0, 0)])
    assert labels(found) == {
        "@%p1 bar.sync 1, 64;": "warp 0 of block (2,0,0) waits here at barrier 1",
        "@!%p1 bar.sync 2, 64;": "warp 1 waits here at barrier 2",
    }
    silent(wrong.replace("sync 2", "sync 1"), block=64)
    silent(wrong.replace("sync 2", "arrive 1") + "", block=64)


def test_a_barrier_number_and_a_count_that_do_not_exist() -> None:
    assert "barrier 16 does not exist" in problem("mov.u32 %r1, 16;\nbarrier.sync %r1;\nret;").message
    assert "not a multiple of the warp size" in problem("mov.u32 %r1, 33;\nbarrier.sync 0, %r1;\nret;").message


# Lanes of a warp.


def test_lanes_that_never_come() -> None:
    wrong = (
        PARTS.format(16) + "@!%p1 bra high;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;\nhigh:\nbar.sync 0;\nret;"
    )
    found = problem(wrong, block=32)
    assert found.code == "barrier-divergence"
    assert found.message == "lanes of one warp wait in `shfl.sync.idx.b32` for lanes that never execute it"
    assert labels(found) == {
        "shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;": "lanes 0 to 15 of warp 0 of block (0,0,0) "
        "wait here for lanes 0 to 31",
        "bar.sync 0;": "lanes 16 to 31 of warp 0 wait here at barrier 0",
    }  # fmt: skip
    silent(wrong.replace("0xffffffff", "0x0000ffff"), block=32)


def test_masks_that_differ() -> None:
    wrong = (
        PARTS.format(16) + "selp.b32 %r3, 0xffffffff, 0xfffffffe, %p1;\nor.b32 %r3, %r3, 0;\nbar.warp.sync %r3;\nret;"
    )
    found = problem(wrong, block=32)
    assert found.code == "barrier-divergence"
    assert "wait here for lanes 1 to 31" in found.labels[1].text
    silent(wrong.replace("0xfffffffe", "0xffffffff"), block=32)


def test_a_lane_that_its_mask_does_not_name() -> None:
    wrong = "mov.u32 %r1, %laneid;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0x1;\nret;"
    found = problem(wrong, block=32)
    assert found.code == "bad-membermask"
    assert found.message == "the mask 0x00000001 of lane 1 does not include the lane itself"
    silent(wrong.replace("0x1;", "-1;"), block=32)


# mbarriers.


PHASE = """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [full], {count};
bar.sync 0;
@%p1 {arrive}
again:
mbarrier.{wait}.shared.b64 %p2, [full], {parity};
@!%p2 bra again;
ret;
"""


def phase(
    count: int = 1,
    arrive: str = "mbarrier.arrive.shared.b64 %rd1, [full];",
    parity: int = 0,
    wait: str = "test_wait.parity",
) -> str:
    return PHASE.format(count=count, arrive=arrive, parity=parity, wait=wait)


def test_a_phase_that_misses_an_arrival() -> None:
    silent(phase(), block=64)
    found = problem(phase(count=2), block=64)
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


def test_a_phase_without_an_arrival() -> None:
    again = phase().replace(
        "ret;", "second:\nmbarrier.test_wait.parity.shared.b64 %p2, [full], 1;\n@!%p2 bra second;\nret;"
    )
    found = problem(again, block=32)
    assert found.code == "hang"
    assert found.labels[0].text == "warp 0 of block (0,0,0) waits here for phase 1 of the mbarrier `full`"
    assert found.notes[0].startswith("phase 1: 0 of 1 arrivals, 0 bytes pending")
    silent(again.replace("second:", "bar.sync 0;\n@%p1 mbarrier.arrive.shared.b64 %rd1, [full];\nsecond:"), block=32)


def test_a_wait_for_the_phase_before_the_first_is_over_at_once() -> None:
    silent(phase(parity=1, arrive="nanosleep.u32 1;"), block=32)


def test_an_mbarrier_that_is_not_initialised() -> None:
    wrong = phase().replace("@%p1 mbarrier.init.shared.b64 [full], 1;", "")
    found = problem(wrong, block=32)
    assert found.code == "bad-barrier"
    assert found.message == "the mbarrier `full` is not initialised"


# Loops without end.


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


LOCK = """
.shared .align 4 .b32 lock;
again:
atom.shared.cas.b32 %r1, [lock], 0, 1;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra again;
{inside}
st.volatile.shared.u32 [lock], 0;
ret;
"""


def test_a_lock_that_is_held_while_waiting_for_lanes() -> None:
    silent(LOCK.format(inside=""), block=64, checks=False)
    found = problem(LOCK.format(inside="bar.warp.sync -1;"), block=32, checks=False)
    assert found.code == "hang"
    assert found.message == "31 threads wait in a loop for a change that never comes"
    assert labels(found) == {
        "atom.shared.cas.b32 %r1, [lock], 0, 1;": "lanes 1 to 31 of warp 0 of block (0,0,0) "
        "poll bytes 0..4 of `lock` here",
        "bar.warp.sync -1;": "thread 0 waits here for lanes 0 to 31",
    }
    assert found.notes == ("no running thread or copy can change memory",)


@pytest.mark.parametrize(
    "collective", ["bar.warp.sync -1;", "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;", "activemask.b32 %r2;"]
)
def test_warps_that_synchronize_in_a_loop_let_others_run(collective: str) -> None:
    """One warp waits for what the other writes, and never stops meanwhile."""
    body = f"""
    .shared .align 4 .b32 flag;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    mov.u32 %r3, 1;
    @%p1 st.volatile.shared.u32 [flag], %r3;
    @%p1 ret;
    again:
    {collective}
    ld.volatile.shared.u32 %r4, [flag];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra again;
    ret;
    """
    assert launch(body, block=64, timeout=5, checks=False).diagnostics == []
    found = problem(body.replace("mov.u32 %r3, 1;", "mov.u32 %r3, 0;"), block=64, checks=False)
    assert found.code == "hang"
    assert line_of(found) == "ld.volatile.shared.u32 %r4, [flag];"
    assert found.notes[1] == "warp 1 has exited"


def test_blocks_that_wait_for_each_other() -> None:
    body = """
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %nctaid.x;
    atom.global.add.u32 %r2, [%rd1], 1;
    again:
    ld.volatile.global.u32 %r3, [%rd1];
    bar.warp.sync -1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra again;
    ret;
    """
    assert launch(body, ".u64 p", [np.zeros(1, "u4")], grid=200, block=32, checks=False).diagnostics == []
    found = problem(body.replace("%r1, %nctaid.x", "%r1, -1"), ".u64 p", [np.zeros(1, "u4")], grid=8, block=32,
                    checks=False)  # fmt: skip
    assert found.code == "hang"
    assert line_of(found) == "ld.volatile.global.u32 %r3, [%rd1];"
    assert found.labels[0].text == "warp 0 of block (0,0,0) polls bytes 0..4 of argument 0 (`p`) here"
    assert found.notes[0].endswith("no running thread or copy can change memory; 0 of 8 blocks have ended")


# Elected lanes: one lane waits, the others wait for it.

TOGETHER = [
    "bar.warp.sync -1;",
    "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;",
    "vote.sync.any.pred %p3, %p1, -1;",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r2, %r2, %r2, %r2}, {%r2, %r2}, "
    "{%f0, %f1, %f2, %f3};",
    "bar.sync 0;",
    "barrier.sync 1, 64;",
]
ELECTED = """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [full], {count};
bar.sync 0;
@!%p1 bra after;
mbarrier.arrive.shared.b64 %rd1, [full];
again:
mbarrier.{wait};
@!%p2 bra again;
after:
{together}
ret;
"""


@pytest.mark.parametrize("together", TOGETHER)
@pytest.mark.parametrize(
    "wait", ["test_wait.parity.shared.b64 %p2, [full], 0", "test_wait.shared.b64 %p2, [full], %rd1"]
)
def test_an_elected_lane_waits_for_a_phase(together: str, wait: str) -> None:
    silent(ELECTED.format(count=1, wait=wait, together=together), block=64)
    for seed in range(2):
        found = problem(ELECTED.format(count=2, wait=wait, together=together), block=64, seed=seed)
        assert found.code == "hang"
        assert line_of(found) == f"mbarrier.{wait};"
        assert found.message == "a thread waits on an mbarrier phase that never completes"
        assert found.labels[0].text == "thread 0 of block (0,0,0) waits here for phase 0 of the mbarrier `full`"
        assert "wait here" in labels(found)[together]
        assert found.notes[0] == (
            "phase 0: 1 of 2 arrivals (line 16, thread 0), 0 bytes pending; no running thread or copy can arrive"
        )


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


MANY = """
.shared .align 8 .b8 bars[800];
mov.u32 %r1, 0;
mov.u32 %r2, bars;
init:
mbarrier.init.shared.b64 [%r2], 1;
add.u32 %r2, %r2, 8;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 100;
@%p1 bra init;
mov.u32 %r1, 0;
mov.u32 %r2, bars;
next:
setp.eq.u32 %p1, %r1, {without};
@!%p1 mbarrier.arrive.shared.b64 %rd1, [%r2];
wait:
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;
@!%p2 bra wait;
add.u32 %r2, %r2, 8;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 100;
@%p1 bra next;
ret;
"""


@pytest.mark.parametrize("without", [3, 67, 99])
def test_more_mbarriers_than_are_remembered(without: int) -> None:
    silent(MANY.format(without=100))
    found = problem(MANY.format(without=without))
    assert found.code == "hang"
    assert found.labels[0].text.endswith(f"the mbarrier at byte {8 * without} of `bars`")
    assert found.notes[0].startswith("phase 0: 0 of 1 arrivals, 0 bytes pending; ")
