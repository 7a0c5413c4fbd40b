"""Expressions: what both kernels compute, as nodes of one store. A node is an operation on earlier nodes.

Two nodes that are the same expression of the same inputs have the same `hash`, of 128 bits: for all values of the
inputs their bits are equal. Nodes are only added, in arrays, many at once; nothing is looked up while a launch is
replayed.

>>> nodes = Nodes()
>>> x, y = nodes.inputs("x", 2, "f32", 4), nodes.inputs("y", 2, "f32", 4)
>>> add = nodes.operation("arithmetic", "add rn f32", "f32", 4)
>>> once, again = nodes.add(add, x, y), nodes.add(add, x, y)
>>> bool((nodes.hashes(once) == nodes.hashes(again)).all())
True
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

NONE = -1
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F,
     0xE7037ED1A0B428DB], np.uint64,
)  # fmt: skip
MOST_NODES = 60_000_000


class TooManyError(Exception):
    """There are more operations than fit into memory, or into the time that there is."""


@dataclass(frozen=True)
class NodeOperation:
    """What a node does with its operands."""

    kind: str
    """`input`, `constant`, `row`, `bytes`, `part`, `mma`, and the operations of `flow.steps`."""
    text: str
    """All that distinguishes it: the function, rounding, types."""
    type: str
    """The type of its result, as the instruction has it."""
    width: int
    """Bytes of its result."""
    detail: Any = field(default=None, compare=False)
    """What gives it a rule: the step of an instruction, an array."""


@dataclass(frozen=True)
class Origin:
    """Where nodes come from: the side, and the number of an instruction in its program."""

    side: int
    launch: int
    instruction: int


class Nodes:
    """All nodes of a comparison, which may take so many seconds."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds, self._started = seconds, time.monotonic()
        self.operations: list[NodeOperation] = []
        self._numbers: dict[tuple[str, str, str, int], int] = {}
        self._seeds: list[tuple[int, int]] = []
        self.origins: list[Origin | None] = [None]
        self._places: dict[Origin, int] = {}
        self.place = 0
        """The origin of what is added, by its number."""
        self.precision = "f32"
        """The format of constants that a function has."""
        self.count = 0
        self._operation = np.zeros(1024, np.int32)
        self._operands = np.full((3, 1024), NONE, np.int64)
        self._hash = np.zeros((2, 1024), np.uint64)
        self._depth = np.zeros(1024, np.int32)
        self._width = np.zeros(1024, np.int8)
        self._place = np.zeros(1024, np.int32)
        self._thread = np.full(1024, NONE, np.int32)
        self._pool = np.zeros(1024, np.int64)
        self._pooled = 0

    # What there is.

    @property
    def operation_of(self) -> npt.NDArray[np.int32]:
        return self._operation[: self.count]

    @property
    def operands(self) -> Ids:
        """The operands of each node, three rows; of a `row`, where its elements start, and how many there are."""
        return self._operands[:, : self.count]

    @property
    def depth(self) -> npt.NDArray[np.int32]:
        return self._depth[: self.count]

    @property
    def width(self) -> npt.NDArray[np.int8]:
        return self._width[: self.count]

    @property
    def thread(self) -> npt.NDArray[np.int32]:
        return self._thread[: self.count]

    def hashes(self, ids: Ids) -> Words:
        """The hashes of nodes, two words each."""
        return self._hash[:, ids]

    def kind(self, node: int) -> NodeOperation:
        """What a node does."""
        return self.operations[int(self._operation[node])]

    def origin(self, node: int) -> Origin | None:
        """Where a node comes from."""
        return self.origins[int(self._place[node])]

    def elements(self, row: int) -> Ids:
        """The elements of a `row`."""
        start, count = self._operands[0, row], self._operands[1, row]
        found: Ids = self._pool[start : start + count]
        return found

    def table(self, rows: Ids) -> Ids:
        """The elements of rows of one length, a line each."""
        counts = self._operands[1, rows]
        assert (counts == counts[0]).all()
        found: Ids = self._pool[self._operands[0, rows][:, None] + np.arange(counts[0])]
        return found

    # What is added.

    def set_origin(self, origin: Origin | None) -> None:
        """Say where the nodes come from that are added from now on."""
        if self._seconds is not None and time.monotonic() - self._started > self._seconds:
            raise TooManyError(f"more than {self._seconds:g} seconds")
        if origin is None:
            self.place = 0
            return
        if origin not in self._places:
            self._places[origin] = len(self.origins)
            self.origins.append(origin)
        self.place = self._places[origin]

    def operation(self, kind: str, text: str, type: str, width: int, detail: object = None) -> int:
        """The number of an operation."""
        key = kind, text, type, width
        if key not in self._numbers:
            digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
            self._numbers[key] = len(self.operations)
            self.operations.append(NodeOperation(kind, text, type, width, detail))
            self._seeds.append((int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")))
        return self._numbers[key]

    def add(self, operation: int, *operands: Ids, thread: Ids | None = None) -> Ids:
        """New nodes of one operation; their numbers."""
        words = [self._hash[:, one] for one in operands]
        return self._append(operation, words, operands, thread)

    def constants(self, bits: Words, type: str, width: int) -> Ids:
        """Nodes of plain numbers, by their bits."""
        number = self.operation("constant", "", type, width)
        words = np.stack([bits, bits ^ np.uint64(0x5851F42D4C957F2D)])
        return self._append(number, [words], (bits.view(np.int64),), None, is_leaf=True)

    def inputs(self, name: str, count: int, type: str, width: int, detail: object = None) -> Ids:
        """Nodes of the elements of an array."""
        number = self.operation("input", name, type, width, detail)
        at = np.arange(count, dtype=np.uint64)
        return self._append(number, [np.stack([at, at])], (at.view(np.int64),), None, is_leaf=True)

    def unwritten(self, count: int, type: str, width: int) -> Ids:
        """Nodes of what nothing has written: each is another unknown."""
        number = self.operation("input", "what nothing has written", type, width)
        at = np.arange(self.count, self.count + count, dtype=np.uint64)
        return self._append(number, [np.stack([at, at])], (at.view(np.int64),), None, is_leaf=True)

    def rows(self, table: Ids, text: str = "") -> Ids:
        """A node for each line of a table of nodes, or of numbers that are not nodes where they are negative."""
        count, length = table.shape
        start = self._pooled
        while self._pooled + table.size > len(self._pool):
            self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])
        self._pool[start : start + table.size] = table.ravel()
        self._pooled += table.size
        number = self.operation("row", f"{text} {length}", "row", 0)
        own = np.where(table >= 0, self._hash[:, np.maximum(table, 0)], _mix(table.view(np.uint64))[None])
        scale = _mix(np.arange(1, length + 1, dtype=np.uint64)) | np.uint64(1)
        words = (_mix(own) * scale).sum(-1, dtype=np.uint64)
        starts = start + length * np.arange(count)
        depth = self._depth[np.maximum(table, 0)].max(-1, initial=0)
        return self._append(number, [words], (starts, np.full(count, length)), None, depth=depth)

    def _append(
        self,
        operation: int,
        words: Sequence[Words],
        operands: Sequence[Ids],
        thread: Ids | None,
        *,
        is_leaf: bool = False,
        depth: npt.NDArray[np.int32] | None = None,
    ) -> Ids:
        count = len(operands[0])
        first, past = self.count, self.count + count
        self._reserve(past)
        for half in (0, 1):
            mixed = np.full(count, self._seeds[operation][half], np.uint64)
            for position, word in enumerate(words):
                mixed += word[half] * _FACTORS[2 * position + half]
            self._hash[half, first:past] = _mix(mixed)
        self._operation[first:past] = operation
        self._width[first:past] = self.operations[operation].width
        self._place[first:past] = self.place
        self._operands[:, first:past] = NONE
        for position, one in enumerate(operands):
            self._operands[position, first:past] = one
        if depth is None:
            depth = np.zeros(count, np.int32)
            for one in () if is_leaf else operands:
                np.maximum(depth, self._depth[one], out=depth)
        self._depth[first:past] = depth + 1
        self._thread[first:past] = NONE if thread is None else thread
        self.count = past
        return np.arange(first, past)

    def _reserve(self, count: int) -> None:
        size = len(self._operation)
        if count <= size:
            return
        if count > MOST_NODES:
            raise TooManyError(f"more than {MOST_NODES:,} operations")
        while size < count:
            size *= 2
        for name in ("_operation", "_operands", "_hash", "_depth", "_width", "_place", "_thread"):
            old = getattr(self, name)
            new = np.full((*old.shape[:-1], size), NONE if name == "_operands" else 0, old.dtype)
            new[..., : self.count] = old[..., : self.count]
            setattr(self, name, new)


def _mix(words: Words) -> Words:
    """Words of which each bit depends on all bits of those given (the finalizer of SplitMix64)."""
    words = words ^ words >> np.uint64(30)
    words = words * np.uint64(0xBF58476D1CE4E5B9)
    words = words ^ words >> np.uint64(27)
    words = words * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


# The order in which nodes are evaluated.


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
