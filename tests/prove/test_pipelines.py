"""Pipelines with roles, and tensor memory: proved for any k; mutants and wrong twins are not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels.parts.shapes import Shape as GemmShape
from ptxlab.learn import text_of
from ptxlab.prove.theories import solver
from tests.prove.pipelines import LONG, PIPELINES, SIZES, WRONG, gemm, judge, mutants

pytestmark = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")


@pytest.mark.bulk
@pytest.mark.parametrize("name", LONG)
def test_a_persistent_kernel_of_any_size(name: str) -> None:
    test_a_pipeline_of_any_size(name)


@pytest.mark.bulk(one_in=8)
@pytest.mark.parametrize("name", sorted(set(PIPELINES) - set(LONG), key="multicast".__ne__))  # the quickest first
def test_a_pipeline_of_any_size(name: str) -> None:
    pipeline = PIPELINES[name]
    found = ptxlab.prove(pipeline.launch(pipeline.sizes[-1]), assume=pipeline.assume, replays=False, timeout=600)
    assert found.level == "proved", str(found)


@pytest.mark.bulk
@pytest.mark.parametrize("number", range(0, 60, 6))
@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_no_mutant_is_proved(name: str, number: int) -> None:
    row = judge((name, number))
    assert row["level"] != "proved" or (row["wrong"] is None and row["reason"]), row


SHAPES = [GemmShape(), GemmShape(columns=128, buffers=1), GemmShape(columns=64, tall=2),
          GemmShape(columns=64, swap_ab=True)]  # fmt: skip


@pytest.mark.bulk
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_any_size(shape: GemmShape) -> None:
    """`wgmma_gemm` by other shapes."""
    found = ptxlab.prove(gemm(shape)(448), assume=SIZES, replays=False, timeout=600)
    assert found.level == "proved", str(found)


@pytest.mark.bulk(one_in=6)
@pytest.mark.parametrize(("name", "old", "new", "codes"), WRONG)
def test_a_wrong_twin_is_refuted_by_its_run(name: str, old: str, new: str, codes: tuple[str, ...]) -> None:
    pipeline = PIPELINES[name]
    launch = pipeline.launch(pipeline.sizes[-1])
    text = text_of(launch)
    wrong = re.sub(old, new, text, count=0 if old.startswith(r"\], 8") else 1)
    assert wrong != text
    found = ptxlab.prove(launch.changed((text, wrong)), assume=pipeline.assume)
    assert found.counterexample is not None, str(found)
    assert found.counterexample.finding.code in codes


def test_mutants_are_many() -> None:
    """A pattern that matches nothing any more would make the run over mutants say nothing."""
    changes = [change for _, change in mutants(text_of(PIPELINES["tcgen05 specialized"].launch(64)))]
    for part in ("tcgen05.commit", "mbarrier.init", "expect_tx", "fence.proxy", "xor.b32", "try_wait", "barrier.sync"):
        assert any(part in change for change in changes), part


ONLY_SOME = """.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 x)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [x];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [full], 32;
    bar.sync 0;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    mbarrier.arrive.shared.b64 _, [full];
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra wait;
    ret;
}
"""


def test_threads_that_memory_chooses() -> None:
    """Only some of the threads arrive, and these wait for all: which ones is in memory."""
    kernel = ptxlab.parse(ONLY_SOME, "some.ptx")["kernel"]
    found = ptxlab.prove(kernel, block=32, assume=["len(x) == 32"], replays=False)
    assert found.level == "not-proved", str(found)
    assert any("which threads come here depends on more" in gap.reason for gap in found.gaps), str(found)


COPIED = """.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 x)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd0;
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 full;
    .shared .align 4 .b32 beside;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [x];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @!%p0 bra wait;
    // before
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    // between
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 1024, [full];
wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r1, [beside];
    ret;
}
"""


@pytest.mark.parametrize(("place", "level"), [("// before", "proved"), ("// between", "not-proved")])
def test_a_copy_brings_its_bytes_only(place: str, level: str) -> None:
    """What its thread wrote before it is known by an arrival after that, not by the copy."""
    kernel = ptxlab.parse(COPIED.replace(place, "st.shared.u32 [beside], 1;"))["kernel"]
    assert ptxlab.prove(kernel, block=64, assume="len(x) == 1024", replays=False).level == level
    ran = kernel.launch(1, 64, [np.zeros(1024, np.uint8)], device="cpu", on_error="collect").diagnostics
    assert [one.code for one in ran] == ([] if level == "proved" else ["data-race"])


PART = """.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 y)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b32 tile[128];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [y];
    setp.ge.u32 %p0, %r0, 128;
    @%p0 ret;
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    st.shared.u32 [%r2], %r0;
    shr.u32 %r3, %r0, 6;
    add.u32 %r3, %r3, 1;
    barrier.sync.aligned %r3, 64;
    xor.b32 %r4, %r0, 33;
    mad.lo.u32 %r5, %r4, 4, %r1;
    ld.shared.u32 %r6, [%r5];
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r6;
    ret;
}
"""
PARTS = [
    ("%r3, 64;", "1, 128;", True),
    ("%r3, 64;", "%r3, 32;", False),  # two times 64 threads come, not 32
    ("%r3, 64;", "%r3, 96;", False),
    ("%r0, 33;", "%r0, 65;", False),  # of the other two warps
    ("    barrier.sync.aligned %r3, 64;\n", "", False),
    ("shr.u32 %r3, %r0, 6;", "and.b32 %r3, %r0, 1;", False),  # lanes of a warp at two barriers
    ("shr.u32 %r3, %r0, 6;", "shr.u32 %r3, %r0, 7;", False),  # 128 threads at a barrier for 64
    ("%r0, 128;\n    @%p0 ret;", "%r0, 96;\n    @%p0 ret;", False),
]


@pytest.mark.parametrize(("old", "new", "is_right"), PARTS)
def test_barriers_of_a_part_of_the_block(old: str, new: str, is_right: bool) -> None:
    assert old in PART
    kernel = ptxlab.parse(PART.replace(old, new, 1), "part.ptx")["kernel"]
    found = ptxlab.prove(kernel, block=160, assume=["len(y) == 160", "grid.x == 1"], replays=False)
    assert (found.level == "proved") == is_right, str(found)


TENSOR = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 y)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b32 at;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [y];
    setp.lt.u32 %p0, %r0, 32;
    @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;
    bar.sync 0;
    ld.shared.u32 %r1, [at];
    shr.u32 %r2, %r0, 5;
    shl.b32 %r2, %r2, 21;
    add.u32 %r2, %r2, %r1;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2];
    tcgen05.wait::ld.sync.aligned;
    bar.sync 0;
    @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
WAITED = "    tcgen05.wait::ld.sync.aligned;\n    bar.sync 0;\n"
FREED = "    @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;\n"
LOADED = "    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2];\n"
TENSORS = [
    ("", "", True),
    (WAITED, "    bar.sync 0;\n", False),
    (WAITED, "    tcgen05.wait::ld.sync.aligned;\n", False),
    (LOADED + WAITED, "    tcgen05.wait::ld.sync.aligned;\n" + LOADED + "    bar.sync 0;\n", False),  # before the load
    (LOADED + WAITED + FREED, FREED + "    bar.sync 0;\n" + LOADED + WAITED, False),  # used after it is freed
    ("[%r2];", "[%r2+32];", False),  # one column too far
    ("    bar.sync 0;\n    ld.shared", "    ld.shared", False),
    ("    bar.sync 0;\n    ld.shared", "    bar.sync 0;\n    st.shared.u32 [at], 0;\n    ld.shared", False),
]


@pytest.mark.parametrize(("old", "new", "is_right"), TENSORS)
def test_tensor_memory_is_allocated_where_it_is_used(old: str, new: str, is_right: bool) -> None:
    assert old in TENSOR
    kernel = ptxlab.parse(TENSOR.replace(old, new, 1), "tensor.ptx")["kernel"]
    found = ptxlab.prove(kernel, block=128, assume=["len(y) == 128", "grid.x == 1"], replays=False)
    assert (found.level == "proved") == is_right, str(found)


FACTORS = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 y)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 at;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [y];
    setp.lt.u32 %p0, %r0, 32;
    setp.eq.u32 %p1, %r0, 0;
    @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;
    @%p1 mbarrier.init.shared.b64 [done], 1;
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    st.shared.u32 [%r2], %r0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    ld.shared.u32 %r3, [at];
    bfe.u32 %r4, %r1, 4, 14;
    cvt.u64.u32 %rd1, %r4;
    or.b64 %rd1, %rd1, 0x400800200000;
    @!%p1 bra wait;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd1;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd1;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [done], 0;
    @!%p2 bra wait;
    st.shared.u32 [%r2], 0;
    tcgen05.fence::after_thread_sync;
    shr.u32 %r5, %r0, 5;
    shl.b32 %r5, %r5, 21;
    add.u32 %r5, %r5, %r3;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r5];
    tcgen05.wait::ld.sync.aligned;
    bar.sync 0;
    @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2], %r6;
    ret;
}
"""
COMMIT = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
COPY = "    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd1;\n"
CHANGED = [
    ("", "", True),
    ("    fence.proxy.async.shared::cta;\n", "", False),
    ("    tcgen05.fence::after_thread_sync;\n", "", False),
    (COMMIT, "    mbarrier.arrive.shared.b64 _, [done];\n", False),
    (COPY + COMMIT, COMMIT + COPY, False),
    ("[%r3], %rd1;", "[%r3+29], %rd1;", False),  # one column more than there are
    ("@!%p1 bra wait;", "@!%p0 bra wait;", False),  # copies of 32 threads
    ("wait:\n", "wait:\n    st.shared.u32 [%r2], 0;\n", False),  # what a copy may still read
    ("st.shared.u32 [%r2], %r0;", "st.shared.u32 [%r2+512], %r0;", True),  # what no copy reads
    ("or.b64 %rd1, %rd1, 0x400800200000;", "or.b64 %rd1, %rd1, 0x401800200000;", False),  # rows beyond the tile
]


@pytest.mark.parametrize(("old", "new", "is_right"), CHANGED)
def test_copies_to_tensor_memory(old: str, new: str, is_right: bool) -> None:
    assert old in FACTORS
    kernel = ptxlab.parse(FACTORS.replace(old, new, 1), "factors.ptx")["kernel"]
    found = ptxlab.prove(kernel, block=128, assume=["len(y) == 128", "grid.x == 1"], replays=False)
    assert (found.level == "proved") == is_right, str(found)
