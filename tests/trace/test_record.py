"""What is recorded of a launch, and what is known at each of its steps."""

import os
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.emulate.translate.compile import runtime_code
from ptxlab.measure import Host
from ptxlab.trace.barriers import MbarrierState

from .recorded import SUMS, THREADS, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> ptxlab.Trace:
    return record(tmp_path_factory.mktemp("trace") / "sums.ptxtrace")


def test_each_instruction_of_each_thread_is_a_step(trace: ptxlab.Trace) -> None:
    assert str(trace) == "<trace of `sums`: 2,496 steps of 64 threads; the kernel ended>"
    assert len(trace.steps_of(7)) == 39
    assert str(trace.step(0)) == "       0  block 0 thread 0  line 11: mov.u32 %r1, %tid.x  → %r1 = 0"
    (step,) = (trace.step(n) for n in trace.steps_of(3) if trace.step(n).line == 32)
    assert (step.executed, step.results, step.lane, step.active) == (True, {"%r5": 137}, 3, 1 << 3)
    (step,) = (trace.step(n) for n in trace.steps_of(4) if trace.step(n).line == 32)
    assert (step.executed, step.results) == (False, {})


def test_registers_are_known_after_any_step(trace: ptxlab.Trace) -> None:
    step = trace.step(int(trace.steps_at(21)[1]))
    assert step.registers() == {"%r1": 0, "%r2": 5, "%r3": 14, "%r4": 1, "%p1": True} | {
        name: value for name, value in step.registers().items() if name.startswith("%rd")
    }
    assert trace.registers(3)["%r5"] == 137
    assert [write.value for write in trace.history("%r4", 9)] == [0, 1, 2, 3, 4, 5]
    assert [write.line for write in trace.history("%r3", (9, 0))] == [18, *[21] * 5]
    with pytest.raises(KeyError, match="no register `%r77` in `sums`"):
        trace.history("%r77")


def test_memory_is_known_after_any_step(trace: ptxlab.Trace) -> None:
    expected = (np.arange(THREADS) ^ 1) + 35 + 100 * (np.arange(THREADS) == 3)
    assert trace.memory("global")["b"].tolist() == expected.tolist()
    assert not trace.step(1000).memory("global")["b"].any()
    assert trace.memory("shared").view(np.uint32).tolist() == list(range(35, 35 + THREADS))
    found = trace.last_write(trace.address("b", 3), 4)
    assert found is not None
    assert (found.line, found.thread, found.value) == (33, 3, (137).to_bytes(4, "little"))
    assert trace.last_write(trace.address("a", 3), 4) is None
    with pytest.raises(ValueError, match="expected one of global, shared, local, param, const"):
        trace.memory("texture")


def test_barriers_are_known_after_any_step(trace: ptxlab.Trace) -> None:
    (barrier,) = trace.barriers()
    assert str(barrier) == "barrier 0: 0 arrived, complete 1 times"
    (barrier,) = trace.step(1500).barriers()
    assert str(barrier) == "barrier 0: 45 arrived, complete 0 times"


def test_some_warps_lines_and_steps(tmp_path: Path) -> None:
    trace = record(tmp_path / "warp.ptxtrace", warps=[1])
    assert [thread // 32 for thread in trace.columns.threads] == [1] * 32
    trace = record(tmp_path / "lines.ptxtrace", lines=[21])
    assert {step.line for step in trace} == {21}
    trace = record(tmp_path / "limit.ptxtrace", limit=100)
    assert (trace.steps, trace.end) == (100, "the limit of the recording was reached")
    assert [trace.step(n).thread for n in (0, 99)] == [0, 3]
    with pytest.raises(IndexError, match="step 100: there are steps 0 to 99"):
        trace.step(100)
    with pytest.raises(ptxlab.KernelError, match=r"block \(1, 0, 0\) is to be recorded, the grid is \(1, 1, 1\)"):
        record(tmp_path / "block.ptxtrace", blocks=[1])


def test_a_result_has_its_trace() -> None:
    kernel = ptxlab.parse(SUMS)["sums"]
    data = [np.arange(THREADS, dtype=np.uint32), np.zeros(THREADS, np.uint32), 1]
    result = kernel.launch(1, THREADS, data, record=ptxlab.Record(warps=[0]))
    assert result.trace is not None
    assert result.trace.steps == 32 * 23
    path = result.trace.path
    assert path.exists()
    del result
    assert not path.exists()
    assert kernel.launch(1, THREADS, data).trace is None
    with pytest.raises(ValueError, match="`record` and `seeds`: a recording is of one launch"):
        kernel.launch(1, THREADS, data, record=ptxlab.Record(), seeds=2)


def test_calls_have_registers_of_their_own(tmp_path: Path) -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.func (.param .u32 out) twice(.param .u32 in)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [in];
    add.u32 %r2, %r1, %r1;
    st.param.u32 [out], %r2;
    ret;
}
.visible .entry sums(.param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .b32 %r<4>;
    .param .u32 given, got;
    ld.param.u32 %r1, [n];
    st.param.u32 [given], %r1;
    call (got), twice, (given);
    ld.param.u32 %r3, [got];
    ret;
}
"""
    trace = record(tmp_path / "call.ptxtrace", text, 21)
    step = trace.step(int(trace.steps_at(8)[0]))
    assert (step.function, step.registers()) == ("twice", {"%r1": 21, "%r2": 42})
    assert trace.step(int(trace.steps_at(18)[0])).registers() == {"%r1": 21}
    path = [(trace.step(n).line, trace.step(n).depth) for n in trace.steps_of(0)]
    assert path == [(16, 0), (17, 0), (18, 0), (7, 1), (8, 1), (9, 1), (10, 1), (19, 0), (20, 0)]
    assert trace.registers(0) == {"%r1": 21, "%r3": 42}


def test_a_shuffle_reads_within_the_segments_of_each_lane(tmp_path: Path) -> None:
    down = "setp.ge.u32 %p2, %r1, 36; selp.u32 %r8, 0x101f, 0x181f, %p2; shfl.sync.down.b32 %r5, %r3, 9, %r8, -1;"
    trace = record(tmp_path / "sums.ptxtrace", SUMS.replace("shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;", down))
    sources = [trace.origin("%r5", thread).sources[0].what for thread in (35, 36)]
    assert sources == ["%r3 of thread 35", "%r3 of thread 45"]  # of 8 and of 16 lanes


def test_each_lane_of_a_shuffle_reads_where_it_says_itself(tmp_path: Path) -> None:
    turned = "xor.b32 %r8, %r1, 31; shfl.sync.idx.b32 %r5, %r3, %r8, 31, -1;"
    trace = record(tmp_path / "sums.ptxtrace", SUMS.replace("shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;", turned))
    sources = [trace.origin("%r5", thread).sources[0].what for thread in (32, 35, 63)]
    assert sources == ["%r3 of thread 63", "%r3 of thread 60", "%r3 of thread 32"]


def test_a_reduction_comes_from_all_lanes(tmp_path: Path) -> None:
    text = SUMS.replace("shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;", "redux.sync.add.u32 %r5, %r3, -1;")
    found = record(tmp_path / "sums.ptxtrace", text).origin("%r5", 40)
    assert [one.what for one in found.sources] == [f"%r3 of thread {thread}" for thread in range(32, 64)]


COPIED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry copied(.param .u64 a) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  .shared .align 16 .b8 tile[64];
  ld.param.u64 %rd1, [a];
  mov.u32 %r1, tile;
  cp.async.ca.shared.global [%r1], [%rd1], 16;
  cp.async.wait_all;
  ld.shared.u32 %r2, [%r1+8];
  ret;
}
"""


def test_a_copy_comes_from_what_it_read_and_the_addresses_it_was_started_with() -> None:
    given = np.arange(7, 11, dtype=np.uint32)
    trace = ptxlab.parse(COPIED)["copied"].launch(1, 1, [given], record=ptxlab.Record()).trace
    assert trace is not None
    loaded = trace.origin("%r2").sources[0]
    assert (loaded.what, loaded.line) == ("bytes 8..12 of shared memory", 10)
    assert [(one.what, one.role) for one in loaded.sources] == [
        ("a[2]", "value"), ("%r1 of thread 0", "address"), ("%rd1 of thread 0", "address"),
    ]  # fmt: skip


def test_mbarriers_have_phases_arrivals_and_bytes() -> None:
    entry = kernels.entry("tcgen05_gemm")
    (launch,) = entry.launches("one_tile", entry.arrays(Host(7), **entry.small[0]))
    trace = launch.run(device="cpu", detectors=False, record=ptxlab.Record(blocks=[0])).trace
    assert trace is not None
    assert trace.blocks == [0]
    found = [barrier for barrier in trace.barriers() if isinstance(barrier, MbarrierState)]
    assert [(one.expected, one.missing, one.bytes, one.phase > 0) for one in found] == [(1, 1, 0, True)] * len(found)
    first = next(n for n in range(trace.steps) if any(isinstance(b, MbarrierState) for b in trace.step(n).barriers()))
    assert isinstance(trace.step(first).barriers()[0], MbarrierState)


DROPS = """.version 8.0
.target sm_90
.address_size 64
.shared .align 8 .b64 bar;
.visible .entry drops() {
  .reg .b64 %state;
  mbarrier.init.shared::cta.b64 [bar], 3;
  mbarrier.arrive_drop.shared::cta.b64 %state, [bar];
  mbarrier.arrive.shared::cta.b64 %state, [bar], 2;
  mbarrier.arrive.shared::cta.b64 %state, [bar];
  ret;
}
"""


def test_a_thread_that_drops_out_is_not_expected_in_the_next_phase() -> None:
    trace = ptxlab.parse(DROPS)["drops"].launch(1, 1, [], record=ptxlab.Record()).trace
    assert trace is not None
    (history,) = trace.recorded_barriers.histories(0)
    states = zip(history.phase.tolist(), history.expected.tolist(), history.missing.tolist(), strict=True)
    assert list(states) == [(0, 3, 3), (0, 3, 2), (0, 3, 0), (1, 2, 2), (1, 2, 1)]
    assert str(trace.barriers()[0]) == "bar: phase 1, 1 of 2 arrivals, 0 bytes pending"


def test_a_launch_that_is_not_recorded_has_a_runtime_without_it() -> None:
    plain, recording = (b"".join(runtime_code(records)) for records in (False, True))
    assert (b"recording.record\0" in plain, b"recording.record\0" in recording) == (False, True)


def test_no_descriptor_is_left_open() -> None:
    module = ptxlab.parse(SUMS)
    a, b = np.arange(THREADS, dtype=np.uint32), np.zeros(THREADS, np.uint32)

    def count() -> int:
        module["sums"].launch(1, THREADS, [a, b, 1], record=ptxlab.Record())
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = count()
    assert [count() for _ in range(3)] == [before] * 3
