"""`ptx.timeline`: what a kernel records of its warps, and how it reads on the host."""

import json
from pathlib import Path

import numpy as np
import pytest

from ptxlab import gpu
from ptxlab.author import Module, kernel, pointer, ptx, u32
from ptxlab.report import PtxError
from ptxlab.timelines import Span, Timeline
from ptxlab.timelines.layout import STEPS, Layout


@kernel(target="sm_90")
def relay(x: pointer[u32], *, space: int = 8, clock: str = "clock64"):
    """Warp 0 counts, then warp 1 does."""
    timeline = ptx.timeline(blocks=2, warps=2, spans=space, clock=clock)
    warp = ptx.tid.x >> 5
    with ptx.when(warp == 0), timeline.role("first").span("count"):
        for _ in ptx.range(50):
            x[ptx.ctaid.x * 64 + ptx.tid.x] = x[ptx.ctaid.x * 64 + ptx.tid.x] + 1
    ptx.bar.sync(0)
    with ptx.when(warp == 1), timeline.role("second").span("count"), timeline.span("inner"):
        x[ptx.ctaid.x * 64 + ptx.tid.x] = 7


def launched(**how: object) -> Timeline:
    chosen = relay.specialize(**how)
    result = chosen.launch(grid=3, block=64, args=[np.zeros(192, np.uint32)], device="cpu")
    assert result.diagnostics == []
    return chosen.timeline()


@pytest.mark.parametrize("clock", ["clock64", "globaltimer"])
def test_spans_are_of_their_warps_and_in_their_order(clock: str) -> None:
    timeline = launched(clock=clock)
    assert (timeline.unit, timeline.lost, timeline.shared_clock) == (STEPS, 0, True)
    found = [(span.block, span.warp, span.role, span.label) for span in timeline.spans]
    one = [(0, "first", "count"), (1, "", "inner"), (1, "second", "count")]
    assert found == [(block, *rest) for block in (0, 1) for rest in one]  # the third block is not recorded
    counted, inner, outer = timeline.spans[:3]
    assert counted.start < counted.end <= outer.start < inner.start < inner.end < outer.end
    assert counted.duration > 50 > inner.duration > 0


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
@pytest.mark.parametrize(("clock", "unit"), [("clock64", "cycles"), ("globaltimer", "ns")])
def test_a_gpu_has_real_clocks(clock: str, unit: str) -> None:
    chosen = relay.specialize(clock=clock)
    chosen.launch(grid=2, block=64, args=[np.zeros(128, np.uint32)], device="cuda")
    timeline = chosen.timeline()
    assert (timeline.unit, timeline.shared_clock) == (unit, clock == "globaltimer")
    counted, inner, outer, *_ = timeline.spans
    assert 0 <= counted.start <= counted.end <= outer.start <= inner.start <= inner.end <= outer.end


def test_spans_beyond_the_space_are_counted() -> None:
    timeline = launched(space=1)
    assert [span.label for span in timeline.spans] == ["count", "inner", "count", "inner"]
    assert timeline.lost == 2
    assert str(timeline).endswith("2 spans more were not recorded: give `ptx.timeline` more `spans`")


def test_without_spans_nothing_is_written() -> None:
    text = str(relay.specialize(space=0))
    assert "clock" not in text
    assert "timeline" not in text
    with pytest.raises(ValueError, match="records no timeline"):
        relay.specialize(space=0).timeline()


def test_a_smaller_launch_shows_nothing_of_a_larger_one() -> None:
    data = np.zeros(128, np.uint32)
    relay.launch(grid=2, block=64, args=[data], device="cpu")
    relay.launch(grid=1, block=32, args=[data], device="cpu")
    assert {(span.block, span.warp) for span in relay.timeline().spans} == {(0, 0)}


def test_before_a_launch_there_are_no_spans() -> None:
    assert relay.specialize(space=5).timeline().spans == ()


def test_kernels_of_a_module_have_one_each() -> None:
    module = Module("sm_90")

    @module.kernel
    def one() -> None:
        with ptx.timeline(blocks=1, warps=1, spans=2).span("first"):
            ptx.bar.sync(0)

    @module.kernel
    def two() -> None:
        with ptx.timeline(blocks=1, warps=1, spans=2).span("second"):
            ptx.bar.sync(0)

    for each in (one, two):
        each.launch(grid=1, block=32, args=[], device="cpu")
    assert [span.label for each in (one, two) for span in each.timeline().spans] == ["first", "second"]


def test_trace_events_name_blocks_and_warps(tmp_path: Path) -> None:
    spans = (Span(0, 3, "producer", "copy", 10, 25), Span(1, 4, "", "add", 0, 5))
    Timeline(spans, "cycles").save(tmp_path / "times.json")
    read = json.loads((tmp_path / "times.json").read_text())
    assert read["otherData"] == {"unit": "cycles", "lost": 0}
    assert [event for event in read["traceEvents"] if event["ph"] == "X"] == [
        {"ph": "X", "name": "copy", "cat": "producer", "pid": 0, "tid": 3, "ts": 10, "dur": 15},
        {"ph": "X", "name": "add", "cat": "", "pid": 1, "tid": 4, "ts": 0, "dur": 5},
    ]
    names = [event["args"]["name"] for event in read["traceEvents"] if event["ph"] == "M"]
    assert names == ["warp 3 producer", "warp 4", "block 0", "block 1"]
    with pytest.raises(ValueError, match=r"saved as `\.json`"):
        Timeline(spans, "cycles").save(tmp_path / "times.txt")


def test_a_table_has_the_part_of_each_span() -> None:
    spans = (Span(0, 0, "producer", "wait", 0, 30), Span(0, 0, "producer", "copy", 30, 40))
    assert Timeline(spans, "cycles").table() == (
        "role      span  count  mean  of cycles\n"
        "producer  wait      1    30        75%\n"
        "producer  copy      1    10        25%"
    )


def test_bytes_of_another_timeline_are_refused() -> None:
    with pytest.raises(ValueError, match="5 bytes are not a timeline of 1 blocks: that has 64"):
        Layout(1, 1, 2).read(b"12345")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"blocks": 0, "warps": 1}, "a timeline of 0 blocks records nothing"),
        ({"blocks": 1, "warps": 1, "clock": "clock"}, "there is no clock 'clock'"),
        ({"blocks": 1 << 20, "warps": 32}, "a timeline of 138,512,695,296 bytes is too large"),
    ],
)
def test_what_cannot_be_recorded_is_refused(how: dict[str, object], said: str) -> None:
    @kernel
    def wrong() -> None:
        ptx.timeline(**how)

    with pytest.raises(PtxError, match=said):
        str(wrong)


def test_a_second_timeline_is_refused() -> None:
    @kernel
    def wrong() -> None:
        ptx.timeline(blocks=1, warps=1)
        ptx.timeline(blocks=1, warps=1)

    with pytest.raises(PtxError, match="`wrong` has a timeline already"):
        str(wrong)
