"""Streams of other libraries, and the one that launches go to while a graph is recorded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlab.gpu.graphs import Graph


class _Recording(threading.local):
    graph: Graph | None = None


recording = _Recording()
"""What launches of this thread are recorded into, if anything."""


def stream_handle(stream: object) -> int:
    """The number that the driver knows a stream by: None is the default stream.

    >>> stream_handle(None), stream_handle(7)
    (0, 7)
    """
    if stream is None:
        return 0 if recording.graph is None else recording.graph.stream
    if isinstance(stream, int):
        return stream
    known = getattr(stream, "__cuda_stream__", None)
    if known is not None:
        return int((known() if callable(known) else known)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, Numba
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{type(stream).__name__} is not a stream: pass its number, or an object with `__cuda_stream__`")
