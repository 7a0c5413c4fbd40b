"""Threads of a process that are asleep until a time, against threads of this one."""

import os
import platform
import select
import sys
import threading
import time
from collections.abc import Callable

import pytest

from ptxlab.programs.threads import asleep

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="asks Linux what threads do"
)
LONG = 0.12  # seconds


def reads(pipe: int) -> None:
    os.read(pipe, 1)


@pytest.mark.parametrize(
    ("waits", "is_timed"),
    [
        (lambda pipe, event: time.sleep(LONG), True),
        (lambda pipe, event: event.wait(LONG), True),
        (lambda pipe, event: select.select([pipe], [], [], LONG), True),
        (lambda pipe, event: event.wait(), False),
        (lambda pipe, event: reads(pipe), False),
        (lambda pipe, event: select.select([pipe], [], []), False),
    ],
    ids=["sleep", "wait until a time", "poll until a time", "wait", "read", "poll"],
)
def test_what_ends_at_a_time(waits: Callable[[int, threading.Event], object], is_timed: bool) -> None:
    pipe, end = os.pipe()
    event = threading.Event()
    thread = threading.Thread(target=waits, args=(pipe, event))
    thread.start()
    assert thread.native_id is not None
    until = time.monotonic() + LONG / 2
    seen = [thread.native_id in asleep(os.getpid()) for _ in iter(lambda: time.monotonic() < until, False)]
    assert seen[-1] == is_timed
    event.set()
    os.write(end, b" ")
    thread.join()
    for one in (pipe, end):
        os.close(one)


def test_a_process_that_has_ended_has_no_threads() -> None:
    assert asleep(1 << 30) == {}
