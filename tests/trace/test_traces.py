"""Recordings of several launches that ran at the same time: one clock, what peers wrote, and flags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels.collectives import Group, all_reduce
from ptxlab.trace.accesses import GLOBAL
from ptxlab.trace.trace import Trace
from tests.node.messages import RELEASE, message_passing


def recorded(seed: int, path: Path | None = None, write: str = RELEASE) -> ptxlab.Result:
    """A message from rank 0 to rank 1; rank 1 is launched first."""
    node, kernel, arrays = message_passing(write)
    for rank in (1, 0):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    return node.synchronize(seed=seed, record=ptxlab.Record(path), on_error="collect")


def wrong_loads(trace: Trace) -> list[str]:
    """Loads of global memory that have read something else than the replay has there at that time."""
    found, rows, columns = [], trace.accesses.reads, trace.columns
    for row in np.flatnonzero(rows.space == GLOBAL).tolist():
        entry, instruction = int(rows.entry[row]), int(rows.instruction[row])
        region = trace.accesses.region_at(int(rows.address[row]))
        assert region is not None
        content = np.frombuffer(region.data, np.uint8).copy()
        trace.accesses.image(GLOBAL, 0, region.base, content, int(rows.key[row]))
        start = int(rows.address[row]) - region.base
        slots = [slot for slot in columns.segment_of(entry).slots if slot.role == "register"]
        read = b"".join(columns.bytes_at(entry, slot) for slot in slots if slot.instruction == instruction)
        if content[start : start + int(rows.size[row])].tobytes() != read:
            found.append(trace.program.text(instruction))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_each_load_has_read_what_the_replay_has_there(seed: int) -> None:
    traces = recorded(seed).traces
    assert traces is not None
    assert [wrong_loads(trace) for trace in traces] == [[], []]
    for trace in traces:
        memory = trace.memory("global")
        assert [int(memory[name][0]) for name in ("data", "flag", "out")] == [42, 1, 42]
    # Each rank has the variables of the module for itself.
    assert [int(trace.memory("global")["own"][0]) for trace in traces] == [1, 0]


def test_all_launches_have_one_clock() -> None:
    node = ptxlab.node(2)
    x, total = ([device.array(np.ones(64, np.float32)) for device in node] for _ in range(2))
    all_reduce(Group(node), x, total, "one_shot")
    traces = node.synchronize(seed=1, record=ptxlab.Record()).traces
    assert traces is not None
    times = [clock.times_of(np.arange(clock.count)) for clock in traces.clocks]
    assert sorted(np.concatenate(times).tolist()) == list(range(traces.end))
    assert all((np.diff(own) > 0).all() for own in times)
    for clock in traces.clocks:
        assert len(clock.starts) > 1  # the other has turns in between
        for position in (0, 1, clock.count // 2, clock.count):
            assert position == clock.position(clock.time(position))
    for flag in traces.flags:
        assert "signals of rank" in flag.name
        for wait in flag.waits:
            assert wait.seen >= 0
            assert wait.is_over
            assert flag.writes[wait.seen].launch != wait.launch
            assert flag.writes[wait.seen].time < wait.end


def test_a_flag_that_nothing_writes_is_waited_for_until_the_end() -> None:
    result = recorded(0, write="")
    assert [one.code for one in result.diagnostics] == ["hang"]
    assert result.traces is not None
    (flag,) = result.traces.flags
    (wait,) = flag.waits
    assert flag.name == "flag of rank 1[0]"
    assert not flag.writes
    assert flag.value(1 << 60) == 0
    assert wait.polls > 1
    assert not wait.is_over
    assert wait.seen == -1


def test_a_launch_of_several_opens_with_the_others(tmp_path: Path) -> None:
    recorded(0, tmp_path)
    reader = ptxlab.Trace.open(tmp_path / "000.ptxtrace")
    write = reader.last_write(reader.address("data"), 4)
    assert write is not None
    assert write.by == "rank 0"
    assert write.instruction == "st.global.u32 [%data], 42"
    assert "written by rank 0, line 17" in str(reader.origin("%v"))
    (tmp_path / "001.ptxtrace").unlink()
    with pytest.raises(ptxlab.TraceError, match="has 1 of 2 launches"):
        ptxlab.Trace.open(tmp_path / "000.ptxtrace")


def test_a_recording_is_of_one_schedule() -> None:
    node, kernel, arrays = message_passing()
    node[0].launch(kernel, 1, 1, [*arrays, 0])
    with pytest.raises(ValueError, match="of one schedule"):
        node.synchronize(seeds=2, record=ptxlab.Record())
