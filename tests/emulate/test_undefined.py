"""What is read where nothing was written, as results show it: with the detectors and without."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.undefined import UNDEFINED

HEAD = """.version 8.6
.target sm_100a
.address_size 64
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .shared .align 16 .b8 dynamic[];
.global .u32 zero;
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[64];
    .local .align 16 .b8 own[64];
    .param .b64 size;
    .param .b64 address;
    ld.param.u64 %rd1, [out];
"""
ALLOCATE = "mov.b64 %rd2, 64; st.param.b64 [size], %rd2; call (address), malloc, (size); ld.param.b64 %rd2, [address];"
TENSOR = """
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
    ld.shared.b32 %r2, [tile];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
"""
UNWRITTEN = {
    "shared": "ld.shared.u32 %r1, [tile];",
    "dynamic": "ld.shared.u32 %r1, [dynamic+4];",
    "generic": "mov.u64 %rd2, tile; cvta.shared.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+8];",
    "local": "ld.local.u32 %r1, [own+4];",
    "malloc": f"{ALLOCATE} ld.global.u32 %r1, [%rd2+16];",
    "tensor": TENSOR,
}
ZEROS = {
    "variable": "ld.global.u32 %r1, [zero];",
    "copy": "cp.async.ca.shared.global [tile], [%rd1], 4, 0; cp.async.wait_all; ld.shared.u32 %r1, [tile];",
}


def run(body: str, grid: int = 1, block: int = 1, **how: Any) -> tuple[list[int], list[str]]:
    """What the blocks of a kernel with these statements have in `%r1`, and what is found."""
    last = "mov.u32 %r7, %ctaid.x; mad.wide.u32 %rd1, %r7, 4, %rd1; st.global.u32 [%rd1], %r1; ret; }"
    out = np.zeros(grid, np.uint32)
    how = {"shared": 64, "workers": 1} | how
    result = ptxlab.parse(f"{HEAD}{body}\n{last}\n")["k"].launch(grid, block, [out], **how)
    return out.tolist(), [found.code for found in result.diagnostics]


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_nothing_wrote_is_not_zero(name: str) -> None:
    block = 32 if name == "tensor" else 1
    assert run(UNWRITTEN[name], block=block) == ([UNDEFINED], ["uninitialized-read"])
    assert run(UNWRITTEN[name], block=block, detectors=False) == ([UNDEFINED], [])


@pytest.mark.parametrize("name", ZEROS)
def test_what_hardware_fills_with_zeros_is_zero(name: str) -> None:
    assert run(ZEROS[name]) == run(ZEROS[name], detectors=False) == ([0], [])


def floats() -> Iterator[np.ndarray]:
    bits = np.full(2, UNDEFINED, np.uint32)
    for type in (np.float16, np.float32, np.float64):
        yield bits.view(type)
    yield (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)  # bf16


def test_it_is_not_a_number_in_any_float() -> None:
    assert all(np.isnan(values).all() for values in floats())


def test_no_block_finds_what_one_before_it_left() -> None:
    body = "ld.shared.u32 %r1, [tile]; st.shared.u32 [tile], 5; ld.local.u32 %r2, [own]; st.local.u32 [own], 5;"
    assert run(f"{body} add.u32 %r1, %r1, %r2;", grid=3, detectors=False)[0] == [2 * UNDEFINED] * 3


def test_a_sum_of_more_warps_than_there_are_is_wrong() -> None:
    """As candle's rmsnorm adds up the sums of 32 warps, whatever the size of the block."""
    body = """
    mov.u32 %r2, %tid.x;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 st.shared.f32 [tile], 0f3F800000;
    bar.sync 0;
    mov.u32 %r3, tile;
    and.b32 %r4, %r2, 7;
    mad.lo.u32 %r3, %r4, 4, %r3;
    ld.shared.f32 %r1, [%r3];
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
    add.f32 %r1, %r1, %r2;
    """
    (sum,), found = run(body, block=32)
    assert np.isnan(np.array([sum], np.uint32).view(np.float32))
    assert "uninitialized-read" in found


MULTIPLY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 adds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<3>;
    .shared .align 128 .b8 tile[4096];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [adds];
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r2, 16, %r3;
    mov.b32 %r5, 0x3C003C00;
    st.shared.v4.b32 [%r4], {%r5, %r5, %r5, %r5};
    fence.proxy.async;
    bar.sync 0;
    bfe.u32 %r3, %r3, 4, 14;
    cvt.u64.u32 %rd2, %r3;
    or.b64 %rd2, %rd2, 0x800000080000;
    SUM
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, ADDS, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    shfl.sync.bfly.b32 %f1, %f1, 1, 31, -1;
    mad.wide.u32 %rd1, %r2, 4, %rd1;
    st.global.f32 [%rd1], %f1;
    ret;
}
"""
UNWRITTEN_SUM = "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+2048];"


def multiply(sum: str, adds: str, value: int = 0) -> tuple[float, list[str]]:
    """An element of a product of ones, with a sum before it or not, and what is found."""
    out = np.zeros(128, np.float32)
    text = MULTIPLY.replace("SUM", sum).replace("ADDS", adds)
    result = ptxlab.parse(text)["k"].launch(1, 128, [out, value], on_error="collect")
    assert len(set(out.view(np.uint32).tolist())) == 1
    return float(out[0]), [found.code for found in result.diagnostics]


@pytest.mark.optimized  # of a register that is not read, LLVM may think what it likes
@pytest.mark.parametrize("sum", ["", UNWRITTEN_SUM])
def test_the_sum_that_an_mma_replaces_is_not_read(sum: str) -> None:
    assert multiply(sum, "0") == (16, [])


@pytest.mark.parametrize("adds", ["%p1", "!%p1"])
def test_a_predicate_says_whether_an_mma_reads_the_sum(adds: str) -> None:
    no, yes = (0, 1) if adds == "%p1" else (1, 0)
    assert multiply(UNWRITTEN_SUM, adds, no) == (16, [])
    found, codes = multiply(UNWRITTEN_SUM, adds, yes)
    assert np.isnan(found)
    assert codes == ["uninitialized-read"]
