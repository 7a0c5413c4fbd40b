"""Judges many things in processes, as long as there is time: what is done by then is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from multiprocessing import TimeoutError, get_context
from time import monotonic
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def results(function: Callable[[A], B], given: Sequence[A], processes: int, seconds: float) -> Iterator[B]:
    """What a function makes of each, as they are done; when the time is over, the rest is stopped."""
    end = monotonic() + seconds
    with get_context("spawn").Pool(processes, maxtasksperchild=20) as pool:
        found = pool.imap_unordered(function, given)
        for _ in given:
            try:
                yield found.next(timeout=max(0.0, end - monotonic()))
            except TimeoutError:
                return
