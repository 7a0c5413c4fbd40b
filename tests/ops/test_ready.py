"""Launches that lack nothing but addresses: where these go, and which memory they count in."""

import struct
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxlab.ops import ready
from ptxlab.ops.ready import LARGE, PAGE, PAGES, Ready, Workspace


class Prepared:
    """What a launch on a GPU would be: four parameters of 8 bytes, and what was started."""

    signature = SimpleNamespace(slots=[(8 * number, 8) for number in range(4)])
    parameters = struct.pack("<4Q", 1, 2, 3, 4)

    def __init__(self) -> None:
        self.started: list[tuple[int, ...]] = []

    def starter(self, data: bytes, changing: Sequence[tuple[int, int]]) -> Any:
        def start(addresses: list[int]) -> int:
            words = [*struct.unpack("<4Q", data)]
            for place, number in changing:
                words[place // 8] = addresses[number]
            self.started.append(tuple(words))
            return 0

        return start


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> dict[int, Prepared]:
    """What was prepared for each stream, without a GPU."""
    monkeypatch.setattr(ready, "current", lambda gpu: nullcontext())
    monkeypatch.setattr(Workspace, "kept", {})
    monkeypatch.setattr(Workspace, "recorded", {})
    monkeypatch.setattr(Workspace, "spare", {})
    return {}


def launch_with(prepared: dict[int, Prepared]) -> Any:
    return SimpleNamespace(prepare=lambda stream, device: prepared.setdefault(stream, Prepared()))


def test_addresses_go_where_their_parameters_are(prepared: dict[int, Prepared]) -> None:
    like = np.zeros(1, np.uint8)
    steps = [(launch_with(prepared), [(1, 0), (0, 2)], True)]
    found = Ready(0, steps, Workspace("test", like, 0, {3: 16}))
    found.start([70, 99, 80], stream=5)
    found.start([71, 99, 81], stream=5)
    found.start([72, 99, 82], stream=6)
    own = {stream: Workspace.kept[0, stream, "test"][0] for stream in (5, 6)}
    addresses = {stream: memory.ctypes.data for stream, memory in own.items()}
    assert prepared[5].started == [(80, 70, 3, addresses[5]), (81, 71, 3, addresses[5])]
    assert prepared[6].started == [(82, 72, 3, addresses[6])]
    assert addresses[5] != addresses[6]
    assert not own[5].any()


def test_memory_of_a_stream_grows_and_a_graph_has_its_own(
    prepared: dict[int, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    like = np.zeros(1, np.uint8)
    small, large = (Workspace("test", like, 0, {3: size}, {2: 2 * size}) for size in (16, 64))
    first, grown, later = (one.on(5) for one in (small, large, small))
    assert first[0].keys() == {2, 3}
    assert [memory.nbytes for memory in grown[1]] == [64, 128]
    assert later == grown
    found = Ready(0, [(launch_with(prepared), [(0, 0)], True)], small)
    found.start([7], 5)
    monkeypatch.setattr(small, "is_recorded", lambda: True)
    for graph in (1, 1, 2):
        monkeypatch.setattr(ready, "recording_on", lambda stream, graph=graph: graph)
        found.start([8], 5)
    monkeypatch.setattr(small, "is_recorded", lambda: False)
    found.start([9], 5)
    eager, recorded, next, other, again = (counter for *_, counter in prepared[5].started)
    assert eager == again == later[0][3] != recorded
    assert recorded == next != other


def test_a_graph_sets_no_counters_to_0_when_it_runs(
    prepared: dict[int, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_to_0: list[int] = []

    def zeros(like: Any, bytes: int) -> Any:
        set_to_0.append(bytes)
        return np.zeros(bytes, np.uint8)

    monkeypatch.setattr(ready, "zeros", zeros)
    few, many = (Workspace("test", np.zeros(1, np.uint8), 0, {3: size}) for size in (16, PAGE + 1))
    few.on(5)
    assert set_to_0 == [PAGES * PAGE, 16]
    for one in (few, many):
        monkeypatch.setattr(one, "is_recorded", lambda: True)
    monkeypatch.setattr(ready, "recording_on", lambda stream: 1)
    (recorded,) = few.on(5)[1]
    assert set_to_0[2:] == []
    assert recorded.nbytes == PAGE
    assert not recorded.any()
    many.on(5)
    assert set_to_0[2:] == [PAGE + 1]  # none was there before the graph was recorded


def test_a_graph_takes_counters_of_many_bytes_that_are_0_already(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to_0: list[int] = []
    monkeypatch.setattr(Workspace, "spare", {})
    monkeypatch.setattr(Workspace, "kept", {})

    def zeros(like: Any, bytes: int) -> Any:
        set_to_0.append(bytes)
        return np.zeros(bytes, np.uint8)

    monkeypatch.setattr(ready, "zeros", zeros)
    many = Workspace("test", np.zeros(1, np.uint8), 0, {3: 2 * PAGE})
    many.on(5)
    monkeypatch.setattr(many, "is_recorded", lambda: True)
    graphs = iter([1, 1, 2, 2])
    monkeypatch.setattr(ready, "recording_on", lambda stream: next(graphs))
    first, again, other = (many.on(5)[0][3] for _ in range(3))
    assert set_to_0 == [LARGE * 2 * PAGE, 2 * PAGE]
    assert first == again != other
