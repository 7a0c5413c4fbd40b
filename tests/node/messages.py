"""A message from rank 0 to rank 1 by a flag, as a kernel, and what a node finds."""

from __future__ import annotations

import numpy as np

import ptxlab
from ptxlab.node import Array, Node

PASS = """.version 8.0
.target sm_90
.address_size 64
.global .u32 own;
.visible .entry pass(.param .u64 data, .param .u64 flag, .param .u64 out, .param .u32 rank)
{
    .reg .pred %p, %q;
    .reg .b32 %r, %v, %f;
    .reg .b64 %data, %flag, %out;
    ld.param.u64 %data, [data];
    ld.param.u64 %flag, [flag];
    ld.param.u64 %out, [out];
    ld.param.u32 %r, [rank];
    st.global.u32 [own], %r;
    setp.ne.u32 %p, %r, 0;
    @%p bra reader;
    st.global.u32 [%data], 42;
    WRITE
    ret;
reader:
    READ
    setp.eq.u32 %q, %f, 0;
    @%q bra reader;
    FENCE
    ld.global.u32 %v, [%data];
    st.global.u32 [%out], %v;
    ret;
}
"""
RELEASE = "st.release.sys.global.u32 [%flag], 1;"
ACQUIRE = "ld.acquire.sys.global.u32 %f, [%flag];"


def message_passing(write: str = RELEASE, read: str = ACQUIRE, fence: str = "", **how: bool):
    """A node, the arrays of a message from rank 0 to rank 1, and the kernel that sends or receives it."""
    text = PASS.replace("WRITE", write).replace("READ", read).replace("FENCE", fence)
    node = ptxlab.node(2, **how)
    arrays = [node[1].zeros(1, np.uint32, name=name) for name in ("data", "flag", "out")]
    return node, ptxlab.parse(text, "pass.ptx")["pass"], arrays


def codes(node: Node, **how: object) -> list[str]:
    return [found.code for found in node.synchronize(on_error="collect", **how).diagnostics]


def two_operations(node: Node) -> tuple[Array, Array]:
    return node[0].zeros(256, np.uint8, name="from"), node[1].zeros(256, np.uint8, name="to")
