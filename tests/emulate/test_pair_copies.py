"""Copies of boxes with `.cta_group::2`, which signal an mbarrier of either block of a pair (PTX ISA 9.7.9.27.1.2)."""

import numpy as np
import pytest

import ptxlab

# Each block has half of the rows. The even block waits until all bytes have come to both, and lets the odd one know.
KERNEL = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) .reqnctapercluster 2
{
    .reg .pred %p<4>;
    .reg .b16 %both;
    .reg .b32 %t, %rank, %full, %next, %row, %tile, %at, %v;
    .reg .b64 %out, %map, %rd;
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 full, next;
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %tile, tile;
    mov.u32 %full, full;
    mov.u32 %next, next;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u16 %both, 3;
    shl.b32 %row, %rank, 3;
    setp.ne.u32 %p0, %t, 0;
    setp.ne.u32 %p1, %rank, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%full], 1;
    mbarrier.init.shared::cta.b64 [%next], 1;
    fence.mbarrier_init.release.cluster;
READY:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 bra WAIT;
    and.b32 %full, %full, PEER;
    COPY
    @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 2048;
FILLED:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra FILLED;
    mapa.shared::cluster.u32 %at, %next, 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%at];
    mbarrier.arrive.shared::cta.b64 _, [next];
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [next], 0;
    @!%p2 bra WAIT;
    ld.param.u64 %out, [out];
    mad.lo.u32 %at, %rank, 32, %t;
    mul.wide.u32 %rd, %at, 32;
    add.u64 %out, %out, %rd;
    shl.b32 %at, %t, 5;
    add.u32 %at, %at, %tile;
    .reg .b32 %w<8>;
    ld.shared.v4.b32 {%w0, %w1, %w2, %w3}, [%at];
    ld.shared.v4.b32 {%w4, %w5, %w6, %w7}, [%at+16];
    st.global.v4.b32 [%out], {%w0, %w1, %w2, %w3};
    st.global.v4.b32 [%out+16], {%w4, %w5, %w6, %w7};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}
"""
TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
OWN = f"{TENSOR}.cta_group::2 [%tile], [%map, {{0, %row}}], [%full];"
# The even block copies the upper rows to both.
BOTH = f"@!%p1 {TENSOR}.multicast::cluster.cta_group::2 [%tile], [%map, {{0, %row}}], [%full], %both;"


def run(
    copy: str, *, peer: str = "0xfeffffff", ready: str = "READY:", seed: int = 0
) -> tuple[np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    source = np.arange(512, dtype=np.uint32).reshape(16, 32)
    out = np.zeros((2, 8, 32), np.uint32)
    text = KERNEL.replace("COPY", copy).replace("PEER", peer).replace("READY:", ready)
    kernel = ptxlab.parse(text, name="k.ptx")["k"]
    args = [out, ptxlab.tensor_map(source, box=(8, 32))]
    result = kernel.launch(2, 32, args, device="cpu", on_error="collect", timeout=60, seed=seed)
    return out, source.reshape(2, 8, 32), result.diagnostics


@pytest.mark.parametrize("seed", range(3))
def test_both_blocks_signal_the_even_one(seed: int) -> None:
    out, source, found = run(OWN, seed=seed)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, source)


def test_a_multicast_signals_the_blocks_of_one_parity() -> None:
    out, source, found = run(BOTH)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, source[[0, 0]])


def test_with_their_own_mbarriers_bytes_are_missing() -> None:
    *_, found = run(OWN, peer="0xffffffff")
    assert [diagnostic.code for diagnostic in found] == ["hang"]
    assert "1024 bytes" in ptxlab.report.render(found)


def test_without_the_modifier_a_block_signals_only_itself() -> None:
    """The kernel is one of pairs all the same: by its allocation."""
    pair = "READY: tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"
    *_, found = run(OWN.replace(".cta_group::2", ""), ready=pair)
    assert [diagnostic.code for diagnostic in found] == ["bad-barrier"]


def test_addresses_of_shared_memory_have_the_rank_of_their_block() -> None:
    """Where a kernel computes with it: its own address, one by `mapa`, and generic ones."""
    text = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 4
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p;
    .shared .align 16 .b32 slot[4];
    mov.u32 %r0, %cluster_ctarank;
    mov.u32 %r1, slot;
    ld.param.u64 %rd0, [out];
    mad.wide.u32 %rd0, %r0, 32, %rd0;
    add.u32 %r2, %r0, 5;
    st.shared.u32 [slot], %r2;
    st.global.u32 [%rd0], %r1;
    mapa.shared::cluster.u32 %r3, %r1, 3;
    st.global.u32 [%rd0+4], %r3;
    getctarank.shared::cluster.u32 %r4, %r3;
    st.global.u32 [%rd0+8], %r4;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    and.b32 %r5, %r1, 0xfeffffff;
    ld.shared::cluster.u32 %r6, [%r5];
    st.global.u32 [%rd0+12], %r6;
    cvt.u64.u32 %rd1, %r5;
    cvta.shared::cluster.u64 %rd1, %rd1;
    ld.u32 %r6, [%rd1];
    st.global.u32 [%rd0+16], %r6;
    ld.shared.u32 %r6, [%r1];
    st.global.u32 [%rd0+20], %r6;
    isspacep.shared::cta %p, %rd1;
    selp.u32 %r6, 1, 0, %p;
    st.global.u32 [%rd0+24], %r6;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    ret;
}
"""
    out = np.zeros((4, 8), np.uint32)
    ptxlab.parse(text)["k"].launch(4, 1, [out], device="cpu")
    start = out[0, 0]
    for rank in range(4):
        even = rank & ~1
        assert out[rank].tolist()[:7] == [
            start | rank << 24, start | 3 << 24, 3, even + 5, even + 5, rank + 5, int(rank == even),
        ]  # fmt: skip
