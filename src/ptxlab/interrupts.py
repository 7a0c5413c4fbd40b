"""Ctrl-C at a time of our choosing: it may come at any instruction, between starting something and remembering it.

So may SIGTERM, where a function in Python answers it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """What came of Ctrl-C since it was deferred."""

    def __init__(self) -> None:
        self._caught: list[tuple[_Handler, int, FrameType | None]] = []

    def catching(self, handler: _Handler) -> _Handler:
        """What a signal does meanwhile: what its handler is to do is remembered."""
        return lambda number, frame: self._caught.append((handler, number, frame))

    def deliver(self) -> None:
        """Do now what was to be done at Ctrl-C, which in most programs raises `KeyboardInterrupt`."""
        while self._caught:
            handler, number, frame = self._caught.pop(0)
            handler(number, frame)


@contextmanager
def deferred() -> Iterator[Interrupts]:
    """Let Ctrl-C wait until the block delivers it, or ends; other threads than the main one never see it."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, interrupts.catching(handler))
        yield interrupts
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
    interrupts.deliver()
