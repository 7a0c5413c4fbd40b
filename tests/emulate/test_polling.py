"""Threads that ask again and again: a loop that can end stays alone, one that cannot is a hang, whatever it does."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.host import needs, running
from ptxlab.report import Diagnostic
from tests.emulate import launching
from tests.emulate.launching import line_of, problem

silent = partial(launching.silent, launching.findings)


def hang(body: str, *given: Any, **how: Any) -> Diagnostic:
    found = problem(body, *given, **how)
    assert found.code == "hang", found.message
    return found


# For other warps and other blocks.

WARPS = """
.shared .align 4 .b32 flag;
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 32;
@%p1 st.volatile.shared.u32 [flag], 0;
bar.sync 0;
@!%p1 bra second;
first:
nanosleep.u32 {sleep};
ld.relaxed.cta.shared.u32 %r2, [flag];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra first;
ret;
second:
mov.u32 %r3, 0;
work:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 1000000;
@%p3 bra work;
st.relaxed.cta.shared.u32 [flag], {value};
ret;
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_flag_of_another_warp(seed: int) -> None:
    silent(WARPS.format(sleep=100, value=1), block=64, seed=seed)
    found = hang(WARPS.format(sleep=100, value=0), block=64, seed=seed)
    assert line_of(found) == "ld.relaxed.cta.shared.u32 %r2, [flag];"
    assert found.labels[0].text == "warp 0 of block (0,0,0) polls bytes 0..4 of `flag` here"
    assert found.notes[1] == "warp 1 has exited"


BLOCKS = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra second;
first:
nanosleep.u32 20;
{together}
ld.relaxed.gpu.global.u32 %r2, [%rd1];
setp.ne.u32 %p2, %r2, 3;
@%p2 bra first;
ret;
second:
mov.u32 %r3, 0;
work:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 100000;
@%p3 bra work;
red.relaxed.gpu.global.add.u32 [%rd1], 1;
ret;
"""


@pytest.mark.parametrize("detectors", [True, False])
@pytest.mark.parametrize("together", ["", "bar.sync 0;"])
def test_a_flag_of_other_blocks(together: str, detectors: bool) -> None:
    """The first block waits for later ones, even if it comes to a barrier meanwhile."""
    body = BLOCKS.format(together=together)
    silent(body, ".u64 p", [np.zeros(1, "u4")], grid=4, detectors=detectors)
    found = hang(body, ".u64 p", [np.zeros(1, "u4")], grid=3, detectors=detectors)
    assert line_of(found) == "ld.relaxed.gpu.global.u32 %r2, [%rd1];"
    assert found.notes[0].endswith("2 of 3 blocks have ended")


@pytest.mark.parametrize("time", range(5))
def test_a_flag_of_a_block_on_another_core(time: int) -> None:
    """Weak accesses, which race: whether the flag is seen is not promised, but that does not make it a hang."""
    body = BLOCKS.format(together="").replace(".relaxed.gpu", "").replace("red.global.add.u32", "st.global.u32")
    body = body.replace("%r2, 3", "%r2, 1")
    silent(body, ".u64 p", [np.zeros(1, "u4")], grid=2, detectors=False)


ONE_WORD = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, {writer};
@%p1 st{how}.global.u32 [%rd1], 1;
again:
ld{how}.global.u32 %r2, [%rd1];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra again;
ret;
"""


@pytest.mark.parametrize(
    ("how", "given"),
    [
        ("", {"detectors": False, "workers": 1}),
        ("", {"detectors": False, "workers": 3}),
        (".volatile", {}),
        (".relaxed.gpu", {"seed": 3}),
    ],
)
def test_more_blocks_wait_than_run_by_turns(monkeypatch: pytest.MonkeyPatch, how: str, given: dict[str, Any]) -> None:
    """The last of forty blocks could write the word: it must have started before a hang is reported."""
    monkeypatch.setattr(needs, "RESIDENTS", 4)
    silent(ONE_WORD.format(how=how, writer=39), ".u64 p", [np.zeros(1, "u4")], grid=40, block=32, **given)
    found = hang(ONE_WORD.format(how=how, writer=40), ".u64 p", [np.zeros(1, "u4")], grid=40, block=32, **given)
    assert line_of(found) == f"ld{how}.global.u32 %r2, [%rd1];"
    assert found.labels[0].text.endswith("polls bytes 0..4 of argument 0 (`p`) here")
    assert found.notes[0].endswith("no running thread or copy can change memory; 0 of 40 blocks have ended")


@pytest.mark.parametrize("workers", [3, pytest.param(1, marks=pytest.mark.bulk)])
def test_forty_blocks_with_weak_loads_and_all_detectors(workers: int) -> None:
    """The word is then not one to wait for, and that is reported once a thread writes it."""
    given = {"grid": 40, "block": 32, "workers": workers, "timeout": 100}  # of checked native code, too
    hang(ONE_WORD.format(how="", writer=40), ".u64 p", [np.zeros(1, "u4")], **given)
    assert problem(ONE_WORD.format(how="", writer=39), ".u64 p", [np.zeros(1, "u4")], **given).code == "data-race"


def test_more_blocks_wait_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they hang depends on those that have not started; what time can end, time ends."""
    monkeypatch.setattr(running, "available", lambda: 1_600_000)
    found = problem(ONE_WORD.format(how=".volatile", writer=999), ".u64 p", [np.zeros(1, "u4")], grid=1000)
    assert found.code == "out-of-memory"
    assert re.fullmatch(r"\d\d blocks wait for others, and this machine has no memory to start more", found.message)
    assert line_of(found) == "ld.volatile.global.u32 %r2, [%rd1];"
    assert found.notes[0].startswith("0 of 1000 blocks have ended")
    silent(ONE_WORD.format(how=".volatile", writer=9), ".u64 p", [np.zeros(1, "u4")], grid=1000)
    timed = ONE_WORD.format(how=".volatile", writer=1000).replace(
        "@%p2 bra", "mov.u64 %rd2, %globaltimer;\nsetp.lt.and.u64 %p2, %rd2, 1000000000000, %p2;\n@%p2 bra"
    )
    silent(timed, ".u64 p", [np.zeros(1, "u4")], grid=1000)


def test_one_block_hangs_while_others_run() -> None:
    body = """
    .shared .align 8 .b64 full;
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 2;
    selp.u32 %r2, 2, 1, %p1;
    mbarrier.init.shared.b64 [full], %r2;
    mbarrier.arrive.shared.b64 %rd1, [full];
    again:
    nanosleep.u32 10;
    mbarrier.test_wait.shared.b64 %p2, [full], %rd1;
    @!%p2 bra again;
    ret;
    """
    found = hang(body, grid=5, detectors=False)
    assert found.labels[0].text == "thread 0 of block (2,0,0) waits here for phase 0 of the mbarrier `full`"
    silent(body.replace("selp.u32 %r2, 2, 1, %p1", "mov.u32 %r2, 1"), grid=5, detectors=False)


def test_values_that_are_written_again() -> None:
    """Lanes pass on what one of them has read, as Triton does it: a store that changes nothing helps no thread."""
    body = """
    .shared .align 4 .b32 seen;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    again:
    @%p1 atom.global.cas.b32 %r2, [%rd1], 1, 1;
    @%p1 st.shared.u32 [seen], %r2;
    bar.sync 0;
    ld.shared.u32 %r3, [seen];
    bar.sync 0;
    setp.ne.u32 %p2, %r3, 1;
    @%p2 bra again;
    ret;
    """
    silent(body, ".u64 p", [np.ones(1, "u4")], block=64)
    found = hang(body, ".u64 p", [np.zeros(1, "u4")], block=64)
    assert found.message == "64 threads wait in a loop for a change that never comes"


def test_a_loop_that_reads_nothing() -> None:
    """Two loops with one counter: the inner one ends, the outer one never does."""
    body = """
    mov.u32 %r1, 0;
    outer:
    mov.u32 {inner}, 0;
    inner:
    bar.sync 0;
    add.u32 {inner}, {inner}, 1;
    setp.lt.u32 %p1, {inner}, 2;
    @%p1 bra inner;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 8;
    @%p1 bra outer;
    ret;
    """
    silent(body.format(inner="%r2"), block=64)
    found = hang(body.format(inner="%r1"), block=64)
    assert found.message == "64 threads wait in a loop that never ends"
    assert line_of(found) == "bar.sync 0;"
    assert found.labels[0].text == "warps 0 and 1 of block (0,0,0) come here again and again"
    assert (
        found.notes[0]
        == "it reads nothing that others write, and what decides how it continues comes back to what it was"
    )


PLACES = """
.shared .align 16 .b8 flags[64];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, flags;
st.shared.u64 [flags], 0;
st.shared.u64 [flags+8], 0;
mov.u64 %rd3, %rd1;
{address}
again:
{load}
setp.ne.u32 %p1, %r3, 0;
@!%p1 bra again;
ret;
"""
GENERIC = "add.u32 %r2, %r2, 8;\ncvt.u64.u32 %rd2, %r2;\ncvta.shared.u64 %rd2, %rd2;"


@pytest.mark.parametrize(
    ("address", "load", "block", "said"),
    [
        ("", "ld.volatile.global.v2.u32 {%r3, %r4}, [%rd1+16];", 1, "bytes 16..24 of argument 0 (`p`)"),
        ("", "ld.volatile.shared.u32 %r3, [%r2+4];", 1, "bytes 4..8 of `flags`"),
        ("", "ld.volatile.shared.u8 %r3, [flags+12];", 1, "bytes 12..13 of `flags`"),
        (GENERIC, "atom.cas.b32 %r3, [%rd2], 5, 6;", 1, "bytes 8..12 of `flags`"),
        (
            "mad.wide.u32 %rd2, %r1, 8, %rd1;",
            "ld.volatile.global.u32 %r3, [%rd2];",
            4,
            "bytes 0..4 of argument 0 (`p`) and 3 other locations",
        ),
        # Where the loop itself computes the address, nothing is said of it.
        ("", "xor.b64 %rd3, %rd3, 4;\nld.volatile.global.u32 %r3, [%rd3];", 1, "memory"),
    ],
)
def test_what_is_polled(address: str, load: str, block: int, said: str) -> None:
    found = hang(
        PLACES.format(address=address, load=load), ".u64 p", [np.zeros(16, "u4")], block=block, detectors=False
    )
    assert found.labels[0].text.partition(" poll")[2].removeprefix("s") == f" {said} here"


def test_a_loop_that_writes_is_not_a_hang() -> None:
    body = """
    ld.param.u64 %rd1, [p];
    again:
    red.global.add.u32 [%rd1], 1;
    ld.volatile.global.u32 %r1, [%rd1+4];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
    """
    assert problem(body, ".u64 p", [np.zeros(2, "u4")], timeout=0.3).code == "timeout"


# For a phase.

PHASE = """
.shared .align 8 .b64 full;
mbarrier.init.shared.b64 [full], {count};
mbarrier.arrive.shared.b64 %rd1, [full];
mov.u32 %r1, 0;
again:
{body}
ret;
"""
SLEEP = "nanosleep.u32 10;\nmbarrier.test_wait.shared.b64 %p1, [full], %rd1;\n@!%p1 bra again;"
BACKWARDS = """
mbarrier.test_wait.shared.b64 %p1, [full], %rd1;
@%p1 ret;
add.u32 %r1, %r1, 1;
and.b32 %r1, %r1, 7;
setp.ne.u32 %p2, %r1, 0;
@%p2 bra again;
nanosleep.u32 10;
bra again;
"""


@pytest.mark.parametrize("body", [SLEEP, BACKWARDS])
@pytest.mark.parametrize("profile", [False, True])
def test_a_phase_that_is_asked_for_between_naps(body: str, profile: bool) -> None:
    silent(PHASE.format(count=1, body=body), profile=profile)
    found = hang(PHASE.format(count=2, body=body), profile=profile)
    assert line_of(found) == "mbarrier.test_wait.shared.b64 %p1, [full], %rd1;"
    assert found.notes[0].startswith("phase 0: 1 of 2 arrivals (line 12, thread 0), 0 bytes pending; ")


def test_a_loop_that_gives_up_after_many_tries() -> None:
    tries = """
    mbarrier.test_wait.shared.b64 %p1, [full], %rd1;
    add.u32 %r1, %r1, 1;
    setp.ge.or.u32 %p1, %r1, 100000, %p1;
    @!%p1 bra again;
    """
    silent(PHASE.format(count=2, body=tries))


def test_a_function_that_asks() -> None:
    asks = """.shared .align 8 .b64 full;
.func (.reg .b32 %done) ask(.reg .b64 %state)
{
    .reg .pred %p;
    nanosleep.u32 10;
    mbarrier.test_wait.shared.b64 %p, [full], %state;
    selp.b32 %done, 1, 0, %p;
    ret;
}
"""
    body = PHASE.format(count=2, body="call (%r2), ask, (%rd1);\nsetp.ne.u32 %p1, %r2, 0;\n@!%p1 bra again;").replace(
        ".shared .align 8 .b64 full;\n", ""
    )
    found = hang(body, before=asks)
    assert line_of(found) == "mbarrier.test_wait.shared.b64 %p, [full], %state;"
    silent(body.replace("[full], 2", "[full], 1"), before=asks)


# What stops a kernel that is not a hang.


def test_a_timeout_shows_where_threads_ask() -> None:
    """The second warp has exited, and the first has just asked when the time is over, or is about to."""
    body = """
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 ret;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [full], 1;
    bar.warp.sync -1;
    again:
    add.u32 %r1, %r1, 1;
    mbarrier.test_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra again;
    ret;
    """
    found = problem(body, block=64, timeout=0.3)
    assert found.code == "timeout"
    assert line_of(found) == "mbarrier.test_wait.parity.shared.b64 %p2, [full], 0;"
    assert "loops here" in found.labels[0].text


_LOOK_BACK = """
.version 8.3
.target sm_90
.address_size 64
.shared .b32 sums[64];
.visible .entry k(.param .u64 words)
{
    .reg .pred %p, %q; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [words];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
    mul.lo.u32 %r3, %r2, 4; mov.u32 %r4, sums; add.u32 %r3, %r3, %r4;
    mov.u32 %r5, 32;
work: st.shared.u32 [%r3], %r5; bar.sync 0; sub.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0; @%p bra work;
    setp.gt.u32 %p, %r2, 31; @%p bra end;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;
poll: ld.relaxed.gpu.u32 %r6, [%rd2]; fence.acq_rel.gpu; setp.eq.u32 %p, %r6, 0;
    vote.sync.any.pred %q, %p, -1; @%q bra poll;
    setp.eq.u32 %p, %r2, 0; add.u32 %r6, %r6, 1;
    @%p st.release.gpu.u32 [%rd2+4], %r6;
end: ret;
}
"""


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_warps_that_poll_together_leave_the_cores_to_others(seed: int) -> None:
    """Each block waits for the one before, by a vote of a warp, as CUB's scans do; few polls are in vain."""
    words = np.zeros(13, np.uint32)
    words[0] = 1
    result = ptxlab.parse(_LOOK_BACK)["k"].launch(12, 64, [words], seed=seed, device="cpu", timeout=60)
    assert (words == np.arange(1, 14)).all()
    assert result.counters["instructions"] < 2_000_000
