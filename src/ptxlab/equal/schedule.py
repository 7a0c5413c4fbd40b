"""The order in which nodes are evaluated: those that outputs depend on, by depth, many of one operation at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ptxlab.equal.nodes import Ids, Nodes


def needed(nodes: Nodes, roots: Ids) -> Ids:
    """The nodes that some depend on, and these, by depth."""
    marked = np.zeros(nodes.count, bool)
    marked[roots] = True
    kinds = np.array([one.kind for one in nodes.operations])
    kind = nodes.operation_of
    leaves, rows = np.isin(kinds, ("input", "constant"))[kind], (kinds == "row")[kind]
    order = np.argsort(nodes.depth, kind="stable")
    starts = np.searchsorted(nodes.depth[order], np.arange(int(nodes.depth.max(initial=0)) + 2))
    for depth in range(len(starts) - 2, 0, -1):
        own = order[starts[depth] : starts[depth + 1]]
        own = own[marked[own] & ~leaves[own]]
        plain, lists = own[~rows[own]], own[rows[own]]
        for position in range(3):
            given = nodes.operands[position, plain]
            marked[given[given >= 0]] = True
        counts = nodes.operands[1, lists]
        for count in np.unique(counts).tolist():
            given = nodes.table(lists[counts == count]).ravel()
            marked[given[given >= 0]] = True
    return order[marked[order]]


def groups(nodes: Nodes, ids: Ids) -> Iterator[tuple[int, Ids]]:
    """Nodes of one operation and depth, in an order in which operands come first."""
    depth, kind = nodes.depth[ids].astype(np.int64), nodes.operation_of[ids].astype(np.int64)
    key = depth * len(nodes.operations) + kind
    order = np.argsort(key, kind="stable")
    ids, key = ids[order], key[order]
    starts = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), len(ids)]
    for start, end in pairwise(starts):
        if start < end:
            yield int(nodes.operation_of[ids[start]]), ids[start:end]
