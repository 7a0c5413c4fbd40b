"""`launch(timeline=True)`: when warps run and wait, and what they issue, of any kernel."""

import re
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import draw, gpu, kernels
from ptxlab.measure import Host
from ptxlab.report import KernelError
from ptxlab.timelines import Timeline
from ptxlab.timelines.layout import STEPS
from tests.cli.running import run

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
RELAY = (
    HEAD
    + """
.global .u32 runs = 0;
.visible .entry relay(.param .u64 y)
{
    .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    .shared .align 8 .b64 ready;
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra started;
    mbarrier.init.shared.b64 [ready], 1;
    ld.global.u32 %r3, [runs]; add.u32 %r3, %r3, 1; st.global.u32 [runs], %r3;
started:
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra second;
    mov.u32 %r2, 0;
count:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, 40;
    @%p3 bra count;
    @!%p1 mbarrier.arrive.shared.b64 _, [ready];
    @%p3 bar.sync 1, 32;
    bra last;
second:
    mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0;
    @!%p3 bra second;
last:
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    @%p2 ret;
    exit; // the last of its warp
}
"""
)


def relay(timeline: bool | int = True, **how: object) -> tuple[Timeline, np.ndarray]:
    y = np.zeros(64, np.uint32)
    result = ptxlab.parse(RELAY, name="relay.ptx")["relay"].launch(1, 64, [y], timeline=timeline, **how)
    assert (result.diagnostics, result.timeline is not None) == ([], True)
    return result.timeline, y


def test_warps_run_and_wait() -> None:
    timeline, y = relay()
    assert list(y) == list(range(64))
    assert (timeline.unit, timeline.lost, timeline.shared_clock) == (STEPS, 0, True)
    found = [(span.warp, span.label, span.line) for span in timeline.spans]
    assert found == [
        (0, "runs", 0),
        (0, "waits: bar.sync 0", 17),  # a barrier with a guard that is false is not executed
        (0, "runs", 17),
        (1, "runs", 0),
        (1, "waits: bar.sync 0", 17),
        (1, "runs", 17),
        (1, "waits: mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0", 29),
        (1, "runs", 29),
    ]
    assert all(one.end == two.start for one, two in zip(timeline.spans, timeline.spans[1:], strict=False)
               if one.warp == two.warp)  # fmt: skip
    poll, counting = timeline.spans[6], timeline.spans[2]
    assert poll.duration > 40  # asked again and again, it is one wait
    assert counting.start < poll.end


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_a_gpu_has_real_clocks() -> None:
    timeline, y = relay(device="cuda")
    assert list(y) == list(range(64))
    assert (timeline.unit, timeline.lost) == ("cycles", 0)
    assert [span.label for span in timeline.spans] == [span.label for span in relay(device="cpu")[0].spans]
    module = ptxlab.parse(RELAY, name="relay.ptx")
    for timed in (False, True, False, True):
        module["relay"].launch(1, 64, [y], device="cuda", timeline=timed)
    assert module.get("runs") == 4


def test_spans_beyond_the_space_are_counted() -> None:
    timeline, _ = relay(timeline=1)
    assert [span.label for span in timeline.spans if span.warp == 1] == ["runs", "waits: bar.sync 0", "not recorded"]
    assert timeline.lost == 1
    assert str(timeline).endswith("1 spans more were not recorded: launch with more, as in `timeline=4096`")


def test_variables_are_those_of_the_module() -> None:
    module, y = ptxlab.parse(RELAY, name="relay.ptx"), np.zeros(64, np.uint32)
    module.set("runs", 5)
    for timed in (True, False, True):
        module["relay"].launch(1, 64, [y], timeline=timed)
    assert module.get("runs") == 8


def test_a_finding_is_at_the_place_in_the_users_text() -> None:
    text = RELAY.replace("st.global.u32 [%rd3], %r1", "st.global.u32 [%rd3+99], %r1")
    found = []
    for timed in (False, True):
        with pytest.raises(KernelError) as caught:
            ptxlab.parse(text, name="relay.ptx")["relay"].launch(1, 64, [np.zeros(64, np.uint32)], timeline=timed)
        found.append([(one.code, [label.span for label in one.labels]) for one in caught.value.diagnostics])
    assert found[0] == found[1]


def test_an_edited_module_is_recorded_as_it_is() -> None:
    module = ptxlab.parse(HEAD + ".visible .entry k() { bar.sync 0; bar.sync 0; ret; }", name="k.ptx")
    assert module["k"].body is not None
    del module["k"].body[0]
    timeline = module["k"].launch(1, 32, timeline=True).timeline
    assert timeline is not None
    assert [span.label for span in timeline.spans] == ["runs", "waits: bar.sync 0", "runs"]


def test_a_call_is_a_span_where_the_function_waits() -> None:
    text = (
        HEAD
        + """
    .func meet() { bar.sync 0; ret; }
    .func (.param .b32 r) one() { .reg .b32 %r; mov.u32 %r, 1; st.param.b32 [r], %r; ret; }
    .visible .entry k { { .param .b32 r; call (r), one, (); } call meet, (); }
    """
    )
    timeline = ptxlab.parse(text, name="k.ptx")["k"].launch(1, 32, timeline=True).timeline
    assert timeline is not None
    assert [span.label for span in timeline.spans] == ["runs", "calls: call meet, ()", "runs"]


def test_operations_last_until_a_wait_has_seen_them(tmp_path: Path) -> None:
    entry = kernels.entry("wgmma_gemm")
    arrays = entry.arrays(Host(7), **entry.small[1])
    (launch,) = entry.launches("wgmma", arrays)
    result = launch.run(device="cpu", timeline=True)
    timeline = result.timeline
    assert (result.diagnostics, timeline is not None) == ([], True)
    assert {span.track for span in timeline.spans} == {"warp", "bulk copies", "tensor cores"}
    assert {span.role for span in timeline.spans if span.track == "warp"} == {"loads", "MMAs", "MMAs and stores"}
    loads = [span for span in timeline.spans if span.track == "bulk copies" and "mbarrier" in span.label]
    products = [span for span in timeline.spans if span.track == "tensor cores"]
    assert loads
    assert products
    waits = {(span.block, span.warp, span.end) for span in timeline.spans if span.label.startswith("waits")}
    assert {span.count for span in products} == {4}  # of the warps of a warpgroup
    assert all(span.observed in waits and span.observed[2] == span.end for span in loads + products)
    assert max(span.start for span in products) > min(span.end for span in loads)  # they have waited for operands
    timeline.perfetto(tmp_path / "gemm.pftrace")
    assert b"warp 4 loads" in (tmp_path / "gemm.pftrace").read_bytes()
    drawn = draw.timeline(timeline)
    assert {"warp 0 MMAs and stores", "warp 4 loads", "bulk copies 0", "tensor cores 0"} <= drawn.lines.keys()
    assert {"runs", "waits: mbarrier.try_wait.parity", "wgmma.mma_async.sync"} <= set(drawn.labels)


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "timelines.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert (tmp_path / "relay.pftrace").stat().st_size > 300


@pytest.mark.parametrize("suffix", ["pftrace", "svg", "json"])
def test_the_command_line_writes_a_file(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "relay.ptx").write_text(RELAY)
    given = (tmp_path / "relay.ptx", "--block", 64, "--arg", "u32[64]=zeros", "--timeline")
    result = run(*given, tmp_path / f"out.{suffix}")
    assert result.exit_code == 0, result.output
    assert "waits: bar.sync 0 " in result.output
    assert (tmp_path / f"out.{suffix}").stat().st_size > 300
    for wrong, said in (("out.png", "a timeline is saved as .pftrace"), ("no/out.svg", "No such file")):
        refused = run(*given, tmp_path / wrong)
        assert (refused.exit_code, said in refused.output) == (2, True)
    refused = run(*given, tmp_path / "out.svg", "--seeds", 3)
    assert "`--timeline` is for one launch of a whole grid" in refused.output


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"seeds": 3}, "`timeline` and `seeds`"),
        ({"profile": True}, "`timeline` and `profile`"),
        ({"record": ptxlab.Record()}, "`timeline` and `record`"),
        ({"timeline": -1}, "timeline=-1: expected true, or a number of spans"),
        ({"timeline": "yes"}, "timeline='yes': expected true, or a number of spans"),
    ],
)
def test_what_excludes_a_timeline(how: dict[str, object], said: str) -> None:
    kernel = ptxlab.parse(HEAD + ".visible .entry k() { ret; }", name="k.ptx")["k"]
    with pytest.raises(ValueError, match=said):
        kernel.launch(1, 32, **({"timeline": True} | how))
