"""Kernels that tests of the debugger walk through."""

import numpy as np

import ptxlab
from ptxlab.debug import Debugger

EXCHANGE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
  .shared .align 4 .b32 s[64];
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, %tid.x;
  mov.b64 %rd2, s;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.shared.u32 [%rd4], %r1;
  bar.sync 0;
  xor.b32 %r2, %r1, 32;
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd5, %rd2, %rd5;
  ld.shared.u32 %r3, [%rd5];
  mov.u32 %r4, 0;
loop:
  add.u32 %r3, %r3, %r3;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p, %r4, 3;
  @%p bra loop;
  add.s64 %rd6, %rd1, %rd3;
  st.global.u32 [%rd6], %r3;
  ret;
}
"""
STORE, LOAD, DOUBLE, COUNT, LAST = 12, 17, 20, 21, 25
RACE = EXCHANGE.replace("  bar.sync 0;\n", "")
CALL = """.version 8.0
.target sm_80
.address_size 64
.func (.reg .u32 %out) twice(.reg .u32 %in) {
  add.u32 %out, %in, %in;
  ret;
}
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [c];
  mov.u32 %r3, 5;
  call (%r3), twice, (%r3);
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd1], %r3;
  ret;
}
"""
# One line of a source became two instructions, and one of a function that is inlined there.
INLINED = """.version 8.0
.target sm_80
.address_size 64
.file 1 "kernel.cu"
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  .loc 1 10 1
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, 5;
  .loc 1 11 2
  mov.u32 %r2, 0;
  .loc 1 3 1, function_name $helper, inlined_at 1 11 2
  add.u32 %r1, %r1, 1;
  .loc 1 12 1
  st.global.u32 [%rd1], %r1;
  ret;
}
.section .debug_str {
$helper:
.b8 104,101,108,112,101,114,0
}
"""


# A loop over three iterations; line 11 calls line 3, which calls a header.
LOOP = """.version 8.0
.target sm_80
.address_size 64
.file 1 "kernel.cu"
.file 2 "/usr/local/cuda/include/helper.h"
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  .loc 1 10 1
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, 0;
again:
  .loc 1 11 2
  mov.u32 %r2, 5;
  .loc 1 3 1, function_name $helper, inlined_at 1 11 2
  add.u32 %r2, %r2, 1;
  .loc 2 7 1, function_name $helper, inlined_at 1 3 1
  add.u32 %r2, %r2, 1;
  .loc 1 11 2
  add.u32 %r2, %r2, 1;
  .loc 1 12 1
  st.global.u32 [%rd1], %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra again;
  .loc 1 13 1
  ret;
}
.section .debug_str {
$helper:
.b8 104,101,108,112,101,114,0
}
"""


def debugger_of(text: str, threads: int = 64, grid: tuple[int, int] = (1, 1)) -> Debugger:
    """A debugger of a kernel with one array `c` of 64 words."""
    array = np.zeros(64, np.uint32)
    result = ptxlab.parse(text, name="k.ptx")["k"].launch(
        grid=grid, block=threads, args=[array], device="cpu", on_error="collect", record=ptxlab.Record()
    )
    assert result.trace is not None
    found = Debugger(result.trace, result.diagnostics)
    found.owner = result  # type: ignore[attr-defined] # keeps the recording
    return found


# A and B are loaded as fragments from arrays of 16 by 8 and 8 by 8 tf32 numbers.
PRODUCT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<16>; .reg .f32 %f<8>;
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  mov.b32 %r2, %f1;
  mov.u32 %r3, 0;
  mov.b32 %r4, 0x3F800000;
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2, %f3, %f4, %f5},
    {%r2, %r3, %r3, %r3}, {%r4, %r3}, {%f1, %f1, %f1, %f1};
  ret;
}
"""

# The first thread waits at another barrier than its warp.
HANG = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<3>; .reg .pred %p;
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p, %r1, 0;
  @%p bra other;
  bar.sync 0;
other:
  bar.sync 1;
  ret;
}
"""
