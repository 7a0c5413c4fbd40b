"""Order between blocks of a cluster: each wrong kernel is found, the right one beside it is silent."""

import numpy as np
import pytest

from .clusters import MESSAGES, RING, SYNC, codes, findings, kernel, run

ADD = "atom{}.shared::cluster.add.u32 %r20, [%r5], 1;\n"


@pytest.mark.parametrize(
    ("wrong", "code", "right"),
    [
        # No thread has waited until the words are there.
        (RING.replace(SYNC, "") + SYNC, "data-race", RING + SYNC),
        (RING.replace("arrive;", "arrive.relaxed;") + SYNC, "data-race",
         RING.replace("barrier.cluster.arrive;", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed;") + SYNC),
        (RING.replace(SYNC, "bar.sync 0;\n") + SYNC, "data-race", RING.replace(SYNC, "bar.sync 0;\n" + SYNC) + SYNC),
        # What is stored between arriving and waiting comes too late.
        ("barrier.cluster.arrive; st.shared.u32 [%r4], %r9; barrier.cluster.wait;\n"
         "ld.shared::cluster.u32 %r20, [%r5];\n" + SYNC, "data-race",
         "st.shared.u32 [%r4], %r9; barrier.cluster.arrive; barrier.cluster.wait;\n"
         "ld.shared::cluster.u32 %r20, [%r5];\n" + SYNC),
        # The other block reads what it owns before it was written there.
        (SYNC + "st.shared::cluster.u32 [%r5], %r9;\nld.shared.u32 %r20, [%r4];\n" + SYNC, "data-race",
         SYNC + "st.shared::cluster.u32 [%r5], %r9;\n" + SYNC + "ld.shared.u32 %r20, [%r4];\n"),
        # Two blocks change one word: their scopes must reach each other.
        ("st.shared.u32 [%r4], 0;\n" + SYNC + ADD.format(".relaxed.cta")
         + "atom.relaxed.cta.shared.add.u32 %r20, [%r4], 1;\n" + SYNC, "data-race",
         "st.shared.u32 [%r4], 0;\n" + SYNC + ADD.format(".relaxed.cluster")
         + "atom.relaxed.cluster.shared.add.u32 %r20, [%r4], 1;\n" + SYNC),
        # A block may go before another has read from it, or come after that.
        (RING, "exited-block", RING + SYNC),
        (RING + "barrier.cluster.arrive; @!%p2 exit; barrier.cluster.wait;\n", "exited-block", RING + SYNC),
        (SYNC + "st.shared::cluster.u32 [%r5], 1;\n" + SYNC.replace("arrive", "arrive.relaxed"), "exited-block",
         RING + SYNC.replace("arrive", "arrive.relaxed")),
        (ADD.format("") + SYNC, "unstarted-block", "st.shared.u32 [%r4], 0;\n" + SYNC + ADD.format("") + SYNC),
    ],
)  # fmt: skip
def test_order_between_blocks(wrong: str, code: str, right: str) -> None:
    assert codes(right) == []
    assert set(codes(wrong)) == {code}


def test_names_the_relaxed_arrival_that_does_not_wait() -> None:
    store, relaxed = SYNC + "st.shared::cluster.u32 [%r5], 1;\n", SYNC.replace("arrive", "arrive.relaxed")
    (found,) = findings(store + relaxed)
    note = "`barrier.cluster.arrive.relaxed` in line 20 does not wait for it: it orders no memory accesses"
    assert note in found.notes
    assert found.helps[0].text == "leave `.relaxed` out in line 20, or `fence.acq_rel.cluster;` before it"
    assert codes(store + SYNC) == []
    assert (
        codes(store + relaxed.replace("barrier.cluster.arrive", "fence.acq_rel.cluster; barrier.cluster.arrive")) == []
    )
    (without,) = findings(store)
    assert "relaxed" not in str(without)


# The first block exits at once; the second uses its shared memory for a while.
LATE = (
    SYNC
    + """
    @%p2 exit;
    mov.u32 %r20, 0;
again:
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p3, %r20, 20000;
    @%p3 bra again;
    st.shared::cluster.u32 [%r5], %r1;
    bar.sync 0;
    ld.shared::cluster.u32 %r21, [%r5];
    st.global.u32 [%rd1], %r21;
"""
)


@pytest.mark.parametrize("detectors", [True, False])
def test_a_block_that_has_exited_is_one_finding_and_the_rest_runs_on(detectors: bool) -> None:
    out = np.full(64, 9999, np.uint32)
    how = {"cluster": 2, "device": "cpu", "timeout": 60, "on_error": "collect", "detectors": detectors}
    (found,) = kernel(LATE).launch(2, 32, [out], **how).diagnostics
    assert found.code == "exited-block"
    assert found.message == "write of 4 bytes in shared memory of a block that has exited"
    assert out.tolist() == [9999] * 32 + list(range(32))
    assert (
        kernel(LATE.replace("@%p2 exit;", "@%p2 bra done;") + "done:\n" + SYNC).launch(2, 32, [out], **how).diagnostics
        == []
    )


def test_a_race_between_blocks_is_reported() -> None:
    (found,) = findings(RING.replace(SYNC, "bar.sync 0;\n") + SYNC)
    assert found.message == "unsynchronized: one thread reads shared memory that another writes"
    assert "of `tile` of block (" in found.labels[1].text or "of `tile` of block (" in found.labels[0].text
    assert found.notes[0].endswith(": no `barrier.cluster`, and no release/acquire pair with scope `.cluster`")


FLAG = """
    @%p1 st.shared.u32 [tile+128], 0;
""" + SYNC + """
    mov.u32 %r10, tile; add.u32 %r10, %r10, 128; mapa.shared::cluster.u32 %r11, %r10, %r3;
    @!%p2 bra wait;
    st.shared::cluster.u32 [%r5], 7;
    bar.sync 0;
    {fence}
    @%p1 st.{release}.shared::cluster.u32 [%r11], 1;
    bra done;
wait:
    ld.{acquire}.shared.u32 %r12, [%r10];
    setp.eq.u32 %p3, %r12, 0;
    @%p3 bra wait;
    {after}
    ld.shared.u32 %r20, [%r4];
    st.global.u32 [%rd1], %r20;
done:
""" + SYNC  # fmt: skip


@pytest.mark.parametrize(
    ("fence", "release", "acquire", "after", "is_right"),
    [
        ("", "release.cluster", "acquire.cluster", "", True),
        ("", "release.gpu", "acquire.cluster", "", True),
        ("", "relaxed.cluster", "acquire.cluster", "", False),
        ("", "release.cluster", "relaxed.cluster", "", False),
        ("", "release.cta", "acquire.cluster", "", False),
        ("", "release.cluster", "acquire.cta", "", False),
        ("fence.acq_rel.cluster;", "relaxed.cluster", "relaxed.cluster", "fence.acq_rel.cluster;", True),
        ("fence.acq_rel.gpu;", "relaxed.cluster", "relaxed.cluster", "fence.acq_rel.cluster;", True),
        ("fence.acq_rel.cta;", "relaxed.cluster", "relaxed.cluster", "fence.acq_rel.cluster;", False),
        ("fence.acq_rel.cluster;", "relaxed.cluster", "relaxed.cluster", "fence.acq_rel.cta;", False),
    ],
)
def test_a_flag_in_another_block(fence: str, release: str, acquire: str, after: str, is_right: bool) -> None:
    """The scope of both sides must include the other block."""
    body = FLAG.format(fence=fence, release=release, acquire=acquire, after=after)
    assert set(codes(body)) == (set() if is_right else {"data-race"})


COPY = """
    ld.param.u64 %rd2, [out]; mad.wide.u32 %rd3, %r1, 4, %rd2;
    cp.async.ca.shared.global [%r4], [%rd3], 4;
    cp.async.commit_group;
    {before}
""" + SYNC + """
    ld.shared::cluster.u32 %r20, [%r5];
    {after}
""" + SYNC  # fmt: skip


def test_a_copy_of_another_block() -> None:
    assert codes(COPY.format(before="cp.async.wait_group 0;", after="")) == []
    assert codes(COPY.format(before="cp.async.wait_group 0; bar.sync 0;", after="")) == []
    (found,) = findings(COPY.format(before="", after="cp.async.wait_group 0;"))
    assert (found.code, found.message) == ("data-race", "a thread reads shared memory that a copy still writes")


GLOBAL = """
    ld.param.u64 %rd2, [out];
    @!%p1 bra done;
    setp.ne.u32 %p3, %r7, 0;
    @%p3 bra wait;
    st.global.u32 [%rd2+512], 7;
    st.release.{scope}.global.u32 [%rd2+516], 1;
    bra done;
wait:
    ld.acquire.{scope}.global.u32 %r12, [%rd2+516];
    setp.eq.u32 %p3, %r12, 0;
    @%p3 bra wait;
    ld.global.u32 %r20, [%rd2+512];
done:
"""


@pytest.mark.parametrize(
    ("scope", "cluster", "is_right"),
    [("cta", 2, False), ("cluster", 2, True), ("gpu", 2, True), ("cluster", 1, False), ("gpu", 1, True)],
)
def test_scopes_in_global_memory(scope: str, cluster: int, is_right: bool) -> None:
    """That of a cluster reaches its blocks and no others."""
    assert set(codes(GLOBAL.format(scope=scope), cluster=cluster)) == (set() if is_right else {"data-race"})


RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"


@pytest.mark.parametrize(
    ("begin", "release", "acquire", "expected"),
    [
        (SYNC, ".release.cluster", ".acquire.cluster", set()),
        (SYNC, "", "", set()),  # as everybody writes it
        (SYNC, ".release.cta", "", {"data-race"}),
        (SYNC, ".relaxed.cluster", "", {"data-race"}),
        (SYNC, "", ".relaxed.cluster", {"data-race"}),
        (f"fence.mbarrier_init.release.cluster; {RELAXED}", "", "", set()),
        (RELAXED, "", "", {"data-race"}),
    ],
)
def test_an_mbarrier_of_another_block(begin: str, release: str, acquire: str, expected: set[str]) -> None:
    body = MESSAGES.format(expected=32, begin=begin, release=release, acquire=acquire)
    assert set(codes(body)) == expected
    assert (run(body, on_error="collect")[1] == 7).all()


def test_bytes_that_another_block_expects() -> None:
    body = "@%p1 mbarrier.init.shared.b64 [bar], 1;\n" + SYNC
    body += "mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r3;\n"
    body += "@%p1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r11], 16;\n"
    body += "@%p1 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r11], {};\n"
    body += "wait: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra wait;\n" + SYNC
    assert codes(body.format(16)) == []
    (found,) = findings(body.format(8), grid=2)
    assert found.code == "hang"
    assert found.labels[1].text == "expects 16 bytes in this phase"
    assert "8 of 16 bytes" in found.notes[0]
