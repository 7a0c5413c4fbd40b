"""Launches that are recorded although they do not ask for it: those of code that is run to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace

from ptxlab.device.options import LaunchOptions
from ptxlab.device.record import Record
from ptxlab.device.result import Result
from ptxlab.values import dataclass


@dataclass
class RecordedLaunches:
    """What is to be recorded of each launch, and the results."""

    record: Record
    results: list[Result] = field(default_factory=list)


_recording: ContextVar[RecordedLaunches | None] = ContextVar("recording", default=None)


@contextmanager
def recording_launches(record: Record) -> Iterator[list[Result]]:
    """Record each launch on the emulator that is made inside; their results, in order."""
    made = RecordedLaunches(record)
    token = _recording.set(made)
    try:
        yield made.results
    finally:
        _recording.reset(token)


def with_record(options: LaunchOptions) -> LaunchOptions:
    """The options of a launch, with what is to be recorded of it."""
    made = _recording.get()
    is_one = options.seeds is None and options.schedule is None and options.record is None
    return options if made is None or not is_one else replace(options, record=made.record)


def keep(result: Result) -> Result:
    """The result of a launch, which is one of those that were asked for if it was recorded."""
    made = _recording.get()
    if made is not None and result.recording is not None:
        made.results.append(result)
    return result
