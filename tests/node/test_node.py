"""Several GPUs: scopes, races and hangs between ranks, peer access, streams and events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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


RIGHT = {
    "release and acquire": (RELEASE, ACQUIRE, ""),
    "fences": ("fence.acq_rel.sys; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];",
               "fence.acq_rel.sys;"),
    "membar": ("membar.sys; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];", "membar.sys;"),
    "atomics": ("red.release.sys.global.add.u32 [%flag], 1;", "atom.acquire.sys.global.or.b32 %f, [%flag], 0;", ""),
}  # fmt: skip
WRONG = {
    "release.gpu": ("st.release.gpu.global.u32 [%flag], 1;", ACQUIRE, ""),
    "acquire.gpu": (RELEASE, "ld.acquire.gpu.global.u32 %f, [%flag];", ""),
    "fence.gpu": ("fence.acq_rel.gpu; st.volatile.global.u32 [%flag], 1;", ACQUIRE, ""),
    "membar.gl": ("membar.gl; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];",
                  "membar.sys;"),
    "volatile": ("st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];", ""),
    "atom.gpu": (RELEASE, "atom.acquire.gpu.global.or.b32 %f, [%flag], 0;", ""),
}  # fmt: skip


@pytest.mark.parametrize("how", RIGHT)
def test_a_message_to_another_gpu_is_ordered_by_system_scope(how: str) -> None:
    node, kernel, arrays = message_passing(*RIGHT[how])
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    assert codes(node, seeds=range(1, 6)) == []
    assert arrays[2].numpy() == 42


@pytest.mark.parametrize("how", WRONG)
def test_narrower_scopes_do_not_order_with_another_gpu(how: str) -> None:
    for seed in (1, 2):
        node, kernel, arrays = message_passing(*WRONG[how])
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        assert "data-race" in codes(node, seed=seed)


def test_all_schedules_of_two_gpus_are_explored() -> None:
    for how, codes_of_all in ((RIGHT["fences"], []), (WRONG["fence.gpu"], ["data-race"])):
        node, kernel, arrays = message_passing(*how)
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        found = node.explore(every=True)
        assert found.is_complete
        assert found.executions > 1
        assert [one.code for one in found.diagnostics] == codes_of_all
        assert {int(outcome.arrays[2][0]) for outcome in found.outcomes} == {42}
        assert arrays[2].data[0] == 0  # memory is as before, and the launches are still to be run
        assert codes(node, schedule=found.outcomes[0].schedule) == codes_of_all
        assert arrays[2].numpy() == 42


def test_exploring_follows_streams_and_events() -> None:
    for is_ordered, values in ((True, {0x01010101}), (False, {0, 0x01010101})):
        node = ptxlab.node(2)
        source, copy = node[0].zeros(1, np.uint32), node[1].zeros(1, np.uint32)
        stream = node[1].stream()
        node[0].fill(source, 1)
        if is_ordered:
            stream.wait(node[0].record())
        stream.copy(copy, source)
        found = node.explore(every=True)
        assert found.is_complete
        assert {int(outcome.arrays[1][0]) for outcome in found.outcomes} == values
        assert bool(found.diagnostics) != is_ordered


def test_a_hang_of_two_gpus_is_found_by_exploring() -> None:
    node, kernel, arrays = message_passing("")
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    (found,) = node.explore().diagnostics
    assert (found.code, found.message) == ("hang", "rank 1 waits for a change that never comes")
    assert "which nothing has written since the launch" in found.notes[0]
    with pytest.raises(ValueError, match="nothing was launched"):
        ptxlab.node(2).explore()


def test_the_same_scopes_order_blocks_of_one_gpu() -> None:
    node, kernel, arrays = message_passing(*WRONG["release.gpu"][:1], "ld.acquire.gpu.global.u32 %f, [%flag];")
    first, second = node[0].stream(), node[0].stream()
    for rank, stream in enumerate((first, second)):
        stream.launch(kernel, 1, 1, [*arrays, rank])
    found = codes(node, seed=3)
    assert found == ["data-race"]  # only of the module's own variable, which both launches write


def test_a_race_between_ranks_names_them_and_the_scope() -> None:
    node, kernel, arrays = message_passing(*WRONG["release.gpu"])
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    with pytest.raises(ptxlab.KernelError) as caught:
        node.synchronize()
    text = ptxlab.render(caught.value.diagnostics)
    assert "unsynchronized: rank 1 reads global memory that rank 0 writes" in text
    assert "`st.release.gpu.global.u32` in line 18" in text
    assert "bytes 0..4 of `flag` of rank 1" in text
    assert "help: release with `.sys` after the write" in text
    assert "event:" not in text


def test_a_hang_says_what_each_rank_polls_and_who_wrote_it() -> None:
    node, kernel, arrays = message_passing(RELEASE.replace("%flag", "%out"))
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert (found.code, found.message) == ("hang", "rank 1 waits for a change that never comes")
    assert found.notes == (
        "rank 1 reads 0 in bytes 0..4 of `flag` of rank 1, which nothing has written since the launch",
        "rank 0 has ended",
    )
    node[0].launch(kernel, 1, 1, [*arrays, 0])
    node[0].fill(arrays[1])
    node[1].wait(node[0].record())
    node[1].launch(kernel, 1, 1, [*arrays, 1])
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert "which the fill of `flag` of rank 1 wrote last" in found.notes[0]


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


def two_operations(node: Node) -> tuple[Array, Array]:
    return node[0].zeros(256, np.uint8, name="from"), node[1].zeros(256, np.uint8, name="to")


def test_a_missing_event_is_a_race_on_the_lines_of_the_host() -> None:
    node = ptxlab.node(2)
    source, to = two_operations(node)
    node[0].fill(source, 1)
    node[1].copy(to, source)
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert "the copy to `to` of rank 1 reads global memory that the fill of `from` of rank 0 writes" in found.message
    lines = {label.span.text: label.span.source.position(label.span.start)[0] for label in found.labels}
    assert set(lines) == {"node[0].fill(source, 1)", "node[1].copy(to, source)"}
    first, second = sorted(lines.values())
    event = f"`event = stream.record()` after line {first}, `stream.wait(event)` before line {second}"
    assert [help.text for help in found.helps] == [f"order them by an event: {event}"]


def test_races_of_the_same_operations_on_other_lines_are_other_races() -> None:
    node = ptxlab.node(2)
    source, to = two_operations(node)
    other_source, other_to = two_operations(node)
    node[0].fill(source, 1)
    node[1].copy(to, source)
    node[0].fill(other_source, 1)
    node[1].copy(other_to, other_source)
    found = node.synchronize(on_error="collect").diagnostics
    assert len({label.span.start for one in found for label in one.labels}) == 4
    for _ in range(3):
        node[0].fill(source, 1)
        node[1].copy(to, source)
    assert codes(node) == ["data-race"]


def test_many_operations_run_together() -> None:
    node = ptxlab.node(1)
    x = [node[0].zeros(1, np.uint8, name="x") for _ in range(2)]
    streams = node[0].stream(), node[0].stream()
    for number in range(150):
        for one, stream in zip(x, streams, strict=True):
            stream.fill(one, number)
    assert codes(node, seed=1) == []
    assert [one.numpy().item() for one in x] == [149, 149]
    streams[1].copy(x[1], x[0])
    assert codes(node) == []
    streams[0].fill(x[0], 1)
    streams[0].fill(x[1], 1)
    streams[1].wait(streams[0].record())
    streams[1].fill(node[0].zeros(1))
    streams[1].copy(x[1], x[0])  # after all of them, though it follows none of them directly
    assert codes(node) == []


def test_events_and_streams_order() -> None:
    node = ptxlab.node(2)
    source, to = two_operations(node)
    node[0].fill(source, 1)
    node[1].wait(node[0].record())
    node[1].copy(to, source)
    node[1].fill(source, 2)
    assert codes(node, seeds=range(1, 5)) == []
    assert (to.numpy() == 1).all()
    assert (source.numpy() == 2).all()


def test_a_launch_knows_what_the_one_before_it_has_acquired() -> None:
    node, kernel, arrays = message_passing()
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    node[1].copy(arrays[2], arrays[0])
    assert codes(node, seeds=range(1, 5)) == []


READ_ONLY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry read(.param .u64 x, .param .u64 result)
{
    .reg .b64 %x, %result;
    .reg .b32 %v;
    ld.param.u64 %x, [x];
    ld.param.u64 %result, [result];
    ld.global.nc.u32 %v, [%x];
    st.global.u32 [%result], %v;
    ret;
}
"""


def test_a_read_only_load_sees_what_a_grid_before_it_wrote() -> None:
    node = ptxlab.node(1)
    x, result = node[0].zeros(1, np.uint32), node[0].zeros(1, np.uint32)
    kernel = ptxlab.parse(READ_ONLY, "read.ptx")["read"]
    node[0].fill(x, 1)
    node[0].launch(kernel, 1, 1, [x, result])
    assert codes(node) == []
    node[0].fill(x, 1)
    node[0].stream().launch(kernel, 1, 1, [x, result])
    assert codes(node) == ["data-race"]


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


def test_one_seed_is_one_run() -> None:
    traces = []
    for _ in range(2):
        node, kernel, arrays = message_passing()
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        traces.append([node.synchronize(seed=seed).coverage.schedules for seed in (5,)])
    assert traces[0] == traces[1]


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


OVERLAP = """.version 8.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 x)
{
    .reg .b64 %x;
    ld.param.u64 %x, [x];
    TRIGGER
    st.global.u32 [%x], 7;
    ret;
}
.visible .entry second(.param .u64 x, .param .u64 result)
{
    .reg .b64 %x, %result;
    .reg .b32 %v;
    ld.param.u64 %x, [x];
    ld.param.u64 %result, [result];
    BEFORE
    ld.global.u32 %v, [%x];
    AFTER
    st.global.u32 [%result], %v;
    ret;
}
"""
TRIGGER, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"


@pytest.mark.parametrize(
    ("trigger", "before", "after", "overlap", "is_right"),
    [
        (TRIGGER, "", WAIT, True, False),
        (TRIGGER, "", "", True, False),
        (TRIGGER, WAIT, "", True, True),
        ("", "", "", True, True),  # the grid before lets it start when it is complete
        (TRIGGER, "", "", False, True),
    ],
)
def test_a_grid_that_overlaps_waits_for_the_one_before(
    trigger: str, before: str, after: str, overlap: bool, is_right: bool
) -> None:
    text = OVERLAP.replace("TRIGGER", trigger).replace("BEFORE", before).replace("AFTER", after)
    module = ptxlab.parse(text, "overlap.ptx")
    node = ptxlab.node(1)
    x, result, copy = (node[0].zeros(1, np.uint32, name=name) for name in ("x", "result", "copy"))
    node[0].launch(module["first"], 2, 1, [node[0].zeros(1, np.uint32)])
    node[0].launch(module["first"], 1, 1, [x], overlap=True)
    node[0].launch(module["second"], 1, 1, [x, result], overlap=overlap)
    node[0].copy(copy, x)  # a stream continues only when all before is complete
    found = node.synchronize(on_error="collect").diagnostics
    assert [one.code for one in found] == ["data-race"] * (not is_right)
    for one in found:
        assert "`griddepcontrol.launch_dependents` let `second` on rank 0 start while `first` on rank 0" in one.notes[0]
        assert [help.text[:24] for help in one.helps] == ["`griddepcontrol.wait;` b"]


@pytest.mark.parametrize("is_right", [True, False])
def test_a_graph_has_the_order_of_streams_and_events(is_right: bool) -> None:
    node = ptxlab.node(1)
    x, y, z = (node[0].zeros(64, np.uint8, name=name) for name in "xyz")
    first, second = node[0].stream(), node[0].stream()
    with node.capture() as graph:
        first.fill(x, 3)
        event = first.record()
        if is_right:
            second.wait(event)
        second.copy(y, x)
    assert (y.numpy() == 0).all()
    first.run(graph)
    first.fill(y, 1)  # after all of the graph
    second.run(graph)  # after the run before
    second.copy(z, y)
    found = node.synchronize(on_error="collect", seed=1).diagnostics
    if is_right:
        assert [one.code for one in found] == ["data-race"]  # of the fill of y, with the second run
        assert {label.span.text[:20] for label in found[0].labels} >= {"first.fill(y, 1)  # "}
    else:
        assert {"first.fill(x, 3)", "second.copy(y, x)"} in [{label.span.text for label in one.labels} for one in found]
    with pytest.raises(ValueError, match="an event of a graph"):
        second.wait(event)


def test_a_graph_runs_often() -> None:
    node = ptxlab.node(2)
    x, y = (node[rank].zeros(64, np.uint8, name=f"x{rank}") for rank in range(2))
    stream = node[1].stream()
    with node.capture() as graph:
        node[0].fill(x, 3)
        stream.wait(node[0].record())
        stream.copy(y, x)
    for _ in range(3):
        node[0].run(graph)
        node[0].copy(x, y)
    assert codes(node, seeds=range(1, 4)) == []
    assert (y.numpy() == 3).all()


def test_a_timeline_has_a_track_for_each_rank_and_stream(tmp_path: Path) -> None:
    node = ptxlab.node(2)
    source, to = two_operations(node)
    stream = node[1].stream()
    node[0].fill(source, 1)
    stream.wait(node[0].record())
    stream.copy(to, source)
    node[1].fill(node[1].zeros(8, name="other"), 2)
    timeline = node.synchronize().timeline
    assert timeline is not None
    spans = {span.label: span for span in timeline.spans}
    fill, copy = spans["the fill of `from` of rank 0"], spans["the copy to `to` of rank 1"]
    assert (fill.block, fill.warp, copy.block, copy.warp) == (0, 0, 1, 1)
    assert fill.start < fill.end <= copy.start < copy.end
    assert fill.observed == (1, 1, copy.start)
    timeline.perfetto(tmp_path / "node.pftrace")
    written = (tmp_path / "node.pftrace").read_bytes()
    for name in (b"rank 1 (times are turns of warps)", b"stream 1", b"saw the fill of `from` of rank 0"):
        assert name in written
