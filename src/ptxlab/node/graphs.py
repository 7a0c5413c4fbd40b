"""Graphs of a node: operations that are captured once, with their order, and run as often as the host says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ptxlab.node.operations import StreamOperation, after

if TYPE_CHECKING:
    from ptxlab.node.machine import Node


class Graph:
    """Operations with the order that streams and events gave them: `stream.run(graph)` runs them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.operations: list[StreamOperation] = []
        self._ran: set[StreamOperation] = set()

    def run(self, before: set[StreamOperation]) -> set[StreamOperation]:
        """Add its operations to the node after others, and after its last run; those that end it."""
        before = after(before | self._ran)
        made: dict[StreamOperation, StreamOperation] = {}
        for one in self.operations:
            made[one] = one.again({made[other] for other in one.before} or before)
            self.node.add(made[one])
        self._ran = after(made.values()) or before
        return self._ran

    def __repr__(self) -> str:
        return f"<graph of {len(self.operations)} operations>"


@contextmanager
def capture(node: Node) -> Iterator[Graph]:
    """Have all that is launched on a node become a graph."""
    if node.capturing is not None:
        raise RuntimeError("a graph is being captured already")
    graph = node.capturing = Graph(node)
    try:
        yield graph
    finally:
        node.capturing = None
