"""Signals that wait."""

import os
import signal
from collections.abc import Iterator

import pytest

from ptxlab import interrupts


class TerminatedError(Exception):
    """What SIGTERM raises in a test."""


def _raise(number: int, _: object) -> None:
    raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.signal(number, _raise) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _run(number: int, delivers: bool, reached: list[str]) -> None:
    with interrupts.deferred() as waiting:
        os.kill(os.getpid(), number)
        reached.append("after the signal")
        if delivers:
            waiting.deliver()
        reached.append("the end")


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, TerminatedError)])
@pytest.mark.parametrize("delivers", [True, False])
def test_a_signal_waits_until_it_is_delivered(number: int, raised: type[BaseException], delivers: bool) -> None:
    reached: list[str] = []
    with pytest.raises(raised):
        _run(number, delivers, reached)
    assert reached == ["after the signal", "the end"][: 1 if delivers else 2]
    assert signal.getsignal(number) is _raise


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.deferred():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
