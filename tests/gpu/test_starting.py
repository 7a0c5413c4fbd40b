"""Launches that machine code starts: what the driver is given, from several threads; without a GPU."""

import ctypes
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ptxlab.gpu.starting import WRONG_CONTEXT, can_start, joined, starting

CONTEXT, CONFIG, FUNCTION = 77, 11, 12
DATA = struct.pack("<4Q", 1, 2, 3, 4)
OFFSETS = [0, 8, 24]  # the parameter in the middle has 16 bytes, as a tensor map has 128
Words = Any  # a pointer to 8-byte words
seen: list[tuple[int, ...]] = []
current = [CONTEXT]


def find_context(found: Words) -> int:
    found[0] = current[0]
    return 0


def set_context(context: int) -> int:
    current[0] = context
    return 0


def launch(config: int, function: int, parameters: Words, extra: int) -> int:
    words = [*struct.unpack("<Q", ctypes.string_at(parameters[0], 8))]
    words += struct.unpack("<2Q", ctypes.string_at(parameters[1], 16))
    words += struct.unpack("<Q", ctypes.string_at(parameters[2], 8))
    seen.append((config, function, *words))
    return 719 if words[0] == 0 else 0


@pytest.fixture
def driver() -> Iterator[tuple[int, int, int]]:
    seen.clear()
    current[0] = CONTEXT
    words, number, status = ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.c_int
    functions = (
        ctypes.CFUNCTYPE(status, number, number, words, number)(launch),
        ctypes.CFUNCTYPE(status, words)(find_context),
        ctypes.CFUNCTYPE(status, number)(set_context),
    )
    launching, finding, setting = (ctypes.cast(one, ctypes.c_void_p).value for one in functions)
    assert launching
    assert finding
    assert setting
    yield launching, finding, setting
    seen.clear()


def test_addresses_are_written_to_parameters(driver: tuple[int, int, int]) -> None:
    start = starting((CONTEXT, CONFIG, FUNCTION), OFFSETS, DATA, [(8, 2), (0, 0)], driver)
    assert start([2**64 - 1, 0, 1 << 47]) == 0
    assert start([5, 0, 6]) == 0
    assert seen == [(CONFIG, FUNCTION, 2**64 - 1, 1 << 47, 3, 4), (CONFIG, FUNCTION, 5, 6, 3, 4)]
    assert start([0, 0, 0]) == 719  # what the driver says


def test_another_context_is_not_launched_in(driver: tuple[int, int, int]) -> None:
    start = starting((CONTEXT + 1, CONFIG, FUNCTION), OFFSETS, DATA, [(0, 0)], driver)
    assert start([5]) == WRONG_CONTEXT
    assert not seen


def test_a_thread_without_a_context_is_given_one(driver: tuple[int, int, int]) -> None:
    current[0] = 0
    assert starting((CONTEXT, CONFIG, FUNCTION), OFFSETS, DATA, [(0, 0)], driver)([5]) == 0
    assert current == [CONTEXT]


def test_several_are_started_one_after_the_other_until_one_fails(driver: tuple[int, int, int]) -> None:
    first, second, third = (
        starting((CONTEXT, CONFIG + number, FUNCTION), OFFSETS, DATA, [(0, number)], driver) for number in range(3)
    )
    start = joined([first, second, third])
    assert start([5, 6, 7]) == 0
    assert [one[:3] for one in seen] == [(CONFIG + number, FUNCTION, 5 + number) for number in range(3)]
    seen.clear()
    assert start([5, 0, 7]) == 719
    assert len(seen) == 2


def test_threads_have_parameters_of_their_own(driver: tuple[int, int, int]) -> None:
    start = starting((CONTEXT, CONFIG, FUNCTION), OFFSETS, DATA, [(0, 0), (24, 1)], driver)

    def run(number: int) -> None:
        for _ in range(200):
            start([number, number])

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 600
    assert all(first == last for *_, first, _, _, last in seen)


def test_large_parameters_are_left_to_python() -> None:
    assert not can_start(5000, 3)
    assert not can_start(100, 200)
