"""Small kernels for the tests of launches on a GPU."""

from typing import Any

import ptxlab
from ptxlab import ir
from ptxlab.cli.samples import SAXPY
from ptxlab.device.result import Result

__all__ = ["SAXPY", "kernel", "saxpy", "store", "text"]

HEAD = """.version 8.0
.target {target}
.address_size 64
{before}.visible .entry k({parameters})
{{
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .reg .f32 %f<10>;
    .reg .pred %p<10>;
{body}
    ret;
}}
"""


def text(body: str, parameters: str = ".param .u64 out", before: str = "", target: str = "sm_80") -> str:
    """A module whose kernel `k` does this."""
    return HEAD.format(body=body.strip("\n"), parameters=parameters, before=before, target=target)


def kernel(text: str) -> ir.Function:
    """The kernel of a module that has one."""
    module = ptxlab.parse(text, name="k.ptx")
    return module[module.entries[0]]


def saxpy(x: Any, y: Any, device: str = "cuda", **how: Any) -> Result:
    """A launch of `SAXPY` with 1,000 elements."""
    return kernel(SAXPY).launch(4, 256, [x, y, 2.0, 1000], device=device, **how)


def store(register: str) -> str:
    """Statements that write a number of 32 bits for each thread of the grid."""
    return f"""
    ld.param.u64 %rd1, [out];
    mov.u32 %r7, %ctaid.x;
    mov.u32 %r8, %ntid.x;
    mov.u32 %r9, %tid.x;
    mad.lo.u32 %r7, %r7, %r8, %r9;
    mul.wide.u32 %rd2, %r7, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2], {register};"""


WILD = text("    mov.u64 %rd1, 16;\n    st.global.u32 [%rd1], 1;", "")
MISALIGNED = text("    ld.param.u64 %rd1, [out];\n    ld.global.u32 %r1, [%rd1+1];\n    st.global.u32 [%rd1], %r1;")
TRAP = text("    trap;", "")
ENDLESS = text("again:\n    bra again;")
COUNT = text(
    """
    ld.global.u32 %r1, [total];
    add.u32 %r1, %r1, 1;
    st.global.u32 [total], %r1;"""
    + store("%r1"),
    before=".global .u32 total = 40;\n",
)
CLUSTER = text("    mov.u32 %r1, %cluster_ctarank;" + store("%r1"), target="sm_90")
CLOCK = text("    mov.u32 %r1, %clock;" + store("%r1"))
DYNAMIC = text(
    """
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r2, %r1, 1024;
    mov.u32 %r3, room;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    ld.shared.u32 %r4, [%r3];"""
    + store("%r4"),
    before=".extern .shared .align 16 .b8 room[];\n",
)

# The same, with shared memory that the kernel declares itself.
BOTH_KINDS_OF_SHARED = DYNAMIC.replace(
    "    mov.u32 %r1, %tid.x;", "    .shared .u32 word[64];\n    mov.u32 %r1, %tid.x;\n    st.shared.u32 [word], 1;", 1
)
