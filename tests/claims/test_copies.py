"""What the texts say about asynchronous copies, prefetches and loads, tried on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.measure import Host
from tests.emulate.launching import kernel, launch, problem

COPY = """
    .shared .align 16 .b8 tile[512];
    mov.u32 %r0, tile;
    ld.param.u64 %rd0, [x];
    cp.async.cg.shared.global [%r0], [%rd0], 16;
    {}
    ld.shared.u32 %r1, [%r0];
    ld.param.u64 %rd1, [y];
    st.global.u32 [%rd1], %r1;
    ret;
"""


def one_copy(waiting: str) -> Any:
    """A thread copies 16 bytes, waits in some way, and reads them: what is wrong with that, or the word it read."""
    x, y = np.full(4, 7, np.uint32), np.zeros(1, np.uint32)
    result = launch(COPY.format(waiting), ".u64 x, .u64 y", [x, y], on_error="collect")
    return result.diagnostics[0].code if result.diagnostics else int(y[0])


@pytest.mark.parametrize(
    ("waiting", "found"),
    [
        ("cp.async.commit_group; cp.async.wait_group 0;", 7),
        ("cp.async.commit_group; cp.async.wait_group 1;", "data-race"),  # one is under way, one may be
        ("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;", 7),  # the younger group is empty
        ("cp.async.wait_group 0;", "data-race"),  # `.cg` makes no group
        ("cp.async.wait_all;", 7),
    ],
)
def test_wait_group_waits_for_all_groups_but_the_youngest(waiting: str, found: Any) -> None:
    assert one_copy(waiting) == found


RING = """
    .shared .align 16 .b8 ring[512];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, ring;
    mad.lo.u32 %r2, %r0, 4, %r1;
    xor.b32 %r3, %r0, {read};
    mad.lo.u32 %r3, %r3, 4, %r1;
    ld.param.u64 %rd0, [x];
    ld.param.u64 %rd1, [y];
    mad.wide.u32 %rd0, %r0, 4, %rd0;
    mad.wide.u32 %rd1, %r0, 4, %rd1;
    mov.u32 %r4, 0;
    cp.async.ca.shared.global [%r2], [%rd0], 4;
    cp.async.commit_group;
    next:
    setp.lt.u32 %p0, %r4, 3;
    xor.b32 %r2, %r2, 256;
    add.u64 %rd0, %rd0, 256;
    @%p0 cp.async.ca.shared.global [%r2], [%rd0], 4;
    cp.async.commit_group;
    cp.async.wait_group 1;
    {after_waiting}
    ld.shared.u32 %r5, [%r3];
    st.global.u32 [%rd1], %r5;
    {after_reading}
    xor.b32 %r3, %r3, 256;
    add.u64 %rd1, %rd1, 256;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, 4;
    @%p0 bra next;
    ret;
"""


@pytest.mark.parametrize(
    ("read", "after_waiting", "after_reading", "found"),
    [
        (0, "", "", None),  # its own word: no barrier
        (0, "bar.sync 0;", "", None),  # as the text has it
        (32, "bar.sync 0;", "", "data-race"),  # a word of another warp: the slot may be filled again too early
        (32, "", "bar.sync 0;", "data-race"),
        (32, "bar.sync 0;", "bar.sync 0;", None),
    ],
)
def test_barriers_are_for_what_others_copied(read: int, after_waiting: str, after_reading: str, found: Any) -> None:
    x, y = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    body = RING.format(read=read, after_waiting=after_waiting, after_reading=after_reading)
    result = launch(body, ".u64 x, .u64 y", [x, y], block=64, on_error="collect")
    assert [one.code for one in result.diagnostics][:1] == ([found] if found else [])
    if found is None:
        assert (y == x ^ read).all()


PREFETCH = """
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r0, %r1, %r2, %r0;
    mul.lo.u32 %r3, %r3, %r2;
    mad.lo.u32 %r3, %r3, 4, %r0;
    ld.param.u32 %r4, [n];
    ld.param.u64 %rd0, [x];
    mad.wide.u32 %rd1, %r3, 4, %rd0;
    setp.lt.u32 %p0, %r3, %r4;
    @%p0 prefetch.global.L2 [%rd1];
    ret;
"""


@pytest.mark.parametrize(
    ("blocks", "prefetches"),
    [(16, 0), (4, 0), (2, 512)],  # a thread for each of 4096 elements; for each fourth; for each eighth
)
def test_a_thread_for_each_element_prefetches_nothing(blocks: int, prefetches: int) -> None:
    x = np.zeros(4096, np.float32)
    result = launch(PREFETCH, ".u64 x, .u32 n", [x, 4096], grid=blocks, block=256)
    assert result.counters["by_instruction"].get("prefetch", 0) == prefetches


def sectors(variant: str) -> tuple[int, int]:
    """Sectors of memory that a variant of `sgemm` asks for, and how few would do."""
    entry = kernels.entry("sgemm")
    arrays = entry.arrays(Host(0), m=32, n=32, k=32)
    (run,) = entry.launches(variant, arrays)
    found = run.run(device="cpu", profile=True).counters["requests"]
    return found["sectors"], found["ideal_sectors"]


def test_neighbours_in_a_warp_should_read_neighbours_in_memory() -> None:
    naive, ideal = sectors("naive")
    coalesced, also_ideal = sectors("coalesced")
    assert coalesced == also_ideal
    assert naive > 4 * ideal


def test_shfl_down_leaves_the_sum_in_lane_0_only() -> None:
    steps = "".join(
        f"shfl.sync.down.b32 %r2, %r1, {distance}, 0x1f, 0xffffffff;\nadd.s32 %r1, %r1, %r2;\n"
        for distance in (16, 8, 4, 2, 1)
    )
    sums = np.zeros(32, np.int32)
    body = f"""mov.u32 %r0, %tid.x;
        mov.u32 %r1, %r0;
        {steps}
        ld.param.u64 %rd0, [sums];
        mad.wide.u32 %rd0, %r0, 4, %rd0;
        st.global.u32 [%rd0], %r1;
        ret;"""
    launch(body, ".u64 sums", [sums], block=32)
    assert [lane for lane in range(32) if sums[lane] == sum(range(32))] == [0]


def test_mul_wide_keeps_all_64_bits() -> None:
    product = np.zeros(1, np.uint64)
    body = (
        "mov.u32 %r0, 0xffffffff; mul.wide.u32 %rd1, %r0, 4; ld.param.u64 %rd0, [p]; st.global.u64 [%rd0], %rd1; ret;"
    )
    launch(body, ".u64 p", [product])
    assert product[0] == 4 * 0xFFFFFFFF


def test_rows_of_ldmatrix_are_aligned_to_16_bytes() -> None:
    body = """.shared .align 128 .b8 tile[1024];
        mov.u32 %r0, %tid.x;
        mov.u32 %r1, tile;
        mad.lo.u32 %r2, %r0, 16, %r1;
        st.shared.v4.b32 [%r2], {{%r0, %r0, %r0, %r0}};
        bar.warp.sync 0xffffffff;
        add.u32 %r2, %r2, {};
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r3}}, [%r2];
        ret;"""
    assert launch(body.format(16), block=32).diagnostics == []
    assert problem(body.format(8), block=32).code == "misaligned-access"


def test_aligned_means_the_whole_warp() -> None:
    body = """mov.u32 %r0, %tid.x;
        mov.f32 %f0, 0f00000000;
        setp.lt.u32 %p0, %r0, 16;
        @%p0 bra done;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
            {%f1, %f2, %f3, %f4}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f0, %f0, %f0};
        done:
        ret;"""
    module = kernel(body).module
    assert module is not None
    (found,) = ptxlab.check(module)
    assert found.code == "divergent-barrier"
    assert found.message == "`mma` needs all threads of the warp, but not all of them get here"
