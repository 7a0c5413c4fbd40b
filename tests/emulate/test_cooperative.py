"""Blocks that all run at once, and the shared memory that the system keeps for groups of several warps."""

import numpy as np
import pytest

import ptxlab

# As `grid.sync()` of CUDA's cooperative groups: a counter at an address that the driver gives in two registers.
MEET = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 seen)
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [seen];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r3, %tid.x;
    setp.ne.u32 %p1, %r3, 0;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    add.u32 %r4, %r1, 100;
    @!%p1 st.global.u32 [%rd3], %r4;
    bar.sync 0;
    @%p1 bra met;
    mov.u32 %r5, %envreg1;
    mov.u32 %r6, %envreg2;
    mov.b64 %rd4, {%r6, %r5};
    fence.acq_rel.gpu;
    atom.global.add.u32 %r7, [%rd4+4], 1;
again:
    ld.volatile.global.u32 %r8, [%rd4+4];
    setp.lt.u32 %p2, %r8, %r2;
    @%p2 bra again;
    fence.acq_rel.gpu;
met:
    bar.sync 0;
    add.u32 %r9, %r1, 1;
    rem.u32 %r9, %r9, %r2;
    mad.wide.u32 %rd5, %r9, 4, %rd1;
    ld.global.u32 %r10, [%rd5];
    mad.wide.u32 %rd6, %r1, 4, %rd2;
    setp.eq.u32 %p3, %r3, 33;
    @%p3 st.global.u32 [%rd6], %r10;
    ret;
}
"""


@pytest.mark.parametrize("blocks", [1, 7, 40])
@pytest.mark.parametrize("detectors", [True, False])
def test_blocks_meet(blocks: int, detectors: bool) -> None:
    kernel = ptxlab.parse(MEET)["k"]
    for _ in range(2):  # each launch begins to count anew
        out, seen = np.zeros(blocks, np.uint32), np.zeros(blocks, np.uint32)
        kernel.launch(blocks, 64, [out, seen], cooperative=True, device="cpu", detectors=detectors, timeout=60)
        assert np.array_equal(seen, np.roll(np.arange(100, 100 + blocks), -1))


def test_blocks_that_cannot_synchronize() -> None:
    out = np.zeros(4, np.uint32)
    with pytest.raises(ptxlab.KernelError, match="out-of-bounds"):
        ptxlab.parse(MEET)["k"].launch(4, 64, [out, np.zeros_like(out)], device="cpu")


TRAP = "    setp.eq.u64 %p2, %rd4, 0;\n    @%p2 trap;\n    fence.acq_rel.gpu;\n    atom"


def test_a_kernel_that_stops_itself_says_how_to_launch_it() -> None:
    out = np.zeros(4, np.uint32)
    text = MEET.replace("    fence.acq_rel.gpu;\n    atom", TRAP)  # as `grid.sync()` does
    help = "`grid.sync()` needs a cooperative launch: `cooperative=True`"
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.parse(text)["k"].launch(4, 64, [out, np.zeros_like(out)], device="cpu")
    assert [one.text for one in raised.value.diagnostics[0].helps] == [help]
    ptxlab.parse(text)["k"].launch(4, 64, [out, np.zeros_like(out)], cooperative=True, device="cpu")
    other = text.replace("%envreg1", "0").replace("%envreg2", "0")
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.parse(other)["k"].launch(4, 64, [out, np.zeros_like(out)], device="cpu")
    assert raised.value.diagnostics[0].helps == ()


KEPT = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<12>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 own[256];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, own;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    mov.u32 %r4, dynamic;
    add.u32 %r4, %r4, %r2;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    mov.u32 %r5, REGISTER;
    add.u32 %r5, %r5, %r2;
    ld.shared.u32 %r6, [%r5];
    st.shared.u32 [%r5], -1;
    bar.sync 0;
    ld.shared.u32 %r7, [%r3];
    ld.shared.u32 %r8, [%r4];
    add.u32 %r7, %r7, %r8;
    mov.u32 %r9, %total_smem_size;
    mad.lo.u32 %r7, %r9, 1000, %r7;
    cvt.u64.u32 %rd2, %r2;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r7;
    ret;
}
"""


@pytest.mark.parametrize("name", ["begin", "0", "1"])
@pytest.mark.parametrize("dynamic", [256, 166912 - 256])
def test_reserved_shared_memory_is_separate(name: str, dynamic: int) -> None:
    out = np.zeros(64, np.uint32)
    kernel = ptxlab.parse(KEPT.replace("REGISTER", f"%reserved_smem_offset_{name}"))["k"]
    result = kernel.launch(1, 64, [out], shared=dynamic, device="cpu")
    assert result.diagnostics == []
    assert np.array_equal(out, 2 * np.arange(64) + (256 + dynamic) * 1000)


def test_one_byte_more_than_there_is() -> None:
    kernel = ptxlab.parse(KEPT.replace("REGISTER", "%reserved_smem_offset_1"))["k"]
    with pytest.raises(ptxlab.KernelError, match="166913 bytes of shared memory, `sm_80` has 166912"):
        kernel.launch(1, 64, [np.zeros(64, np.uint32)], shared=166912 - 255, device="cpu")
