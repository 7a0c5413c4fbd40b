"""Order by mbarriers, and copies without a wait."""

from typing import Any

import pytest

from tests.emulate.ordering import races, run, silent

# Warp 0 writes, warp 1 reads after the phase.
PHASE = """
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 32;
    {start}
    setp.ge.u32 %p2, %t, 32;
    @%p2 bra wait;
    {before}
    {arrive}
    {after}
    bra end;
wait:
    {wait}
    @!%p3 bra wait;
    ld.shared.u32 %r1, [%far]; // race
end:
"""
STORE = "st.shared.u32 [%own], %t; // with"
ARRIVE = "mbarrier.arrive.shared::cta.b64 %state, [full];"
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;"


def phase(
    start: str = "bar.sync 0;", before: str = STORE, arrive: str = ARRIVE, after: str = "", wait: str = WAIT
) -> str:
    return PHASE.format(start=start, before=before, arrive=arrive, after=after, wait=wait)


@pytest.mark.parametrize(
    "wait", [WAIT, WAIT.replace("try_wait", "test_wait"), WAIT.replace("y.sh", "y.acquire.cta.sh")]
)
def test_a_phase_hands_over_what_was_done_before_its_arrivals(wait: str) -> None:
    silent(phase(wait=wait))


def test_what_comes_after_the_arrival_is_not_handed_over() -> None:
    races(phase(before="", after=STORE))


def test_relaxed_operations_on_an_mbarrier_order_nothing() -> None:
    races(phase(arrive=ARRIVE.replace("arrive.sh", "arrive.relaxed.cta.sh")))
    races(phase(wait=WAIT.replace("y.sh", "y.relaxed.cta.sh")))


def test_an_mbarrier_is_used_before_all_know_that_it_is_there() -> None:
    body = phase(start="").replace("32;\n    \n", "32; // with\n\n").replace("// with\n    mb", "\n    mb")
    body = body.replace(STORE, STORE.replace("// with", "")).replace("[%far]; // race", "[%far];")
    races(body.replace(ARRIVE, f"{ARRIVE} // race"), seeds=(0,))


def test_two_stages_between_producers_and_consumers() -> None:
    body = """
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra ready;
    mbarrier.init.shared::cta.b64 [full], 32;
    mbarrier.init.shared::cta.b64 [empty], 32;
ready:
    bar.sync 0;
    mov.u32 %r1, 0;
    mov.u32 %r3, 0;
    setp.ge.u32 %p2, %t, 32;
    @%p2 bra consumer;
producer:
    xor.b32 %r2, %r1, 1;
free:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], %r2;
    @!%p3 bra free;
    st.shared.u32 [%own], %t; // race
    mbarrier.arrive.shared::cta.b64 %state, [full];
    add.u32 %r3, %r3, 1;
    xor.b32 %r1, %r1, 1;
    setp.lt.u32 %p4, %r3, 5;
    @%p4 bra producer;
    bra end;
consumer:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], %r1;
    @!%p3 bra consumer;
    {}
    xor.b32 %r1, %r1, 1;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p4, %r3, 5;
    @%p4 bra consumer;
end:
"""
    read, release = "ld.shared.u32 %r4, [%far];", "mbarrier.arrive.shared::cta.b64 %state, [empty];"
    silent(body.format(f"{read} {release}"))
    wrong = body.replace("// race", "// with").format(f"{release} {read} // race")
    races(wrong)


# cp.async.

COPY = """
    mad.wide.u32 %rd1, %t, 4, %flag;
    cp.async.ca.shared.global [%own], [%rd1], 4; // with
    {}
    ld.shared.u32 %r1, [{}]; // race
"""


@pytest.mark.parametrize(
    "wait", ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all; bar.sync 0;"]
)
def test_a_thread_waits_for_its_own_copy(wait: str) -> None:
    silent(COPY.format(wait, "%own"))


@pytest.mark.parametrize(
    "wait", ["", "bar.sync 0;", "cp.async.commit_group; cp.async.wait_group 1;", "cp.async.wait_group 0;"]
)
def test_a_thread_does_not_wait_for_its_own_copy(wait: str) -> None:
    found = races(COPY.format(wait, "%own"))
    assert found.message == "a thread reads shared memory that a copy still writes"
    assert found.labels[0].text == "the same thread read them before it waited for the copy"
    assert "of block (0,0,0) started a copy to bytes " in found.labels[1].text


def test_other_threads_need_a_barrier_after_the_wait() -> None:
    silent(COPY.format("cp.async.wait_all; bar.sync 0;", "%far"))
    silent(COPY.format("cp.async.wait_all; bar.warp.sync 0xffffffff;", "%near"))
    for wait in ("cp.async.wait_all;", "cp.async.commit_group; bar.sync 0; cp.async.wait_all;"):
        found = races(COPY.format(wait, "%far"))
        assert "before the copy was known to be complete" in found.labels[0].text


def test_a_copy_that_is_overwritten() -> None:
    body = COPY.replace("ld.shared.u32 %r1, [{}]", "st.shared.u32 [{}], 0")
    silent(body.format("cp.async.wait_all;", "%own"))
    races(body.format("", "%own"))


def test_a_copy_over_what_others_still_read() -> None:
    body = """
    st.shared.u32 [%own], 0;
    bar.sync 0;
    ld.shared.u32 %r1, [%far]; // with
    {}
    mad.wide.u32 %rd1, %t, 4, %flag;
    cp.async.ca.shared.global [%own], [%rd1], 4; // race
"""
    silent(body.format("bar.sync 0;"))
    races(body.format(""))


def test_earlier_groups_are_done_when_later_ones_are_under_way() -> None:
    body = """
    mad.wide.u32 %rd1, %t, 4, %flag;
    cp.async.ca.shared.global [%own], [%rd1], 4;{first}
    cp.async.commit_group;
    cp.async.ca.shared.global [%own+1024], [%rd1], 4;{second}
    cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.u32 %r1, [{read}]; // race
"""
    silent(body.format(first="", second="", read="%own"))
    races(body.format(first="", second=" // with", read="%own+1024"))


def test_copies_that_an_mbarrier_tracks() -> None:
    body = """
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 64;
    bar.sync 0;
    mad.wide.u32 %rd1, %t, 4, %flag;
    cp.async.ca.shared.global [%own], [%rd1], 4; // with
    {}
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
    ld.shared.u32 %r1, [%far]; // race
"""
    silent(body.format("cp.async.mbarrier.arrive.noinc.shared.b64 [full];"))
    silent(body.format("cp.async.mbarrier.arrive.shared.b64 [full]; mbarrier.arrive.shared.b64 %state, [full];"))
    races(body.format("mbarrier.arrive.shared.b64 %state, [full];"))


def test_the_arrival_of_copies_hands_over_nothing_else() -> None:
    body = """
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 64;
    bar.sync 0;
    mad.wide.u32 %rd1, %t, 4, %flag;
    cp.async.ca.shared.global [%own], [%rd1], 4;
    st.shared.u32 [%own+1024], %t; // with
    {}
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
    ld.shared.u32 %r1, [%far+1024]; // race
"""
    silent(body.format("mbarrier.arrive.shared.b64 %state, [full];"))
    races(body.format("cp.async.mbarrier.arrive.noinc.shared.b64 [full];"))


# Memory that no thread has written.


def uninitialised(body: str, **how: Any) -> list[str]:
    found = run(body, **how)
    assert {diagnostic.level for diagnostic in found} <= {"warning"}
    assert {diagnostic.code for diagnostic in found} <= {"uninitialised-read"}
    return [diagnostic.labels[0].text for diagnostic in found]


def test_shared_memory_that_no_thread_has_written() -> None:
    assert uninitialised("ld.shared.u32 %r1, [%own];") == ["thread (0,0,0) of block (0,0,0) read bytes 0..4 of `tile`"]
    assert uninitialised("st.shared.u32 [%own], 0; ld.shared.u32 %r1, [%own];") == []
    assert len(uninitialised("st.shared.u32 [%own], 0; ld.shared.u32 %r1, [%own+2048];")) == 1
    assert len(uninitialised("red.shared.add.u32 [%own], 1;")) == 1
    assert uninitialised("st.shared.u32 [%own], 0; red.shared.add.u32 [%own], 1;") == []


def test_each_block_starts_with_unwritten_shared_memory() -> None:
    body = "setp.eq.u32 %p1, %b, 0; @%p1 st.shared.u32 [%own], 1; ld.shared.u32 %r1, [%own];"
    assert uninitialised(body, grid=2) == ["thread (0,0,0) of block (1,0,0) read bytes 0..4 of `tile`"]


def test_a_vector_of_which_a_part_was_written_is_let_pass() -> None:
    body = "mad.lo.u32 %r1, %t, 8, %r15; {} ld.shared.v2.u32 {{%r2, %r3}}, [%r1];"
    assert uninitialised(body.format("st.shared.u8 [%r1], 1;")) == []
    assert len(uninitialised(body.format(""))) == 1


def test_local_memory_that_its_thread_has_not_written() -> None:
    body = ".local .align 4 .b8 own[16];\n {} ld.local.u32 %r1, [own+4];"
    assert uninitialised(body.format(""), block=1) == ["thread (0,0,0) of block (0,0,0) read bytes 4..8"]
    assert uninitialised(body.format("st.local.u64 [own], 0;"), block=1) == []
    assert len(uninitialised(body.format("st.local.u32 [own], 0;"))) == 1
    generic = "cvta.local.u64 %rd1, %rd1;\n st.u32 [%rd1+4], 5;"
    assert uninitialised(body.format(f"mov.u64 %rd1, own;\n {generic}")) == []
    assert len(uninitialised(body.format(f"mov.u64 %rd1, own;\n {generic}".replace("+4", "+8")))) == 1
