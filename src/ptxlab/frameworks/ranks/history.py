"""What ranks have launched, in the order that their streams and events give it, to be judged once more as a whole.

torch's operators are computed on the host when they are called, so that what was launched before has to be run first:
two kernels with an operator between them never run together. Here each operator is known by what it reads and writes.
`History.judge` runs all of it again from the memory that there was at first, at the same time unless streams and events
order it, and has the detectors say what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.node import Event, Node, Stream
from ptxlab.node.graphs import Graph
from ptxlab.node.operations import StreamOperation, after

MOST = 512  # operations that are judged together


class History:
    """The operations of all ranks since they were judged last."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.is_needed = False  # whether there are streams but the default ones, or collectives that are not waited for
        self._start()

    def _start(self) -> None:
        self._graph = Graph(self._node)
        self._awaited: dict[int, set[StreamOperation]] = {}  # by rank: what its host has waited for
        regions = self._node.memory.regions
        self._initial = {base: region.owner.copy() for base, region in regions.items()}

    @property
    def is_full(self) -> bool:
        return len(self._graph.operations) >= MOST

    def begin(self, region: Region) -> None:
        """Take memory that is used for the first time, as it is now."""
        self._initial[region.base] = region.owner.copy()

    def begin_unwritten(self, region: Region) -> None:
        """Take memory that an operator writes as other bytes than it has now: to write equal ones is not a race."""
        self._initial[region.base] = ~region.owner

    @contextmanager
    def _recording(self) -> Iterator[None]:
        assert self._node.capturing is None
        self._node.capturing = self._graph
        try:
            yield
        finally:
            self._node.capturing = None

    def add(self, rank: int, stream: Stream, action: Callable[[Stream], None]) -> None:
        """Have a stream do something after all that the host of a rank has waited for."""
        with self._recording():
            stream.wait(Event(self._awaited.get(rank, set()), self._graph))
            action(stream)

    def event(self, stream: Stream) -> Event:
        """A point of a stream."""
        with self._recording():
            return stream.record()

    def wait(self, stream: Stream, event: Event) -> None:
        """Have a stream wait for a point of another one; what was judged before is complete."""
        if event.graph is self._graph:
            with self._recording():
                stream.wait(event)

    def wait_on_host(self, rank: int, event: Event) -> None:
        """Have all that a rank launches from now on come after a point of a stream."""
        if event.graph is self._graph:
            self._awaited[rank] = after(self._awaited.get(rank, set()) | event.operations)

    def judge(self, run: Callable[[], Result]) -> Result:
        """Run all of it together, by `run` once it is launched; memory stays as it is."""
        graph = self._graph
        if not self.is_needed or not graph.operations:
            self._start()
            return Result()
        memory = self._node.memory
        before = self._node.held()
        freed = [region for region in memory.freed if region.base in self._initial]
        for region in freed:  # its bytes are gone, and it is there again until all was judged
            region.owner = self._initial[region.base].copy()
            region.data = int(region.owner.ctypes.data)
            memory.regions[region.base], region.is_freed = region, False
        for base, data in self._initial.items():
            if base in memory.regions:
                numpy.copyto(memory.regions[base].owner, data)
        memory.freed = [region for region in memory.freed if region.is_freed]
        try:
            graph.run(set())
            return run()
        finally:
            self._node.restore(before)
            for region in freed:
                memory.free(region)
            self._start()


def box_of(address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> Any:
    """The memory of a tensor as a box of rows; None if it has more dimensions than a box.

    `strides` are in bytes, `size` is that of an element.

    >>> box_of(0, (4, 8), (32, 4), 4).extent, box_of(0, (4, 8), (64, 4), 4).extent, box_of(0, (8, 4), (4, 32), 4).extent
    ((128, 1, 1), (32, 4, 1), (128, 1, 1))
    """
    from ptxlab.node.streams import Box

    if 0 in shape:
        return None
    sizes = sorted((stride, count) for stride, count in zip(strides, shape, strict=True) if count > 1 and stride)
    width, levels = size, list[tuple[int, int]]()
    for stride, count in sizes:
        if not levels and stride == width:
            width *= count
        elif levels and levels[-1][0] * levels[-1][1] == stride:
            levels[-1] = levels[-1][0], levels[-1][1] * count
        else:
            levels.append((stride, count))
    if len(levels) > 2:
        return None
    (row, rows), (slice, slices) = [*levels, (0, 1), (0, 1)][:2]
    return Box(address, (width, rows, slices), (row, slice))
