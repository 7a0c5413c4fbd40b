"""Order between blocks: by release and acquire, by fences, by locks, by barriers of the grid that kernels build."""

import pytest

from tests.emulate.ordering import races, silent

# Block 0 writes data and then a flag, block 1 waits for the flag and reads the data.
MESSAGE = """
    setp.ne.u32 %p1, %b, 0;
    @%p1 bra reader;
    st.global.u32 [%out], 5; // with
    {release}
    bra end;
reader:
    {acquire}
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra reader;
    {fence}
    ld.global.u32 %r2, [%out]; // race
end:
"""


def message(release: str, acquire: str, fence: str = "") -> str:
    return MESSAGE.format(release=release, acquire=acquire, fence=fence)


RELEASES = [
    "st.release.gpu.global.u32 [%flag], 1;",
    "atom.add.release.gpu.global.u32 %r1, [%flag], 1;",
    "red.release.gpu.global.add.u32 [%flag], 1;",
    "membar.gl; st.volatile.global.u32 [%flag], 1;",
    "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;",
    "fence.release.sys; atom.global.exch.b32 %r1, [%flag], 1;",
    "st.release.gpu.global.u32 [%flag], 0; st.relaxed.gpu.global.u32 [%flag], 1;",
]
ACQUIRES = [
    ("ld.acquire.gpu.global.u32 %r1, [%flag];", ""),
    ("atom.acquire.gpu.global.or.b32 %r1, [%flag], 0;", ""),
    ("ld.volatile.global.u32 %r1, [%flag];", "membar.gl;"),
    ("ld.relaxed.sys.global.u32 %r1, [%flag];", "fence.acq_rel.gpu;"),
    ("atom.global.add.u32 %r1, [%flag], 0;", "fence.acquire.gpu;"),
]


@pytest.mark.parametrize("release", RELEASES)
def test_a_message_is_released(release: str) -> None:
    silent(message(release, *ACQUIRES[0]), grid=2, block=1)


@pytest.mark.parametrize(("acquire", "fence"), ACQUIRES)
def test_a_message_is_acquired(acquire: str, fence: str) -> None:
    silent(message(RELEASES[3], acquire, fence), grid=2, block=1)


@pytest.mark.parametrize(
    "release",
    [
        "st.volatile.global.u32 [%flag], 1;",
        "st.relaxed.gpu.global.u32 [%flag], 1;",
        "st.relaxed.gpu.global.u32 [%flag], 1; membar.gl;",
        "red.global.add.u32 [%flag], 1;",
        "membar.cta; st.volatile.global.u32 [%flag], 1;",
        "fence.acquire.gpu; st.volatile.global.u32 [%flag], 1;",
        "st.release.cta.global.u32 [%flag], 1;",
    ],
)
def test_a_message_is_not_released(release: str) -> None:
    races(message(release, *ACQUIRES[0]), grid=2, block=1)


@pytest.mark.parametrize(
    ("acquire", "fence"),
    [
        ("ld.volatile.global.u32 %r1, [%flag];", ""),
        ("membar.gl; ld.volatile.global.u32 %r1, [%flag];", ""),
        ("ld.relaxed.gpu.global.u32 %r1, [%flag];", "membar.cta;"),
        ("ld.relaxed.gpu.global.u32 %r1, [%flag];", "fence.release.gpu;"),
        ("ld.acquire.cta.global.u32 %r1, [%flag];", ""),
        ("atom.global.add.u32 %r1, [%flag], 0;", ""),
    ],
)
def test_a_message_is_not_acquired(acquire: str, fence: str) -> None:
    races(message(RELEASES[0], acquire, fence), grid=2, block=1)


def test_a_flag_that_is_read_by_a_weak_load() -> None:
    body = message("st.release.gpu.global.u32 [%flag], 1; // with", "ld.global.u32 %r1, [%flag]; // race", "membar.gl;")
    body = body.replace("5; // with", "5;").replace("[%out]; // race", "[%out];")
    races(body, grid=2, block=1)


def test_a_flag_of_too_narrow_a_scope_races_itself() -> None:
    body = message("st.release.cta.global.u32 [%flag], 1; // with", "ld.acquire.gpu.global.u32 %r1, [%flag]; // race")
    found = races(body.replace("5; // with", "5;").replace("[%out]; // race", "[%out];"), grid=2, block=1)
    assert found.notes[0] == "both are strong, but the scope `.cta` of one does not include the other thread"


@pytest.mark.parametrize("fence", ["membar.cta;", "fence.acq_rel.cluster;", "membar.gl;"])
def test_within_a_block_the_scope_of_the_block_is_enough(fence: str) -> None:
    body = message(f"{fence} st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %r1, [%flag];", fence)
    body = body.replace("%p1, %b, 0", "%p1, %t, 0")
    silent(body, block=2)
    races(body.replace(fence, ""), block=2)


def test_a_flag_in_shared_memory() -> None:
    body = message("{0} st.{1}.shared.u32 [tile], 1;", "ld.{2}.shared.u32 %r1, [tile];", "{0}")
    body = "st.shared.u32 [tile], 0;\n bar.sync 0;\n" + body.replace("%p1, %b, 0", "%p1, %t, 0")
    silent(body.format("", "release.cta", "acquire.cta"), block=2)
    silent(body.format("membar.cta;", "volatile", "volatile"), block=2)
    races(body.format("", "relaxed.cta", "acquire.cta"), block=2)


def test_a_weak_write_to_the_flag_hands_nothing_over() -> None:
    other = "st.release.gpu.global.u32 [%flag], 0;\n    st.global.u32 [%flag], 1;"
    races(message(other, *ACQUIRES[0]), grid=2, block=1)


def test_a_write_of_another_thread_hides_the_release() -> None:
    body = """
    setp.eq.u32 %p1, %b, 2;
    @%p1 bra reader;
    setp.eq.u32 %p1, %b, 1;
    @%p1 bra second;
    st.global.u32 [%out], 5; // with
    st.release.gpu.global.u32 [%flag], 1;
    bra end;
second:
    ld.relaxed.gpu.global.u32 %r1, [%flag];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra second;
    {}
    bra end;
reader:
    ld.acquire.gpu.global.u32 %r1, [%flag];
    setp.lt.u32 %p2, %r1, 2;
    @%p2 bra reader;
    ld.global.u32 %r2, [%out]; // race
end:
"""
    silent(body.format("red.relaxed.gpu.global.add.u32 [%flag], 1;"), grid=3, block=1)
    races(body.format("st.relaxed.gpu.global.u32 [%flag], 2;"), grid=3, block=1)


def test_a_message_for_all_threads_of_a_block() -> None:
    body = """
    setp.ne.u32 %p1, %b, 0;
    @%p1 bra reader;
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.u32 [%rd1], 5; // with
    {before}
    setp.eq.u32 %p2, %t, 0;
    @%p2 st.release.gpu.global.u32 [%flag], 1;
    bra end;
reader:
    setp.ne.u32 %p2, %t, 0;
    @%p2 bra join;
again:
    ld.acquire.gpu.global.u32 %r1, [%flag];
    setp.eq.u32 %p3, %r1, 0;
    @%p3 bra again;
join:
    {after}
    xor.b32 %r2, %t, 32;
    mad.wide.u32 %rd1, %r2, 4, %out;
    ld.global.u32 %r3, [%rd1]; // race
end:
"""
    silent(body.format(before="bar.sync 0;", after="bar.sync 0;"), grid=2)
    races(body.format(before="", after="bar.sync 0;"), grid=2)
    races(body.format(before="bar.sync 0;", after=""), grid=2)


def test_the_last_block_reads_what_all_wrote() -> None:
    body = """
    mad.wide.u32 %rd1, %b, 4, %out;
    st.global.u32 [%rd1], 5; // with
    {before}
    atom.global.inc.u32 %r1, [%flag], 3;
    {after}
    setp.ne.u32 %p1, %r1, 3;
    @%p1 bra end;
    ld.global.u32 %r2, [%out]; // race
    ld.global.u32 %r3, [%out+8];
end:
"""
    silent(body.format(before="membar.gl;", after="membar.gl;"), grid=4, block=1)
    races(body.format(before="", after="membar.gl;"), grid=4, block=1)
    races(body.format(before="membar.gl;", after=""), grid=4, block=1)
    silent(body.format(before="", after="").replace("atom.global.inc", "atom.acq_rel.gpu.global.inc"), grid=4, block=1)


def test_a_lock() -> None:
    body = """
lock:
    atom{acquire}.global.cas.b32 %r1, [%flag], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra lock;
    {fence}
    ld.global.u32 %r2, [%out]; // with
    add.u32 %r2, %r2, 1;
    {fence}
    st.global.u32 [%out], %r2; // race
    {fence}
    {unlock}
"""
    right = body.format(acquire=".acquire.gpu", fence="", unlock="st.release.gpu.global.u32 [%flag], 0;")
    silent(right, grid=4, block=1)
    silent(body.format(acquire="", fence="membar.gl;", unlock="atom.global.exch.b32 %r3, [%flag], 0;"), grid=4, block=1)
    races(right.replace("acquire.gpu", "relaxed.gpu"), grid=4, block=1)
    races(right.replace("release.gpu", "relaxed.gpu"), grid=4, block=1)
    races(right.replace(".gpu", ".cta"), grid=4, block=1)


def test_a_barrier_of_the_grid() -> None:
    body = """
    mov.u32 %r5, 1;
phase:
    mad.lo.u32 %r1, %b, 64, %t;
    mad.wide.u32 %rd1, %r1, 4, %out;
    st.global.u32 [%rd1], %r5; // with
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra join;
    {arrive}
    mul.lo.u32 %r6, %r5, 3;
wait:
    ld.acquire.gpu.global.u32 %r2, [%flag];
    setp.lt.u32 %p2, %r2, %r6;
    @%p2 bra wait;
join:
    {join}
    add.u32 %r3, %b, 1;
    rem.u32 %r3, %r3, 3;
    mad.lo.u32 %r3, %r3, 64, %t;
    xor.b32 %r3, %r3, 32;
    mad.wide.u32 %rd2, %r3, 4, %out;
    ld.global.u32 %r4, [%rd2]; // race
"""
    right = "red.release.gpu.global.add.u32 [%flag], 1;"
    silent(body.format(arrive=right, join="bar.sync 0;"), grid=3)
    races(body.format(arrive=right.replace("release", "relaxed"), join="bar.sync 0;"), grid=3)
    races(body.format(arrive=right, join=""), grid=3)


def test_more_blocks_than_are_tracked_separately() -> None:
    body = """
    mad.wide.u32 %rd1, %b, 4, %out;
    st.global.u32 [%rd1], 5;
    membar.gl;
    atom.global.inc.u32 %r1, [%flag], 2999;
    membar.gl;
    setp.ne.u32 %p1, %r1, 2999;
    @%p1 bra end;
    ld.global.u32 %r2, [%out];
    ld.global.u32 %r3, [%out+4000];
    ld.global.u32 %r4, [%out+11996];
end:
"""
    silent(body, grid=3000, block=1)


@pytest.mark.parametrize("scope", ["", ".relaxed.gpu", ".acq_rel.sys"])
def test_counters_of_all_blocks(scope: str) -> None:
    silent(f"atom{scope}.global.add.u32 %r1, [%out], 1;", grid=3)


def test_counters_of_too_narrow_a_scope() -> None:
    silent("atom.relaxed.cta.global.add.u32 %r1, [%out], 1;", grid=1)
    found = races("atom.relaxed.cta.global.add.u32 %r1, [%out], 1; // both", grid=3)
    assert "scope `.cta`" in found.notes[0]


def test_blocks_are_not_ordered_by_being_started_one_after_the_other() -> None:
    races("mad.wide.u32 %rd1, %t, 4, %out;\n st.global.u32 [%rd1], %b; // both", grid=2)
