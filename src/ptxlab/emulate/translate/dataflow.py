"""What holds at the blocks of a function, found by going over them until nothing changes any more.

Blocks are visited in the order of control flow, or against it, and again only if something that they depend on has
changed: for most programs that is little more than once each, whatever order their text has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from ptxlab.ir.flow import Flow


def forwards(flow: Flow) -> list[int]:
    """All blocks, those that run first first; those that are never reached last."""
    return list(dict.fromkeys([*flow.ordered(), *range(len(flow.blocks))]))


def backwards(flow: Flow) -> list[int]:
    """All blocks, those that run last first."""
    return forwards(flow)[::-1]


def settle(order: Sequence[int], visit: Callable[[int], Iterable[int]]) -> None:
    """Visit each block, and again those that a visit names, the first in `order` first."""
    rank = {number: at for at, number in enumerate(order)}
    pending = list(range(len(order)))  # a heap
    waiting = set(pending)
    while pending:
        at = heappop(pending)
        waiting.discard(at)
        for other in visit(order[at]):
            if rank[other] not in waiting:
                waiting.add(rank[other])
                heappush(pending, rank[other])
