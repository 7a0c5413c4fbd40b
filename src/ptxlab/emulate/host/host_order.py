"""How the host orders two launches that run at the same time: the calls that are missing, with the lines of both."""

from __future__ import annotations

from pathlib import PurePath

from ptxlab.report import Span
from ptxlab.values import dataclass


@dataclass(frozen=True)
class HostOrder:
    """The calls that order a launch after another one; `{first}` and `{second}` are where these are launched."""

    text: str
    verb: str = "launched"
    """What the host has done on those lines."""
    missing: str = "both run at the same time: no stream and no event orders them"
    """What a note says of two launches of one GPU."""
    near: str = ""
    """The calls for two launches of one GPU, where these are others."""
    is_by_line: bool = False
    """Whether `{first}` is the line above: where each rank runs the same lines, another may have launched earlier."""

    def between(self, first: Span | None, second: Span | None, is_near: bool = True) -> str:
        """What to write for two launches, of one GPU if `is_near`, in the order in which the host issues them."""
        text = (is_near and self.near) or self.text
        is_below = first is not None and second is not None and first.start > second.start
        if self.is_by_line and is_below:
            first, second = second, first
        if first is not None and first == second:
            line = _line(first, None)
            return text.format(first=f"the first launch of {line}", second="the second")
        return text.format(
            first="the first" if first is None else _line(first, second),
            second="the second" if second is None else _line(second, first),
        )


STREAMS = HostOrder(
    "order them by an event: `event = stream.record()` after {first}, `stream.wait(event)` before {second}"
)
RANKS = HostOrder(
    "have all ranks wait for each other: `handle.barrier()` of symmetric memory after {first} and before {second}",
    near="order them by an event: `event = a.record_event()` after {first}, `b.wait_event(event)` before {second}, "
    "where `a` and `b` are their streams; if one is a collective, by `work.wait()`",
    is_by_line=True,
)
GRAPH = HostOrder(
    "let one node depend on the other: `cudaGraphAddDependencies` for {first} and {second}",
    "added",
    "both run at the same time: no path of the graph leads from one to the other",
)
_EVENTS = "order them by an event: `cudaEventRecord` after {first}, `cudaStreamWaitEvent` before {second}"
CUDA = HostOrder(_EVENTS)
PES = HostOrder(
    "have PEs wait for each other: `nvshmem_barrier_all()` between {first}, once that is complete, and {second}; or "
    "let one signal, and the other wait for the signal",
    near=_EVENTS,
)


def _line(span: Span, beside: Span | None) -> str:
    """`line 12`, with the name of the file if the other line is of another one."""
    line = span.source.position(span.start)[0]
    is_same = beside is None or beside.source.name == span.source.name
    return f"line {line}" if is_same else f"line {line} of {PurePath(span.source.name).name}"
