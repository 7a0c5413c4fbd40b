"""The recorded launches of a program, in their order: a debugger is in one of them, and goes from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxlab.debug.lines import Lines
from ptxlab.report import Diagnostic
from ptxlab.trace import Trace


@dataclass(frozen=True)
class Launch:
    """A recorded launch, read when it is first wanted."""

    kernel: str
    open: Callable[[], Trace]
    findings: Sequence[Diagnostic] = ()
    place: str = ""
    """Where the host launched it, if it was a program that did."""


class Launches:
    """Launches of a program."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = launches
        self._lines: dict[tuple[str, str], Lines] = {}

    def __len__(self) -> int:
        return len(self.launches)

    def lines_of(self, trace: Trace) -> Lines:
        """The lines of a trace's program, which launches of one kernel share."""
        key = str(trace.description["text"]), trace.program.kernel.name
        if key not in self._lines:
            self._lines[key] = Lines(trace.program)
        return self._lines[key]

    @cached_property
    def all_lines(self) -> list[Lines]:
        """The lines of all kernels that were launched."""
        first = {one.kernel: one for one in reversed(self.launches)}
        return [self.lines_of(one.open()) for one in first.values()]
