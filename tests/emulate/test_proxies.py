"""Order between threads and asynchronous work: what needs a proxy fence, what needs a wait, and what needs neither."""

from typing import Any

import pytest

from ptxlab.report import Diagnostic
from tests.emulate.ordering import HEAD, lines_of, races, run, silent

STORE = "cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 256;"
LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%flag], 256, [full];"
END = "cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;"


def unfenced(body: str, level: str = "error", **how: Any) -> Diagnostic:
    """A missing fence is found between the marked lines, and nothing else, whatever the seed."""
    lines = f"{HEAD}{body}".splitlines()
    marked = [next(at for at, line in enumerate(lines, 1) if line.endswith(mark)) for mark in ("// race", "// with")]
    for seed in (2, 1, 0):
        (found,) = run(body, seed=seed, **how)
        assert (found.code, found.level, lines_of(found)) == ("missing-proxy-fence", level, tuple(marked))
    return found


def found_in(body: str) -> set[tuple[str, str]]:
    """The codes and levels of what is found."""
    return {(one.code, one.level) for one in run(body)}


def stored(before: str, after: str = "") -> str:
    """All threads write, and one begins a copy of it."""
    return f"""
    st.shared.u32 [%own], %t; // with
    {before}
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra end;
    {after}
    {STORE} // race
    {END}
end:
"""


@pytest.mark.parametrize(
    "fence", ["fence.proxy.async;", "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;"]
)
def test_every_writer_passes_a_fence_before_the_barrier(fence: str) -> None:
    silent(stored(f"{fence} bar.sync 0;"))
    found = unfenced(stored("bar.sync 0;"))
    assert found.message == (
        "a copy reads shared memory written by a thread, with no proxy fence in between"
    )  # fmt: skip
    assert found.labels[1].text == "thread (0,0,0) of block (0,0,0) wrote there"


def test_many_instructions_that_write_what_is_copied_are_one_finding() -> None:
    body = stored("st.shared.u32 [%own], 1;\n" * 8 + "bar.sync 0;").replace("// with", "")
    written = body.replace("st.shared.u32 [%own], 1;\n", "add.u32 %r1, %own, {}; st.shared.u8 [%r1], 1;\n", 4)
    (found,) = run(written.format(0, 1, 2, 3))
    assert found.code == "missing-proxy-fence"
    silent(written.replace("bar.sync", "fence.proxy.async; bar.sync").format(0, 1, 2, 3))


def test_many_instructions_that_write_what_a_copy_still_reads_are_one_finding() -> None:
    writes = "".join(f"st.shared.u8 [tile+{at}], %t;\n" for at in range(4))
    body = stored("fence.proxy.async; bar.sync 0;").replace("// with", "").replace("cp.async.bulk.wait_group 0;", "{}")
    (found,) = run(body.format(f"{writes} cp.async.bulk.wait_group 0;"))
    assert found.message == "a thread writes shared memory that a copy still reads"
    silent(body.format(f"cp.async.bulk.wait_group 0; {writes}"))


def test_a_fence_for_global_memory_does_not_cover_shared_memory() -> None:
    unfenced(stored("fence.proxy.async.global; bar.sync 0;"))


def test_a_fence_of_one_thread_does_not_cover_what_others_wrote() -> None:
    unfenced(stored("setp.eq.u32 %p2, %t, 0; @%p2 fence.proxy.async; bar.sync 0;"))


def test_a_fence_between_the_barrier_and_the_copy_will_do() -> None:
    silent(stored("bar.sync 0;", "fence.proxy.async;"))


def test_a_fence_before_the_write_does_not_count() -> None:
    body = stored("bar.sync 0;")
    unfenced(body.replace("st.shared", "fence.proxy.async; st.shared"))


def test_a_fence_orders_no_threads() -> None:
    races(stored("fence.proxy.async;"))


def test_a_later_fence_takes_nothing_back() -> None:
    """The barrier hands the first fence on; another one, after the next write elsewhere, is not awaited."""
    silent(
        """
    st.shared.u32 [%own], %t;
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @!%p1 bra copy;
    st.shared.u32 [%own+1024], %t;
    fence.proxy.async;
    bra end;
copy:
"""
        f"    nanosleep.u32 100;\n    {STORE}\n    {END}\nend:\n"
    )


@pytest.mark.parametrize(
    "sync",
    ["bar.warp.sync 0xffffffff;", "barrier.cta.sync 1, 32;"],
)
def test_a_fence_goes_with_what_orders_threads(sync: str) -> None:
    """One warp writes 128 bytes and copies them."""
    body = stored("{}").replace("256;", "128;")
    silent(body.format(f"fence.proxy.async; {sync}"), block=32)
    unfenced(body.format(sync), block=32)


def test_a_collective_orders_no_memory_and_hides_no_missing_fence() -> None:
    body = stored("{}").replace("256;", "128;")
    shuffle = "shfl.sync.idx.b32 %r1, %t, 0, 31, 0xffffffff;"
    unfenced(body.format(shuffle), block=32)
    found = run(body.format(f"fence.proxy.async; {shuffle}"), block=32)
    assert [(one.code, one.level) for one in found] == [("unordered-collective", "warning")]


def test_what_a_lane_learns_between_two_collectives_is_passed_on_at_the_second() -> None:
    """All lanes converge and know nothing; one acquires what another warp released; all converge again."""
    body = """
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra first;
    bar.warp.sync 0xffffffff;
    {before}
    setp.ne.u32 %p2, %t, 32;
    @%p2 bra on;
wait:
    ld.acquire.cta.global.u32 %r1, [%flag];
    setp.eq.u32 %p3, %r1, 0;
    @%p3 bra wait;
on:
    {after}
    ld.shared.u32 %r2, [%far];
    bra end;
first:
    st.shared.u32 [%own], %t;
    bar.warp.sync 0xffffffff;
    setp.eq.u32 %p2, %t, 0;
    @%p2 st.release.cta.global.u32 [%flag], 1;
end:
"""
    shuffle = "shfl.sync.idx.b32 %r3, %t, 0, 31, 0xffffffff;"
    for before in ("", "bar.warp.sync 0xffffffff;", shuffle):
        silent(body.format(before=before, after="bar.warp.sync 0xffffffff;"))
        silent(body.format(before=before, after=f"{shuffle} bar.warp.sync 0xffffffff;"))
        assert found_in(body.format(before=before, after="")) == {("data-race", "error")}
        assert found_in(body.format(before=before, after=shuffle)) == {("unordered-collective", "warning")}


def test_a_fence_goes_with_an_mbarrier() -> None:
    body = f"""
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 64;
    bar.sync 0;
    st.shared.u32 [%own], %t; // with
    {{}}
    mbarrier.arrive.shared::cta.b64 %state, [full];
    @%p1 bra end;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
    {STORE} // race
    {END}
end:
"""
    silent(body.format("fence.proxy.async.shared::cta;"))
    unfenced(body.format(""))


COPY = "cp.async.ca.shared.global [%own], [%flag], 4; cp.async.wait_all;"


@pytest.mark.parametrize(
    "again",
    [
        "",
        "setp.eq.u32 %p2, %t, 37;\n    @%p2",
        "setp.lt.u32 %p2, %t, 37;\n    @%p2",
        "setp.ne.u32 %p2, %t, 37;\n    @%p2",
    ],
    ids=["all", "one lane", "a warp and five lanes", "all but one"],
)
def test_a_fence_is_for_the_copies_that_its_thread_knows_to_be_done(again: str) -> None:
    """Lanes have copied as often as each other, or not, when one thread passes a fence for all of them."""
    body = stored(f"{COPY}\n    {{}}\n    bar.sync 0;", "{}").replace("st.shared.u32 [%own], %t; // with", "")
    one = "setp.eq.u32 %p3, %t, 0;\n    @%p3 fence.proxy.async;"
    more = f"bar.sync 0;\n {one}\n bar.sync 0;\n {again} {COPY.partition(' cp')[0]} // with\n cp.async.wait_all;"
    silent(body.format("", "fence.proxy.async;"))
    silent(body.format(more, "fence.proxy.async;"))
    unfenced(body.format(more, ""), "warning")


LOADED = f"""
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    {{first}}
    bar.sync 0;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    @!%p1 {LOAD} {{marks}}
    {{wait}}
    {{then}}
"""
WAIT = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n    @!%p3 bra wait;"


def loaded(first: str = "", wait: str = WAIT, then: str = "ld.shared.u32 %r1, [%own]; // race", marks: str = "") -> str:
    return LOADED.format(first=first, wait=wait, then=then, marks=marks)


def test_what_a_copy_wrote_needs_a_wait_and_no_fence() -> None:
    silent(loaded())
    silent(loaded(then="st.shared.u32 [%own], 0;"))
    found = races(loaded(wait="bar.sync 0;", marks="// with"))
    assert found.message == "a thread reads shared memory that a copy still writes"
    assert (
        found.notes[0]
        == "the copy is complete when its mbarrier completes, or after `cp.async.bulk.wait_group` in its own thread"
    )


def test_a_wait_that_orders_nothing() -> None:
    races(loaded(wait=WAIT.replace("y.sh", "y.relaxed.cta.sh"), marks="// with"))


def test_the_wait_of_one_thread_and_a_barrier_order_all() -> None:
    silent(loaded(wait=f"@%p1 bra after; {WAIT} after: bar.sync 0;"))


def test_a_copy_over_what_threads_wrote_needs_a_fence() -> None:
    silent(loaded(first="st.shared.u32 [%own], 1; fence.proxy.async;"))
    read = "ld.shared.u32 %r1, [%own];"
    unfenced(loaded(first="st.shared.u32 [%own], 1; // with", marks="// race", then=read))


def test_a_copy_over_what_threads_only_read_needs_none() -> None:
    again = f"""
    {{}}
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    @!%p1 {LOAD} // race
    {WAIT.replace("wait", "again").replace("try_again", "try_wait").replace("], 0", "], 1")}
"""
    silent(loaded(then="ld.shared.u32 %r1, [%own];" + again.format("bar.sync 0;")))
    races(loaded(then="ld.shared.u32 %r1, [%own]; // with" + again.format("")))


def test_the_barriers_of_two_stages_are_not_each_other() -> None:
    """Waiting for one copy says nothing of another one, even if that was started before it."""
    body = f"""
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra ready;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [empty], 1;
ready:
    bar.sync 0;
    @%p1 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    {LOAD}
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [empty], 256;
    {LOAD.replace("[tile]", "[tile+1024]").replace("[full]", "[empty]")}
    {{}}
    ld.shared.u32 %r1, [%own]; // race
"""
    silent(body.format(WAIT))
    races(body.format(WAIT.replace("[full]", "[empty]")).replace("[full];", "[full]; // with"))


def test_two_copies_to_the_same_place() -> None:
    body = f"""
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    @%p1 bra end;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 512;
    {LOAD} // with
    {LOAD.replace("[tile]", "[tile+{}]")} // race
    mbarrier.arrive.shared::cta.b64 _, [full];
    {WAIT}
end:
"""
    silent(body.format(256))
    assert races(body.format(240)).message == "another copy writes shared memory that a copy still writes"


def test_global_memory_needs_its_own_fence() -> None:
    """The kernel writes what a copy reads."""
    write = "mad.wide.u32 %rd1, %t, 4, %flag; st.global.u32 [%rd1], 1; // with\n    {}"
    body = loaded(first=write, marks="// race", then="ld.shared.u32 %r1, [%own];")
    silent(body.format("fence.proxy.async.global;"))
    silent(body.format("fence.proxy.async;"))
    unfenced(body.format(""))
    unfenced(body.format("fence.proxy.async.shared::cta;"))


def test_blocks_hand_over_what_a_copy_wrote() -> None:
    """One block stores in bulk and sets a flag; another one waits for that and reads."""
    body = f"""
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra end;
    setp.ne.u32 %p2, %b, 0;
    @%p2 bra other;
    st.shared.u32 [tile], 1;
    fence.proxy.async;
    {STORE.replace("256", "16")} // with
    cp.async.bulk.commit_group;
    {{}}
    st.release.gpu.global.u32 [word], 1;
    bra end;
other:
    ld.acquire.gpu.global.u32 %r1, [word];
    setp.eq.u32 %p3, %r1, 0;
    @%p3 bra other;
    ld.global.u32 %r2, [%out]; // race
end:
"""
    silent(body.format("cp.async.bulk.wait_group 0;"), grid=2)
    races(body.format("cp.async.bulk.wait_group.read 0;"), grid=2)
    races(body.format(""), grid=2)
