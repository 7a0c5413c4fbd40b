"""What an mbarrier is and reports besides its phases: its layout, its reports, and who may use it after which fence."""

import numpy as np
import pytest

import ptxlab

HEAD = """.version 9.3
.target sm_90
.address_size 64
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<5>;
    .reg .b32 %r<9>;
    .reg .b8 %value;
    .reg .pred %p<5>;
    ld.param.u64 %rd1, [out];
"""


def run(body: str) -> list[int]:
    """Three words that a thread writes."""
    out = np.full(3, 9, np.uint32)
    ptxlab.parse(HEAD + body + "\nret;\n}\n")["k"].launch(grid=1, block=1, args=[out], device="cpu", timeout=20)
    return [int(word) for word in out]


@pytest.mark.parametrize(("layout", "expected"), [("", [1, 0]), (".layout::v0", [1, 0]), (".layout::v1", [0, 1])])
def test_the_layout_of_a_barrier(layout: str, expected: list[int]) -> None:
    """It is kept through the phases, and an arrival returns it as part of no count."""
    body = f"""
    mbarrier.init{layout}.shared.b64 [bar], 1;
    mbarrier.arrive.shared.b64 %rd2, [bar];
    mbarrier.check_layout.layout::v0.shared.b64 %p1, [bar];
    mbarrier.check_layout.layout::v1.shared.b64 %p2, [bar];
    selp.u32 %r1, 1, 0, %p1;
    selp.u32 %r2, 1, 0, %p2;
    mbarrier.pending_count.b64 %r3, %rd2;
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd1+8], %r3;
    """
    assert run(body) == [*expected, 1]


def test_the_layout_of_nothing() -> None:
    with pytest.raises(ptxlab.KernelError, match="the mbarrier `bar` is not initialized"):
        run("mbarrier.check_layout.layout::v0.shared.b64 %p1, [bar];")


@pytest.mark.parametrize("wait", ["test_wait", "try_wait"])
@pytest.mark.parametrize(("parity", "phase"), [("", "%rd2"), (".parity", "0")])
@pytest.mark.parametrize("arrives", [True, False])
def test_reports(wait: str, parity: str, phase: str, arrives: bool) -> None:
    """Nothing that is emulated reports anything, so a phase that is over has nothing to report."""
    name = f"mbarrier.{wait}{parity}.phase_type::primary.shared.b64"
    body = f"""
    mbarrier.init.layout::v1.shared.b64 [bar], 2;
    mbarrier.arrive.shared.b64 %rd2, [bar];
    {"mbarrier.arrive.shared.b64 _, [bar];" if arrives else ""}
    setp.eq.u32 %p2, 0, 0;
    setp.eq.u32 %p4, 0, 0;
    {name} %p1|%p2, %value, [bar], {phase};
    {name} %p3|%p4, [bar], {phase};
    cvt.u32.u8 %r1, %value;
    st.global.u32 [%rd1], %r1;
    selp.u32 %r1, 1, 0, %p1;
    @%p3 add.u32 %r1, %r1, 2;
    st.global.u32 [%rd1+4], %r1;
    or.pred %p2, %p2, %p4;
    selp.u32 %r1, 1, 0, %p2;
    st.global.u32 [%rd1+8], %r1;
    """
    assert run(body) == [0, 3 if arrives else 0, 0]


FENCES = [
    "fence.mbarrier_init.release.cluster;",
    "fence.proxy.alias;",
    "fence.proxy.async;",
    "fence.proxy.async.global;",
    "fence.proxy.async.shared::cta;",
    "fence.proxy.async.shared::cluster;",
]


@pytest.mark.parametrize("fence", FENCES)
def test_fences_of_other_proxies_order_no_threads(fence: str) -> None:
    """They take effect within one thread: what others do is not ordered by them, and what it does itself stays."""
    body = f"""
    mbarrier.init.shared.b64 [bar], 1;
    st.global.u32 [%rd1], 1;
    {fence}
    st.global.u32 [%rd1+4], 2;
    mbarrier.arrive.shared.b64 %rd2, [bar];
    """
    assert run(body) == [1, 2, 9]
    threads = f"""
    .shared .align 4 .b32 word;
    .shared .align 4 .b32 flag;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @!%p1 bra other;
    st.shared.u32 [word], 7;
    {fence}
    st.relaxed.cta.shared.u32 [flag], 1;
    ret;
    other:
    ld.relaxed.cta.shared.u32 %r2, [flag];
    {fence}
    ld.shared.u32 %r3, [word];
    """
    kernel = ptxlab.parse(HEAD + threads + "\nret;\n}\n")["k"]
    found = kernel.launch(grid=1, block=2, args=[np.zeros(3, np.uint32)], device="cpu", on_error="collect").diagnostics
    assert "data-race" in {diagnostic.code for diagnostic in found}
