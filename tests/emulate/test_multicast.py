"""Bulk copies to other blocks of a cluster: to one of them, and to several at once."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Diagnostic

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 x, .param .u64 y)
.reqnctapercluster {count}, 1, 1
{{
    .reg .pred %p<8>;
    .reg .b16 %h<4>;
    .reg .b32 %r<16>, %t, %b, %own;
    .reg .b64 %rd<8>, %x, %y;
    .shared .align 128 .b8 tile[1024];
    .shared .align 128 .b8 other[1024];
    .shared .align 8 .b64 full;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mov.b64 %rd1, map;
    cvta.param.u64 %rd2, %rd1;
    mov.u32 %t, %tid.x;
    mov.u32 %b, %cluster_ctarank;
    setp.ne.u32 %p1, %t, 0;
    setp.ne.u32 %p2, %b, 0;
    or.pred %p3, %p1, %p2;
    mov.u32 %r1, tile;
    mad.lo.u32 %own, %t, 4, %r1;
    @%p1 bra ready;
    mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    {expect}
ready:
    st.shared.u32 [%own], %b;
    fence.proxy.async;
    barrier.cluster.arrive;
    barrier.cluster.wait;
"""
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};"
WAIT = """
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [full], 0;
    @!%p4 bra wait;
"""
OUT = """
    ld.shared.u32 %r2, [%own];
    mad.lo.u32 %r3, %b, 32, %t;
    mad.wide.u32 %rd3, %r3, 4, %y;
    st.global.u32 [%rd3], %r2;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
"""
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"


def run(body: str, expect: str, count: int = 2, seed: int = 0) -> tuple[np.ndarray[Any, Any], list[Diagnostic]]:
    """What the threads of all blocks found, and what is wrong."""
    x = np.arange(100, 164, dtype=np.uint32)
    y = np.zeros(32 * count, np.uint32)
    map = ptxlab.tensor_map(x.reshape(4, 16), box=(2, 16))
    module = ptxlab.parse(HEAD.format(count=count, expect=expect) + body, name="k.ptx")
    how: dict[str, Any] = {"device": "cpu", "timeout": 20, "on_error": "collect", "seed": seed}
    result = module["k"].launch(count, 32, [map, x, y], **how)
    return y.reshape(count, 32), result.diagnostics


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(
    "copy", [f"{MULTICAST} [tile], [%x], 128, [full], {{}};", f"{TENSOR} [tile], [%rd2, {{{{0, 0}}}}], [full], {{}};"]
)
def test_one_block_copies_for_all(copy: str, count: int, seed: int) -> None:
    send = f"mov.b16 %h1, {(1 << count) - 1};\n@!%p3 {copy.format('%h1')}"
    found, wrong = run(send + WAIT + OUT, EXPECT.format(128), count, seed)
    assert wrong == []
    assert (found == np.arange(100, 132)).all()


@pytest.mark.parametrize(
    "copy", [f"{MULTICAST} [tile], [%x], 128, [full], 2;", f"{TENSOR} [tile], [%rd2, {{0, 0}}], [full], 2;"]
)
def test_only_the_blocks_of_the_mask(copy: str) -> None:
    """Block 0 has nothing to wait for."""
    wait = "setp.eq.u32 %p5, %b, 0;\n@%p5 bra after;\n" + WAIT + "after:\n"
    found, wrong = run(f"@!%p3 {copy}\n" + wait + OUT, "@%p2 " + EXPECT.format(128))
    assert wrong == []
    assert (found[0] == 0).all()
    assert (found[1] == np.arange(100, 132)).all()


def test_a_block_that_does_not_wait() -> None:
    found, wrong = run(f"@!%p3 {MULTICAST} [tile], [%x], 128, [full], 3;\n" + OUT, EXPECT.format(128))
    assert {diagnostic.code for diagnostic in wrong} == {"data-race", "exited-block"}  # it comes after the end, too
    assert (found[1] == 1).all()


def test_every_block_has_to_expect_the_bytes() -> None:
    _, wrong = run(f"@!%p3 {MULTICAST} [tile], [%x], 128, [full], 3;" + WAIT + OUT, "@!%p2 " + EXPECT.format(128))
    assert [diagnostic.code for diagnostic in wrong] == ["hang"]
    assert "128 bytes came where 0 are expected" in wrong[0].notes[0]


def test_a_mask_beyond_the_cluster() -> None:
    _, (wrong,) = run(f"@!%p3 {MULTICAST} [tile], [%x], 128, [full], 4;" + OUT, EXPECT.format(128))
    assert (wrong.code, wrong.message) == ("out-of-bounds", "write of 128 bytes outside of the cluster")


SEND = """
    xor.b32 %r4, %b, 1;
    mov.u32 %r5, other;
    mapa.shared::cluster.u32 %r6, %r5, %r4;
    mov.u32 %r7, full;
    mapa.shared::cluster.u32 %r8, %r7, {barrier};
    @!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [tile], 128, [%r8];
"""


@pytest.mark.parametrize("seed", range(3))
def test_blocks_exchange_what_they_have(seed: int) -> None:
    body = SEND.format(barrier="%r4") + WAIT + "mov.u32 %r1, other;\nmad.lo.u32 %own, %t, 4, %r1;\n" + OUT
    found, wrong = run(body, EXPECT.format(128), seed=seed)
    assert wrong == []
    assert (found == [[1], [0]]).all()


def test_the_mbarrier_is_where_the_bytes_go() -> None:
    _, (wrong,) = run(SEND.format(barrier="%b") + OUT, EXPECT.format(128))
    assert wrong.code == "bad-barrier"
