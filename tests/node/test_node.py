"""Several GPUs: peer access, freed memory, multicast, SMs for all blocks, limits of time, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from tests.node.messages import codes, message_passing

FOLLOW = """.version 8.0
.target sm_90
.address_size 64
.visible .entry follow(.param .u64 table)
{
    .reg .b64 %t;
    ld.param.u64 %t, [table];
    ld.global.u64 %t, [%t];
    st.global.u32 [%t], 1;
    ret;
}
"""


def test_memory_of_another_gpu_needs_peer_access() -> None:
    node, kernel, arrays = message_passing(peers=False)
    node[0].launch(kernel, 1, 1, [*arrays, 0])
    assert codes(node) == ["missing-peer-access"]
    node[0].enable_peer_access(node[1])
    node[0].launch(kernel, 1, 1, [*arrays, 0])
    node[1].launch(kernel, 1, 1, [*arrays, 1])
    assert codes(node) == []


def test_freed_memory() -> None:
    node, kernel, arrays = message_passing()
    table = node[0].array(np.array([arrays[0].address], np.uint64))
    follow = ptxlab.parse(FOLLOW, "follow.ptx")["follow"]
    node[0].launch(follow, 1, 1, [table])
    assert codes(node) == []
    arrays[0].free()
    node[0].launch(follow, 1, 1, [table])
    assert codes(node) == ["use-after-free"]
    with pytest.raises(ValueError, match="`data` of rank 1 is freed"):
        node[1].launch(kernel, 1, 1, [*arrays, 1])


MEET = """.version 8.0
.target sm_75
.address_size 64
.visible .entry meet(.param .u64 count)
{
    .reg .pred %p;
    .reg .b64 %count;
    .reg .b32 %r, %n;
    ld.param.u64 %count, [count];
    mov.u32 %n, %nctaid.x;
    red.global.add.u32 [%count], 1;
again:
    ld.volatile.global.u32 %r, [%count];
    setp.lt.u32 %p, %r, %n;
    @%p bra again;
    ret;
}
"""


def test_blocks_that_wait_for_each_other_need_sms_for_all_of_them() -> None:
    node = ptxlab.node(1, gpu="T4")  # 40 SMs, each of which has 64 KB of shared memory
    count = node[0].zeros(1, np.uint32, name="count")
    kernel = ptxlab.parse(MEET, "meet.ptx")["meet"]
    node[0].launch(kernel, 40, 1, [count], shared=40_000)
    assert codes(node) == []
    count.set(0)
    node[0].launch(kernel, 41, 1, [count], shared=40_000)
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert found.code == "hang"
    assert "1 of 41 blocks of rank 0 have not started: the SMs of its GPU hold 40 of them at a time" in found.notes


def test_what_does_not_exist_is_refused() -> None:
    node = ptxlab.node(2)
    with pytest.raises(IndexError, match="rank 2: the node has 2 GPUs, 0 to 1"):
        node[2]
    with pytest.raises(ValueError, match="1 to 16"):
        ptxlab.node(0)
    with pytest.raises(ValueError, match="another node"):
        node[0].fill(ptxlab.node(2)[0].zeros(4))
    with pytest.raises(ValueError, match="a copy of 16 bytes to an array of 32"):
        node[0].copy(node[0].zeros(8), node[0].zeros(4))


COUNT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 x)
{
    .reg .b64 %x;
    .reg .b32 %r;
    ld.param.u64 %x, [x];
again:
    ld.volatile.global.u32 %r, [%x];
    add.u32 %r, %r, 1;
    st.volatile.global.u32 [%x], %r;
    bra again;
}
"""


def test_a_time_limit_says_where_a_rank_was() -> None:
    node, kernel, arrays = message_passing()
    node[1].launch(kernel, 1, 1, [*arrays, 1])
    node[0].launch(ptxlab.parse(COUNT, "count.ptx")["count"], 1, 1, [node[0].zeros(1, np.uint32)])
    (found,) = node.synchronize(timeout=0.3, on_error="collect").diagnostics
    assert found.code == "timeout"
    assert found.labels[0].span.source.name in ("count.ptx", "pass.ptx")


SUM = """.version 8.1
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 result)
{
    .reg .b64 %x, %result;
    .reg .f32 %f;
    ld.param.u64 %x, [x];
    ld.param.u64 %result, [result];
    multimem.ld_reduce.relaxed.sys.global.add.f32 %f, [%x];
    st.global.f32 [%result], %f;
    ret;
}
"""


def test_multicast_addresses_are_of_arrays_of_several_ranks() -> None:
    node = ptxlab.node(3)
    x = [device.array(np.full(1, device.rank + 1, np.float32)) for device in node]
    result = [device.zeros(1) for device in node]
    for device in node:
        device.launch(ptxlab.parse(SUM, "sum.ptx")["sum"], 1, 1, [ptxlab.Multicast(x), result[device.rank]])
    assert codes(node) == []
    assert [one.numpy() for one in result] == [6, 6, 6]
