"""Launches that lack nothing but addresses: where these go, and when a result would be written over what is read."""

import struct
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ptxlab.kernels.functions import ready
from ptxlab.kernels.functions.ready import Ready


class Prepared:
    """What a launch on a GPU would be: four parameters of 8 bytes, and what was started."""

    signature = SimpleNamespace(slots=[(8 * number, 8) for number in range(4)])
    parameters = struct.pack("<4Q", 1, 2, 3, 4)

    def __init__(self) -> None:
        self.started: list[tuple[int, ...]] = []

    def start(self, data: bytes) -> None:
        self.started.append(struct.unpack("<4Q", data))


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> dict[int, Prepared]:
    """What was prepared for each stream, without a GPU."""
    monkeypatch.setattr(ready, "current", lambda gpu: nullcontext())
    return {}


def launch_with(prepared: dict[int, Prepared]) -> Any:
    return SimpleNamespace(prepare=lambda stream: prepared.setdefault(stream, Prepared()))


def test_addresses_go_where_their_parameters_are(prepared: dict[int, Prepared]) -> None:
    asked: list[int] = []

    def memory(stream: int) -> tuple[dict[int, int], Any]:
        asked.append(stream)
        return {3: 1000 + stream}, None

    found = Ready(launch_with(prepared), 0, [1, 0], [16, 16], 1, memory)
    found.start([70, 80], stream=5)
    found.start([71, 81], stream=5)
    found.start([72, 82], stream=6)
    assert prepared[5].started == [(80, 70, 3, 1005), (81, 71, 3, 1005)]
    assert prepared[6].started == [(82, 72, 3, 1006)]
    assert asked == [5, 6]  # a stream has its memory once


@pytest.mark.parametrize(
    ("addresses", "overlaps"),
    [
        ([0, 100, 200], False),
        ([0, 100, 64], False),  # it begins where the first ends, and ends before the second
        ([0, 100, 63], True),
        ([0, 95, 64], True),
        ([0, 132, 100], False),
        ([0, 131, 100], True),
    ],
)
def test_a_result_over_what_is_read(prepared: dict[int, Prepared], addresses: list[int], overlaps: bool) -> None:
    found = Ready(launch_with(prepared), 0, [0, 1, 2], [64, 50, 32], 2, lambda stream: ({}, None))
    assert found.overlaps(addresses) == overlaps
