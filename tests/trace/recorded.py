"""Kernels that the tests of recorded launches run."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import kernels
from ptxlab.measure import Host

SUMS = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry sums(.param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .b32 %r<10>;
    .reg .b64 %rd<8>;
    .reg .pred %p<3>;
    .shared .align 4 .b8 buffer[256];
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u32 %r2, [n];
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    mov.u32 %r4, 0;
LOOP:
    add.u32 %r3, %r3, 7;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra LOOP;
    shl.b32 %r6, %r1, 2;
    mov.u32 %r7, buffer;
    add.u32 %r6, %r6, %r7;
    st.shared.u32 [%r6], %r3;
    bar.sync 0;
    shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;
    setp.eq.u32 %p2, %r1, 3;
    @%p2 add.u32 %r5, %r5, 100;
    st.global.u32 [%rd5], %r5;
    ret;
}
"""
THREADS = 64


def record(path: Path, text: str = SUMS, turns: int = 5, **how: Any) -> ptxlab.Trace:
    """A launch of `sums` as it was recorded."""
    a, b = np.arange(THREADS, dtype=np.uint32), np.zeros(THREADS, np.uint32)
    chosen = {name: how.pop(name) for name in ("blocks", "warps", "lines", "limit") if name in how}
    kernel = ptxlab.parse(text, name="sums.ptx")["sums"]
    kernel.launch(1, THREADS, [a, b, turns], record=ptxlab.Record(path, **chosen), **how)
    return ptxlab.Trace.open(path)


@cache
def ring() -> ptxlab.Trace:
    """One block of a product by `tcgen05`, whose operands come through a ring of two stages."""
    entry = kernels.entry("tcgen05_gemm")
    (launch,) = entry.launches("ring", entry.arrays(Host(7), **entry.small[0]))
    trace = launch.run(device="cpu", detectors=False, record=ptxlab.Record(blocks=[0])).trace
    assert trace is not None
    return trace
