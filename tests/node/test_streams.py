"""Streams, events, programmatic dependent launches and graphs: what they order, and races where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from tests.node.messages import codes, message_passing, two_operations


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
TRIGGER, WAIT, NON_COHERENT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;", ".nc"


@pytest.mark.parametrize(
    ("trigger", "before", "after", "overlap", "is_right"),
    [
        (TRIGGER, "", WAIT, True, False),
        (TRIGGER, "", "", True, False),
        (TRIGGER, WAIT, "", True, True),
        ("", "", "", True, True),  # the grid before lets it start when it is complete
        (TRIGGER, "", "", False, True),
        (TRIGGER, WAIT + NON_COHERENT, "", True, False),
        ("", WAIT + NON_COHERENT, "", True, True),
        (TRIGGER, NON_COHERENT, "", False, True),
    ],
)
def test_a_grid_that_overlaps_waits_for_the_one_before(
    trigger: str, before: str, after: str, overlap: bool, is_right: bool
) -> None:
    load, before = ".nc" if NON_COHERENT in before else "", before.removesuffix(NON_COHERENT)
    text = OVERLAP.replace("TRIGGER", trigger).replace("BEFORE", before).replace("AFTER", after)
    text = text.replace("ld.global", f"ld.global{load}")
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
        assert [help.text[:24] for help in one.helps] == (
            ["`ld.global` without `.nc", "in CUDA C++, a pointer t"] if load else ["`griddepcontrol.wait;` b"]
        )
        assert one.message.endswith(", through the non-coherent cache") == bool(load)


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


@pytest.mark.parametrize("seed", [0, 3])
def test_the_host_calls_functions_in_the_order_of_streams_and_graphs(seed: int) -> None:
    node = ptxlab.node(2)
    source, copy = node[0].zeros(64, np.uint32, name="source"), node[1].zeros(64, np.uint32, name="copy")
    stream = node[1].stream()
    calls: list[object] = []
    with node.capture() as graph:
        node[0].fill(source, 1)
        node[0].call(lambda: calls.append(int(source.data[5])))
        stream.wait(node[0].record())
        stream.copy(copy, source)
        stream.call(lambda: calls.append(int(copy.data[5]) + 1))
    for _ in range(2):
        node[0].run(graph)
    node[0].call(lambda: calls.append("end"))
    node.synchronize(seed=seed)
    assert calls == [0x01010101, 0x01010102] * 2 + ["end"]
    node[0].call(lambda: None)
    stream.copy(copy, source)
    node[0].fill(source)
    with pytest.raises(ptxlab.KernelError) as wrong:
        node.synchronize(seed=seed)
    assert [one.code for one in wrong.value.diagnostics] == ["data-race"]
    node[0].call(lambda: source.numpy())
    with pytest.raises(RuntimeError, match="must not use the node"):
        node.synchronize()


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
