"""Clusters: how they are launched, where their blocks are, what they see of each other, and what is found wrong."""

from typing import Any

import numpy as np
import pytest

import ptxlab

from .clusters import MESSAGES, RING, SYNC, findings, kernel, run

# Launching.

PLACES = "%cluster_ctaid.x %cluster_ctaid.y %cluster_ctaid.z %cluster_ctarank %clusterid.x %clusterid.y %clusterid.z"
SIZES = "%cluster_nctaid.x %cluster_nctaid.y %cluster_nctaid.z %cluster_nctarank %nclusterid.x %nclusterid.y"


def registers(names: str, grid: Any, cluster: Any, directives: str = "", **how: Any) -> list[list[int]]:
    """What each block finds in special registers."""
    count = len(names.split())
    body = "mov.u32 %r10, %ctaid.y; mov.u32 %r11, %ctaid.z; mov.u32 %r12, %nctaid.x; mov.u32 %r13, %nctaid.y;\n"
    body += "mad.lo.u32 %r11, %r11, %r13, %r10; mad.lo.u32 %r11, %r11, %r12, %r7; ld.param.u64 %rd2, [out];\n"
    body += f"mad.wide.u32 %rd2, %r11, {4 * count}, %rd2;\n"
    for at, name in enumerate(names.split()):
        body += f"mov.u32 %r14, {name};\nst.global.u32 [%rd2+{4 * at}], %r14;\n"
    out = np.full((64, count), 9999, np.uint32)
    kernel(body, directives).launch(grid, 1, [out], cluster=cluster, device="cpu", detectors=False, **how)
    return [row for row in out.tolist() if row[0] != 9999]


def test_where_a_block_is() -> None:
    """As an H200 has it."""
    found = registers(PLACES, (4, 4, 2), (2, 2, 1))
    expected = [
        [x % 2, y % 2, 0, x % 2 + 2 * (y % 2), x // 2, y // 2, z] for z in range(2) for y in range(4) for x in range(4)
    ]
    assert found == expected
    assert registers(SIZES, (4, 4, 2), (2, 2, 1)) == [[2, 2, 1, 4, 2, 2]] * 32
    assert registers(SIZES, 2, None) == [[1, 1, 1, 1, 2, 1]] * 2


@pytest.mark.parametrize(
    ("directives", "cluster", "expected"),
    [("", None, 0), ("", 1, 1), ("", 2, 1), (".reqnctapercluster 1, 1, 1", None, 1), (".maxclusterrank 4", None, 0)],
)
def test_whether_a_cluster_was_asked_for(directives: str, cluster: int | None, expected: int) -> None:
    body = "mov.pred %p3, %is_explicit_cluster; selp.u32 %r10, 1, 0, %p3; st.global.u32 [%rd1], %r10;"
    out = np.full(2, 9, np.uint32)
    kernel(body, directives).launch(2, 1, [out], cluster=cluster, device="cpu")
    assert out.tolist() == [expected] * 2


def test_a_kernel_that_asks_for_clusters() -> None:
    assert registers("%cluster_nctarank", 4, None, ".reqnctapercluster 2") == [[2]] * 4
    assert registers("%cluster_nctarank", 4, 2, ".explicitcluster .reqnctapercluster 2, 1, 1") == [[2]] * 4
    assert registers("%cluster_nctarank", 16, 16) == [[16]] * 16
    counted = ".blocksareclusters .reqntid 1, 1, 1 .reqnctapercluster 2, 1, 1"
    assert registers("%clusterid.x %nctaid.x", 3, None, counted) == [[n // 2, 6] for n in range(6)]


@pytest.mark.parametrize(
    ("grid", "cluster", "directives", "message"),
    [
        (3, 2, "", "a grid of 3 × 1 × 1 is not a multiple of the cluster 2 × 1 × 1"),
        (17, 17, "", "a cluster of 17 blocks, at most 16 are possible"),
        (4, (2, 0, 1), "", "the cluster (2, 0, 1) needs at least 1 in each dimension"),
        (4, 4, ".reqnctapercluster 2", "`.reqnctapercluster` asks for clusters of 2 × 1 × 1 blocks, not 4 × 1 × 1"),
        (3, None, ".reqnctapercluster 2", "a grid of 3 × 1 × 1 is not a multiple of the cluster 2 × 1 × 1"),
        (4, None, ".explicitcluster", "`.explicitcluster` asks for clusters, and the launch has none"),
        (8, 8, ".maxclusterrank 4", "`.maxclusterrank` allows clusters of 4 blocks, not 8"),
    ],
)
def test_clusters_that_are_refused(grid: int, cluster: Any, directives: str, message: str) -> None:
    with pytest.raises(ptxlab.KernelError) as refused:
        kernel("", directives).launch(grid, 32, [np.zeros(1, np.uint32)], cluster=cluster, device="cpu")
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("bad-launch", f"`k`: {message}")


def test_a_target_without_clusters() -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{ ret; }\n"
    ptxlab.parse(text)["k"].launch(2, 1, cluster=1, device="cpu")
    with pytest.raises(ptxlab.KernelError, match="`k`: clusters of 2 blocks, `sm_80` has none"):
        ptxlab.parse(text)["k"].launch(2, 1, cluster=2, device="cpu")


def test_only_some_blocks() -> None:
    """Whole clusters run, each once."""
    out = run(RING + SYNC, grid=8, blocks=[(5, 0, 0), (2, 0, 0), (4, 0, 0)])
    assert [row[0] for row in out.tolist()] == [9999, 9999, 96, 64, 160, 128, 9999, 9999]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("detectors", [True, False])
@pytest.mark.parametrize("seed", [0, 5])
def test_a_ring(workers: int, detectors: bool, seed: int) -> None:
    out = run(RING + SYNC, grid=12, cluster=3, workers=workers, detectors=detectors, seed=seed)
    own = np.arange(12 * 32).reshape(4, 3, 32)
    assert (out.reshape(4, 3, 32) == np.roll(own, -1, 1)).all()


# Addresses.


def test_addresses_of_other_blocks() -> None:
    """Ranks, windows and ways there and back, as an H200 has them; the addresses themselves are the emulator's."""
    body = """
    cvt.u64.u32 %rd2, %r4; cvta.shared.u64 %rd2, %rd2;                  // here
    mapa.u64 %rd3, %rd2, %r2;                                           // here, by rank
    mapa.u64 %rd4, %rd2, %r3;                                           // there
    cvt.u64.u32 %rd5, %r5; cvta.shared::cluster.u64 %rd5, %rd5;         // there
    getctarank.u64 %r10, %rd2; getctarank.u64 %r11, %rd3; getctarank.u64 %r12, %rd4;
    getctarank.shared::cluster.u32 %r13, %r4; getctarank.shared::cluster.u32 %r14, %r5;
    mov.u32 %r20, 0;
    setp.eq.u32 %p3, %r10, %r2; @%p3 add.u32 %r20, %r20, 1;
    setp.eq.u32 %p3, %r11, %r2; @%p3 add.u32 %r20, %r20, 1;
    setp.eq.u32 %p3, %r12, %r3; @%p3 add.u32 %r20, %r20, 1;
    setp.eq.u32 %p3, %r13, %r2; @%p3 add.u32 %r20, %r20, 1;
    setp.eq.u32 %p3, %r14, %r3; @%p3 add.u32 %r20, %r20, 1;
    setp.eq.u64 %p3, %rd4, %rd5; @%p3 add.u32 %r20, %r20, 1;
    isspacep.shared::cta %p3, %rd2; @%p3 add.u32 %r20, %r20, 16;
    isspacep.shared::cta %p3, %rd3; @%p3 add.u32 %r20, %r20, 16;
    isspacep.shared::cta %p3, %rd4; @!%p3 add.u32 %r20, %r20, 16;
    isspacep.shared::cluster %p3, %rd2; @%p3 add.u32 %r20, %r20, 16;
    isspacep.shared::cluster %p3, %rd4; @%p3 add.u32 %r20, %r20, 16;
    isspacep.global %p3, %rd4; @!%p3 add.u32 %r20, %r20, 16;
    mapa.shared::cluster.u32 %r15, %r5, %r2; st.shared::cluster.u32 [%r15], %r9;
    """
    body += SYNC + "ld.u32 %r21, [%rd4]; ld.u32 %r22, [%rd3]; sub.u32 %r21, %r21, %r22;\n"
    body += "mad.lo.u32 %r20, %r21, 256, %r20; st.global.u32 [%rd1], %r20;\n" + SYNC
    out = run(body).astype(np.int32)
    assert (out[0] == 32 * 256 + 0x66).all()
    assert (out[1] == -32 * 256 + 0x66).all()


@pytest.mark.parametrize(
    ("body", "message", "note"),
    [
        ("mapa.shared::cluster.u32 %r5, %r4, 5; ld.shared::cluster.u32 %r20, [%r5];",
         "read of 4 bytes outside of the cluster", "it has 2 blocks, none of rank 5"),
        ("mapa.u64 %rd2, %rd1, 1; st.u32 [%rd2], 0;", "write of 4 bytes outside of the cluster",
         "it has 2 blocks, none of rank 255"),
        (SYNC + "@%p2 st.shared::cluster.u32 [%r5+512], 0;\n" + SYNC,
         "write of 4 bytes outside of shared memory of block (1,0,0)", "the block has 256 bytes of shared memory"),
        (SYNC + "@%p2 ld.shared.u32 %r20, [%r5];\n" + SYNC,
         "read of 4 bytes outside of shared memory of its own block",
         "the address is one in block (1,0,0), which `.shared::cta` does not reach"),
        (SYNC + "@%p2 atom.shared::cluster.add.u32 %r20, [%r5+2], 1;\n" + SYNC,
         "atomic operation of 4 bytes at address 0x2000002, not a multiple of 4", None),
    ],
)  # fmt: skip
def test_addresses_that_are_nowhere(body: str, message: str, note: str | None) -> None:
    with pytest.raises(ptxlab.KernelError) as refused:
        run(body, detectors=False)
    (found,) = refused.value.diagnostics
    assert found.message == message
    assert list(found.notes) == ([] if note is None else [note])


# Hangs and misuse of the cluster's barrier.


def test_a_hang_that_the_cluster_waits_for() -> None:
    (found,) = findings(MESSAGES.format(expected=33, begin=SYNC, release="", acquire=""))
    assert (found.code, found.message) == ("hang", "32 threads wait on an mbarrier phase that never completes")
    texts = [label.text for label in found.labels]
    assert "warp 0 of block (1,0,0) waits here for phase 0 of the mbarrier `bar`" in texts
    assert "warp 0 of block (0,0,0) waits here at the cluster barrier" in texts
    assert found.notes[0].startswith("phase 0: 32 of 33 arrivals (the last: line ")
    assert "of block (0,0,0)), 0 bytes pending; " in found.notes[0]


def test_threads_that_have_exited_are_not_waited_for() -> None:
    """As on an H200, also those that had arrived."""
    half = "setp.ge.u32 %p3, %r1, 16; @%p3 exit;\n" + SYNC + "st.global.u32 [%rd1], 7;"
    assert run(half)[:, :16].tolist() == [[7] * 16] * 2
    block = "@!%p2 exit;\n" + SYNC + "st.global.u32 [%rd1], 7;"
    assert run(block)[0].tolist() == [7] * 32
    arrived = "barrier.cluster.arrive; @!%p2 exit; barrier.cluster.wait;\n" + SYNC + "st.global.u32 [%rd1], 7;"
    assert run(arrived)[0].tolist() == [7] * 32


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("barrier.cluster.wait;", "bad-barrier",
         "a `barrier.cluster.wait` without a `barrier.cluster.arrive` before it"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "bad-barrier",
         "a second `barrier.cluster.arrive` without a `barrier.cluster.wait` between them"),
        ("@%p1 bra other; barrier.cluster.arrive.aligned; bra wait; other: barrier.cluster.arrive.aligned;\n"
         "wait: barrier.cluster.wait;", "barrier-divergence",
         "lanes of one warp are at different instructions, "
         "but `barrier.cluster.arrive.aligned` needs the whole warp"),
    ],
)  # fmt: skip
def test_misuse(body: str, code: str, message: str) -> None:
    (found,) = findings(body)
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    "add",
    [
        "red.shared::cluster.add.f32 [%r5], %f1;",
        "cvt.u64.u32 %rd2, %r5; cvta.shared::cluster.u64 %rd2, %rd2; red.add.f32 [%rd2], %f1;",
        "cvt.u64.u32 %rd2, %r4; cvta.shared.u64 %rd2, %rd2; atom.add.f32 %f2, [%rd2], %f1;",
    ],
)
def test_floats_are_added_in_other_blocks_as_in_their_own(add: str) -> None:
    """Subnormal numbers stay, as on an H200."""
    body = f"st.shared.u32 [%r4], 3;\n{SYNC}.reg .f32 %f<3>; mov.b32 %f1, 5;\n{add}\n{SYNC}"
    assert (run(body + "ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd1], %r20;") == 8).all()


def test_its_own_rank_in_an_address_is_its_own_block() -> None:
    """As on an H200: the address that `mapa` gives a block for its own rank is an address of `.shared::cta`."""
    body = """
    add.u32 %r10, %r2, 100; mapa.shared::cluster.u32 %r11, %r4, %r2;
    st.shared::cta.u32 [%r11], %r10; ld.shared.u32 %r12, [%r4]; st.global.u32 [%rd1], %r12;
    """
    assert run(body)[:, 0].tolist() == [100, 101]


def test_an_address_that_is_sent_to_another_block() -> None:
    """The block before gives the address of its own word, without `mapa`; this one writes there."""
    body = f"""
    {SYNC} st.shared::cluster.u32 [%r5], %r4; {SYNC}
    ld.shared.u32 %r10, [%r4]; add.u32 %r11, %r2, 100; {SYNC}
    st.shared::cluster.u32 [%r10], %r11; {SYNC}
    ld.shared.u32 %r12, [%r4]; st.global.u32 [%rd1], %r12;
    """
    assert run(body, grid=4, cluster=4)[:, 0].tolist() == [101, 102, 103, 100]


def test_every_special_register() -> None:
    """All but clocks, of threads in three dimensions and blocks in clusters, as the manual defines them."""
    grid, block, cluster = (4, 2, 2), (3, 4, 3), (2, 1, 2)
    rank, lanes = np.arange(16), np.arange(36)
    at = [each.ravel() for each in np.meshgrid(rank, lanes, indexing="ij")]
    place, thread = at[0].astype(np.int64), at[1].astype(np.int64)
    words: dict[str, Any] = {"%laneid": thread % 32, "%warpid": thread // 32, "%nwarpid": 2, "%smid": 0, "%nsmid": 1}
    blocks, inside = 1, 1
    cluster_rank, own = np.zeros_like(place), 1
    for axis, n, threads, each in zip("xyz", grid, block, cluster, strict=True):
        index = place // blocks % n
        words |= {f"%tid.{axis}": thread // inside % threads, f"%ntid.{axis}": threads, f"%ctaid.{axis}": index}
        words |= {f"%nctaid.{axis}": n, f"%clusterid.{axis}": index // each, f"%nclusterid.{axis}": n // each}
        words |= {f"%cluster_ctaid.{axis}": index % each, f"%cluster_nctaid.{axis}": each}
        cluster_rank, own = cluster_rank + index % each * own, own * each
        blocks, inside = blocks * n, inside * threads
    words |= {"%cluster_ctarank": cluster_rank, "%cluster_nctarank": own}
    words |= {f"%{name}.w": 0 for name in ("tid", "ctaid", "clusterid", "cluster_ctaid")}
    bit = 1 << thread % 32
    masks = {"eq": bit, "lt": bit - 1, "le": 2 * bit - 1, "ge": -bit, "gt": -2 * bit}
    words |= {f"%lanemask_{name}": mask & 0xFFFFFFFF for name, mask in masks.items()}
    words |= {f"%pm{number}": 0 for number in range(8)} | {f"%envreg{n}": 0 for n in (0, *range(3, 32))}
    words |= {
        "%total_smem_size": 1024,
        "%dynamic_smem_size": 0,
        "%aggr_smem_size": 2048,
    }  # 1000 bytes are allocated as 1024
    words |= {"%reserved_smem_offset_begin": 0, "%reserved_smem_offset_end": 1024, "%reserved_smem_offset_cap": 1024}
    wide = {f"%pm{number}_64": 0 for number in range(8)} | {"%gridid": 1, "%current_graph_exec": 0}
    shown = "".join(f"mov.u32 %r, {name}; st.global.u32 [%rd+{4 * n}], %r;\n" for n, name in enumerate(words))
    shown += "".join(
        f"mov.u64 %v, {name}; st.global.u64 [%rd+{8 * n}], %v;\n" for n, name in enumerate(wide, -(-len(words) // 2))
    )
    size = 8 * (-(-len(words) // 2) + len(wide))
    text = f""".version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 2, 1, 2 {{
    .shared .align 8 .b8 own[1000];
    .reg .b32 %r; .reg .b64 %rd, %v; .reg .pred %p;
    mov.u32 %r, %cluster_ctarank;
    mov.u64 %v, 0;
    ld.param.u64 %rd, [out];
    .reg .b32 %n<8>;
    mov.u32 %n0, %ctaid.x; mov.u32 %n1, %ctaid.y; mov.u32 %n2, %ctaid.z;
    mad.lo.u32 %n1, %n2, 2, %n1; mad.lo.u32 %n0, %n1, 4, %n0;
    mov.u32 %n1, %tid.x; mov.u32 %n2, %tid.y; mov.u32 %n3, %tid.z;
    mad.lo.u32 %n2, %n3, 4, %n2; mad.lo.u32 %n1, %n2, 3, %n1;
    mad.lo.u32 %n0, %n0, 36, %n1;
    mad.wide.u32 %rd, %n0, {size}, %rd;
{shown}    ret;
}}
"""
    out = np.zeros((len(place), size), np.uint8)
    ptxlab.parse(text)["k"].launch(grid, block, [out], device="cpu")
    narrow = out.view(np.uint32)
    for number, (name, expected) in enumerate(words.items()):
        assert np.array_equal(narrow[:, number], np.broadcast_to(expected, place.shape)), name
    for number, (name, expected) in enumerate(wide.items(), -(-len(words) // 2)):
        assert set(out.view(np.uint64)[:, number]) == {expected}, name
