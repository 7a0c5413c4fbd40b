"""`clusterlaunchcontrol`: clusters that take over the work of others that have not started."""

from typing import Any

import numpy as np
import pytest

import ptxlab

# Each cluster counts, at its position in the grid, which has done its work; then it asks for the next one.
KERNEL = """
.version 8.6
.target sm_100a
.address_size 64
.shared .align 16 .b8 answer[16];
.shared .align 8 .b64 bar;
.entry k(.param .u64 out)
{
    .reg .b32 %r<30>; .reg .b64 %rd<9>; .reg .b128 %rq<3>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %tid.x;
    mov.u32 %r8, %cluster_ctarank; setp.ne.u32 %p1, %r6, 0; setp.ne.u32 %p4, %r8, 0;
    mov.u32 %r7, 0;
    @!%p1 mbarrier.init.shared.b64 [bar], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
again:
    mad.lo.u32 %r9, %r3, %r5, %r2; mad.lo.u32 %r9, %r9, %r4, %r1;
    mad.wide.u32 %rd2, %r9, 4, %rd1;
    @!%p1 red.global.add.u32 [%rd2], 1;
    @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    ASK
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r7;
    @!%p2 bra wait;
    xor.b32 %r7, %r7, 1;
    ld.shared.b128 %rq1, [answer];
    fence.proxy.async.shared::cta;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %rq1;
    @!%p3 bra done;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, _}, %rq1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %rq1;
    add.u32 %r1, %r10, %r8;  // clusters extend along x
    barrier.cluster.arrive; barrier.cluster.wait;
    bra again;
done:
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}
"""
ALONE = "@!%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];"
ALL = (
    "or.pred %p5, %p1, %p4; @!%p5 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    ".multicast::cluster::all.b128 [answer], [bar];"
)


def run(ask: str, grid: Any, cluster: int, **how: Any) -> tuple[np.ndarray, Any]:
    out = np.zeros(64, np.uint32)
    kernel = ptxlab.parse(KERNEL.replace("ASK", ask))["k"]
    result = kernel.launch(grid, 32, [out], cluster=cluster, device="cpu", timeout=60, **how)
    return out, result


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("detectors", [True, False])
@pytest.mark.parametrize(("ask", "cluster"), [(ALONE, 1), (ALL, 1), (ALL, 2), (ALL, 4)])
def test_all_work_is_done_once(ask: str, cluster: int, seed: int, detectors: bool) -> None:
    out, result = run(ask, (4, 3, 2), cluster, seed=seed, detectors=detectors)
    assert out.tolist() == [1] * 24 + [0] * 40
    assert result.diagnostics == []


def test_the_fences_of_the_guide() -> None:
    """What the CUDA programming guide puts around a request: a fence in each direction."""
    before = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n"
    after = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"
    assert "fence.proxy.async.shared::cta;" in KERNEL
    kernel = KERNEL.replace("fence.proxy.async.shared::cta;", after).replace("ASK", before + ALONE)
    out = np.zeros(64, np.uint32)
    result = ptxlab.parse(kernel)["k"].launch(5, 32, [out], device="cpu", timeout=60)
    assert out[:6].tolist() == [1, 1, 1, 1, 1, 0]
    assert result.diagnostics == []


def test_one_cluster_does_the_work_of_all() -> None:
    """As long as no other has started, which without a seed they have not."""
    _, result = run(ALONE, 10, 1)
    assert result.counters["instructions"] < run(ALONE, 10, 1, seed=1)[1].counters["instructions"]


def test_who_does_not_wait_for_the_answer() -> None:
    waiting = "mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r7;\n    @!%p2 bra wait;\n"
    assert waiting in KERNEL
    early = KERNEL.replace(waiting, "").replace("ASK", ALONE)
    out = np.zeros(64, np.uint32)
    result = ptxlab.parse(early)["k"].launch(4, 32, [out], device="cpu", on_error="collect", timeout=60)
    assert "data-race" in [diagnostic.code for diagnostic in result.diagnostics]


def test_the_next_answer_needs_a_fence_after_the_read_of_the_last() -> None:
    fence = "    fence.proxy.async.shared::cta;\n"
    assert fence in KERNEL
    kernel = ptxlab.parse(KERNEL.replace(fence, "").replace("ASK", ALONE))["k"]
    result = kernel.launch(4, 32, [np.zeros(64, np.uint32)], device="cpu", on_error="collect", timeout=60)
    (found,) = result.diagnostics
    assert found.code == "missing-proxy-fence"
    assert found.message == "a request writes shared memory read by a thread, with no proxy fence in between"
    assert "ld.shared.b128 %rq1, [answer];" in [label.span.text for label in found.labels]
    assert "in every thread that reads, before the barrier that precedes the request" in found.helps[0].text
