"""Clusters: shared memory of other blocks, and the barrier of the cluster, for any grid."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxlab
from ptxlab.ir import Function
from ptxlab.measure import Launch
from ptxlab.prove import Verdict
from ptxlab.prove.theories import solver
from tests.prove.pipelines import MULTICAST as RING
from tests.prove.test_rings import on_page

pytestmark = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")

HEADER = """.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 x, .param .u32 n) .reqnctapercluster {cluster}
{{
    .reg .pred %p<4>;
    .reg .b32 %r<9>, %t, %rank, %peer, %there, %own, %c, %n;
    .reg .b64 %d<4>, %x;
    .shared .align 4 .b32 tile[64];
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %c, %ctaid.x;
    ld.param.u32 %n, [n];
    ld.param.u64 %x, [x];
    mov.u32 %own, tile;
    mad.lo.u32 %own, %t, 4, %own;
"""
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
MAP = "mapa.shared::cluster.u32 %there, %own, %peer;"
OTHER = f"xor.b32 %peer, %rank, 1; {MAP}"
NEXT = f"add.u32 %peer, %rank, 1; and.b32 %peer, %peer, 3; {MAP}"
AFTER = f"add.u32 %peer, %rank, 1; setp.lt.u32 %p1, %peer, 4; {MAP}"
FIRST = f"mov.u32 %peer, 0; {MAP}"
GET, PUT = "ld.shared::cluster.u32 %r5, [%there];", "st.shared::cluster.u32 [%there], %t;"
STORE, LOAD = "st.shared.u32 [%own], %t;", "ld.shared.u32 %r6, [%own];"
ADD = "red.relaxed.{}.shared::cluster.add.u32 [%there], 1;"
WORLD = "mad.lo.u32 %r1, %c, 32, %t; mad.wide.u32 %d1, %r1, 4, %x; st.global.u32 [%d1], %t;"
LOOP = "mov.u32 %r7, 0;\nloop:\n{} add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %n; @%p3 bra loop;"
GENERIC = "cvt.u64.u32 %d1, %own; cvta.shared.u64 %d1, %d1; xor.b32 %peer, %rank, 1; mapa.u64 %d2, %d1, %peer;"
RIGHT = [
    ("2", f"{STORE} {SYNC} {OTHER} {GET} {SYNC}"),
    ("2, 2", f"{STORE} {SYNC} {OTHER} {GET} {SYNC}"),
    ("2", f"{SYNC} {OTHER} {PUT} {SYNC} {LOAD}"),
    ("4", f"{STORE} {SYNC} {NEXT} {GET} {SYNC}"),
    ("4", f"{STORE} {SYNC} {AFTER} @%p1 {GET} {SYNC}"),
    ("2", f"{SYNC} {FIRST} {ADD.format('cluster')} {SYNC}"),
    ("2", f"shr.u32 %c, %c, 1; setp.lt.u32 %p1, %c, 2; @%p1 bra out; {SYNC}\nout:"),
    ("2", WORLD),
    ("2", f"mov.u32 %c, %clusterid.x; mad.lo.u32 %c, %c, 2, %rank; {WORLD}"),
    ("2", LOOP.format(f"{STORE} {SYNC} {OTHER} {GET} {SYNC}")),
    ("2", f"{STORE} {SYNC} {GENERIC} ld.u32 %r5, [%d2]; {SYNC}"),
]
WRONG = [
    ("2", f"{STORE} {SYNC} {OTHER} {GET}", "exited-block"),
    ("2", f"{STORE} {OTHER} {GET} {SYNC}", "data-race"),
    ("2", f"{OTHER} {GET} {SYNC}", "unstarted-block"),
    ("2", f"{SYNC} {OTHER} {PUT} {LOAD} {SYNC}", "data-race"),
    ("2", f"{SYNC} {FIRST} {PUT} {SYNC}", "data-race"),
    ("4", f"{STORE} {SYNC} add.u32 %peer, %rank, 1; {MAP} {GET} {SYNC}", "out-of-bounds"),
    ("2", f"{SYNC} {FIRST} {ADD.format('cta')} {SYNC}", "data-race"),
    ("2", f"{STORE} {SYNC} {OTHER} ld.shared.u32 %r5, [%there]; {SYNC}", "out-of-bounds"),
    ("2", LOOP.format(f"{STORE} {SYNC} {OTHER} {GET}") + SYNC, "data-race"),
    ("2", f"{STORE} {SYNC} {GENERIC} st.u32 [%d2], %t; ld.u32 %r5, [%d1]; {SYNC}", "data-race"),
    ("2", f"mov.u32 %r8, %c; mov.u32 %c, %rank; {WORLD}".replace("], %t", "], %r8"), "data-race"),
]


def _proved(cluster: str, body: str) -> tuple[Function, Verdict]:
    kernel = ptxlab.parse(f"{HEADER.format(cluster=cluster)} {body}\n ret;\n}}\n")["kernel"]
    assume = ["len(x) == 32 * grid.x"]
    return kernel, ptxlab.prove(kernel, block=32, assume=assume, replays=False)


@pytest.mark.parametrize(("cluster", "body"), RIGHT)
def test_what_clusters_order(cluster: str, body: str) -> None:
    _, found = _proved(cluster, body)
    assert found.level == "proved", str(found)


@pytest.mark.parametrize(("cluster", "body", "code"), WRONG)
def test_what_clusters_do_not_order(cluster: str, body: str, code: str) -> None:
    kernel, found = _proved(cluster, body)
    assert found.level == "not-proved", str(found)
    ran = kernel.launch(8, 32, [np.zeros(256, np.uint32), 3], device="cpu", on_error="collect").diagnostics
    assert ran[0].code == code


@pytest.mark.parametrize("name", ["%rank", "%c", "%r2"])
def test_the_barrier_of_a_cluster_is_for_all_its_blocks(name: str) -> None:
    load = "mov.u32 %r1, tile; ld.shared.u32 %r2, [%r1];"  # in each block its own
    _, found = _proved("2", f"{STORE} bar.warp.sync -1; {load} setp.eq.u32 %p1, {name}, 1; @%p1 bra out; {SYNC}\nout:")
    assert "decide" in str(found.gaps), str(found)


def test_a_sum_in_a_cluster() -> None:
    """The kernel of docs/hopper/04: for any number of clusters; its wrong twins are refuted by their run."""
    text = on_page("04-cluster.md")
    kernel = ptxlab.parse(text)["sum"]
    assume = ["len(x) == grid.x * 128", "len(y) * 4 == grid.x"]
    assert ptxlab.prove(kernel, block=128, assume=assume)
    first, second = map(str, re.findall(r"    barrier\.cluster\.arrive.*?\n.*?acquire\.aligned;", text))
    for old, new in ((first, ""), (second, "bar.sync 0;"), (second, second.replace("release", "relaxed"))):
        head, comment, tail = text.partition("// the" if old is first else "// all")
        wrong = new.join(head.rsplit(old, 1)) + comment + tail
        args = [np.arange(1024, dtype=np.uint32), np.zeros(2, np.uint32)]
        found = ptxlab.prove(ptxlab.parse(wrong)["sum"], args, grid=8, block=128)
        assert found.counterexample is not None, str(found)
        assert found.counterexample.finding.code == "data-race"


MULTICAST = [
    (r"    barrier.cluster.arrive.*\n.*acquire.aligned;", "    bar.sync 0;", "data-race"),
    (r"%both, 3;", "%both, 1;", "hang"),
    (r"%copies, %rank, 0, %first", "%copies, 0, 0, %first", "data-race"),
    (r"_, \[full\], 4096", "_, [full], 2048", "hang"),
]


def test_one_copy_for_several_blocks() -> None:
    """The kernel of docs/hopper/05, and its wrong twins."""
    text = on_page("05-multicast.md")
    for old, new, code in (("", "", None), *MULTICAST):
        kernel = ptxlab.parse(re.sub(old, new, text, count=1))["share"]
        source = ptxlab.tensor_map(np.zeros((32, 32), np.float32), box=(32, 32))
        args = [source, np.zeros((2, 32, 32), np.float32)]
        found = ptxlab.prove(kernel, args, grid=2, block=1024, assume="grid.x == 2", replays=False)
        assert found.level == ("not-proved" if code else "proved"), str(found)
        found = ptxlab.prove(kernel, args, grid=2, block=1024, assume="grid.x == 2") if code else found
        assert (found.counterexample.finding.code if found.counterexample else None) == code


HANDED = """
    .shared .align 8 .b64 full;
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [full], 1;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    xor.b32 %peer, %rank, 1;
    mapa.shared::cluster.u32 %there, %own, %peer;
    mov.u32 %r1, full;
    mapa.shared::cluster.u32 %r1, %r1, %peer;
    @!%p0 bra wait;
    st.shared::cluster.u32 [%there], 7;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [full], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r3, [tile];
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
HANDED_WRONG = [
    ("release.cluster", "release.cta"),
    ("[%r1];", "[full];"),
    ("st.shared::cluster.u32 [%there], 7;\n    mbarrier.arrive", "mbarrier.arrive"),
    ("mov.u32 %r1, full;", "bar.sync 0; mov.u32 %r1, full;"),
]


@pytest.mark.parametrize(("old", "new"), HANDED_WRONG)
def test_an_arrival_in_another_block(old: str, new: str) -> None:
    _, right = _proved("2", HANDED)
    assert right.level == "proved", str(right)
    kernel, found = _proved("2", HANDED.replace(old, new))
    ran = kernel.launch(4, 32, [np.zeros(128, np.uint32), 3], device="cpu", on_error="collect").diagnostics
    is_wrong = any(one.level == "error" for one in ran)
    assert (found.level == "not-proved") == is_wrong, str(found)


FENCE = "    @%p0 fence.mbarrier_init.release.cluster;\n"
RELAXED = "    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
STARTS = [
    (FENCE + RELAXED, True),
    (RELAXED, False),
    (RELAXED.replace("relaxed", "release"), True),
    (f"    st.shared.u32 [%own], 0;\n{FENCE}{RELAXED}", False),
    (f"    setp.eq.u32 %p0, %t, 1;\n{FENCE}    setp.eq.u32 %p0, %t, 0;\n{RELAXED}", False),  # another thread's fence
]


@pytest.mark.parametrize(("start", "is_right"), STARTS)
def test_mbarriers_that_a_fence_makes_visible(start: str, is_right: bool) -> None:
    """The barrier of the cluster needs no release where nothing else was done before it."""
    own = "    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    _, found = _proved("2", HANDED.replace(own, start, 1))
    assert (found.level == "proved") == is_right, str(found)


def test_a_copy_between_blocks_is_not_followed() -> None:
    """The block that it reads from may exit before it is complete: the wait for it is in the other one."""
    copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%there], [tile], 128, [%r1];"
    text = HANDED.replace("st.shared::cluster.u32 [%there], 7;", copy).replace("align 8 .b64", "align 16 .b64")
    _, found = _proved("2", text.replace("mbarrier.arrive.release.cluster", "mbarrier.arrive.expect_tx.release.cluster")
                       .replace("_, [%r1];", "_, [%r1], 128;"))  # fmt: skip
    assert "cp.async.bulk.shared::cluster.shared::cta" in str(found.gaps), str(found)


END = """    bar.warp.sync -1;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ret;"""
DRAIN = """    mov.u32 %r0, emptied;
    mad.lo.u32 %r0, %stage, 8, %r0;
drain:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %parity;
    @!%p3 bra drain;
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p4, %stage, 2;
    @%p4 mov.u32 %stage, 0;
    @%p4 xor.b32 %parity, %parity, 1;
"""
BOTH = DRAIN.replace("drain", "first") + DRAIN
FLIPPED = "    xor.b32 %parity, %parity, 1;\n"
NEXT = "    add.u32 %stage, %stage, 1;\n"
DRAINS = [
    (BOTH, True, None),
    (DRAIN, False, "exited-block"),  # of one stage only
    (FLIPPED + BOTH, False, "hang"),
    (BOTH + DRAIN.replace("drain", "third"), False, "hang"),  # for a phase that does not come
    ("", False, "exited-block"),
    ("    mov.u32 %stage, 0;\n" + BOTH, False, "exited-block"),
    (BOTH.replace("emptied", "filled"), False, "exited-block"),
    (BOTH.replace(NEXT, "", 1), False, "exited-block"),  # one stage, twice
]


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(("drain", "is_right", "code"), DRAINS)
def test_a_block_stays_until_its_stages_are_given_back(drain: str, is_right: bool, code: str | None) -> None:
    """A producer that waits for all stages after its loop, in place of a barrier of the cluster."""
    last = "    @%p5 bra copies;\n"
    assert END in RING
    assert last in RING
    kernel = ptxlab.parse(RING.replace(END, "    ret;").replace(last, last + drain), "drained.ptx")["multicast"]
    codes = set()
    for count in (7, 2, 1):
        x, y = np.arange(64 * count, dtype=np.uint32).reshape(-1, 32), np.zeros((2, count, 32), np.uint32)
        launch = Launch(kernel, 2, 64, [ptxlab.tensor_map(x, box=(1, 32)), y, count])
        for seed in range(3):
            ran = kernel.launch(2, 64, launch.args, device="cpu", on_error="collect", timeout=60, seed=seed)
            codes |= {one.code for one in ran.diagnostics}
        if count == 7:
            found = ptxlab.prove(launch, assume=["grid.x == 2", "len(y) == 64 * count"], replays=False)
    assert (found.level == "proved") == is_right, str(found)
    assert (codes == set()) if is_right else (code in codes or code is None)


BOXES = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
.reqnctapercluster 2
{
    .reg .pred %p1;
    .reg .b32 %t, %r1, %row;
    .reg .b64 %map;
    .shared .align 128 .b32 tile[32];
    mov.u64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %row, ROW;
    mov.u32 %t, %tid.x;
    mov.u32 %r1, tile;
    mad.lo.u32 %r1, %t, 4, %r1;
    st.shared.u32 [%r1], %t;
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 ret;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {0, %row}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.mark.parametrize(("row", "level", "codes"), [("%ctaid.x", "proved", []),
                                                     ("%clusterid.x", "not-proved", ["data-race"])])  # fmt: skip
def test_boxes_that_blocks_of_a_cluster_write(row: str, level: str, codes: list[str]) -> None:
    kernel = ptxlab.parse(BOXES.replace("ROW", row))["k"]
    launch = Launch(kernel, 4, 32, [ptxlab.tensor_map(np.zeros((4, 32), np.uint32), box=(1, 32))])
    assert ptxlab.prove(launch, replays=False).level == level
    run = kernel.launch(4, 32, launch.args, device="cpu", on_error="collect")
    assert [one.code for one in run.diagnostics] == codes
