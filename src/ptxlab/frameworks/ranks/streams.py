"""Streams and events of torch on the GPUs of a node: `torch.cuda.Stream`, `Event`, and the stream that is current."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from ptxlab.node.streams import Event as NodeEvent
from ptxlab.node.streams import Stream as NodeStream

if TYPE_CHECKING:
    from ptxlab.frameworks.ranks.session import Ranks


class Stream:
    """As `torch.cuda.Stream`: it is ordered with no other one, nor with the default stream."""

    ranks: ClassVar[Ranks]

    def __init__(self, device: object = None, priority: int = 0, **_: object) -> None:
        self.device_index = self.ranks.gpus.number(device)
        self.own: NodeStream = self.ranks.node[self.device_index].stream()
        self.priority = priority
        self._before: list[tuple[Stream, int]] = []  # of each `with` that it is in
        self.ranks.history.is_needed = True

    @classmethod
    def of(cls, own: NodeStream) -> Stream:
        """A stream of the node, as torch sees it."""
        made = cls.__new__(cls)
        made.device_index, made.own, made.priority, made._before = own.device.rank, own, 0, []
        return made

    @property
    def cuda_stream(self) -> int:
        """A number that no other stream of the GPU has; 0 for the default one."""
        return self.own.number

    @property
    def stream_id(self) -> int:
        """The same."""
        return self.own.number

    @property
    def device(self) -> Any:
        return self.ranks.gpus.device(self.device_index)

    def record_event(self, event: Event | None = None) -> Event:
        """An event after what was launched on this stream."""
        event = event or type(self).event_type()
        event.record(self)
        return event

    event_type: ClassVar[type[Event]]

    def wait_event(self, event: Event) -> None:
        """Have what is launched on this stream from now on wait for an event."""
        if event.points is not None:
            now, past = event.points
            self.own.wait(now)
            self.ranks.history.wait(self.own, past)

    def wait_stream(self, stream: Stream) -> None:
        """Have what is launched on this stream from now on wait for all that was launched on another one."""
        self.wait_event(stream.record_event())

    def synchronize(self) -> None:
        """Have the host wait for all that was launched on this stream."""
        self.record_event().synchronize()

    def query(self) -> bool:
        """Whether all is complete, which it is once it was asked for."""
        self.synchronize()
        return True

    def __enter__(self) -> Stream:
        self._before.append((self.ranks.current_stream(self.device_index), self.ranks.turns.device))
        self.ranks.use_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        stream, device = self._before.pop()
        self.ranks.use_stream(stream)
        self.ranks.turns.device = device

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """As `torch.cuda.Event`: a point of the stream that records it."""

    ranks: ClassVar[Ranks]

    def __init__(self, *_: object, **__: object) -> None:
        self.points: tuple[NodeEvent, NodeEvent] | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Have it be complete when all is that was launched on a stream so far."""
        own = (stream or self.ranks.current_stream()).own
        self.points = own.record(), self.ranks.history.event(own)

    def wait(self, stream: Stream | None = None) -> None:
        """Have a stream wait for it."""
        (stream or self.ranks.current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Have the host wait for it."""
        self.ranks.wait()
        if self.points is not None:
            self.ranks.history.wait_on_host(self.ranks.turns.rank, self.points[1])

    def query(self) -> bool:
        """Whether it is complete, which it is once it was asked for."""
        self.synchronize()
        return True

    def elapsed_time(self, end: Event) -> float:
        """Not known: the emulator has no clock of a GPU."""
        return math.nan


def stream_type_of(ranks: Ranks) -> type[Stream]:
    """`torch.cuda.Stream` for these ranks."""
    event = type("Event", (Event,), {"ranks": ranks})
    return type("Stream", (Stream,), {"ranks": ranks, "event_type": event})


def functions(ranks: Ranks) -> dict[str, object]:
    """What programs see of streams in `torch.cuda`."""

    @contextmanager
    def on(chosen: Stream | None) -> Iterator[None]:
        if chosen is None:
            yield
            return
        with chosen:
            yield

    def use(chosen: Stream | None) -> None:
        if chosen is not None:
            ranks.use_stream(chosen)

    return {
        "Stream": ranks.stream_type,
        "Event": ranks.stream_type.event_type,
        "stream": on,
        "StreamContext": on,
        "set_stream": use,
        "current_stream": lambda device=None: ranks.current_stream(ranks.gpus.number(device)),
        "default_stream": lambda device=None: ranks.default_streams[ranks.gpus.number(device)],
    }
