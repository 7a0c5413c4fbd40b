"""Ctrl-C at a time of our choosing: it may come at any instruction, between starting something and remembering it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """What came of Ctrl-C since it was deferred."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self._caught: list[tuple[int, FrameType | None]] = []

    def catch(self, signal: int, frame: FrameType | None) -> None:
        """Remember one: what `deferred` has the signal do."""
        self._caught.append((signal, frame))

    def deliver(self) -> None:
        """Do now what was to be done at Ctrl-C, which in most programs raises `KeyboardInterrupt`."""
        while self._caught:
            self._handler(*self._caught.pop(0))


@contextmanager
def deferred() -> Iterator[Interrupts]:
    """Let Ctrl-C wait until the block delivers it, or ends; other threads than the main one never see it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield Interrupts(lambda *_: None)
        return
    interrupts = Interrupts(handler)
    signal.signal(signal.SIGINT, interrupts.catch)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)
    interrupts.deliver()
