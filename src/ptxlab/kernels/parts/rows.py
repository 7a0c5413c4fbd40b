"""Rows of a matrix, read once: where a row is while its threads go over it again.

A row is read in vectors by the threads that share it: a warp, with several rows a block, a block, or all blocks of a
cluster. Of n threads the first has the vectors 0, n, 2n and so on, so that each access of a warp is one piece of
memory.

Until the row is done with, a thread keeps its vectors in registers, or, where they are too many, in shared memory:
`cp.async` brings them there without a register in between, and no other thread reads them, so that no barrier is
needed. Only what is too long for either, or is read an element at a time, is read again from global memory, piece by
piece. Which of these it is, a `Spread` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ptxlab.author import Kernel, f32, kernel, ptx
from ptxlab.kernels.parts.elements import (
    WIDEST,
    element_pointer,
    keep_what_is_read,
    larger_of,
    load_bits,
    narrowed,
    store,
    store_bits,
    widened,
)
from ptxlab.kernels.parts.reductions import WARP, Cluster, Combine, over_block
from ptxlab.kernels.parts.spreads import ROWS_A_BLOCK, Spread
from ptxlab.measure import Launch
from ptxlab.measure.entry import ceil_div

LOAD = ptx.ld.global_["L2::cache_hint"]
COPY = ptx.cp["async"].cg.shared.global_["L2::cache_hint"]


@cache
def specialize(function: Callable[..., None], spread: Spread, target: str = "sm_80", **constants: Any) -> Kernel:
    """The kernel that a function writes for a spread, and for other compile-time arguments."""
    resident = {} if spread.at_a_time is None else {"minnctapersm": spread.at_a_time // spread.block}
    directives: dict[str, Any] = {"maxntid": spread.block, **resident}
    made: Kernel = kernel(target=target if spread.cluster == 1 else "sm_90", **directives)(function)
    return made.specialise(spread=spread, **constants)


def launch_rows(
    function: Callable[..., None], spread: Spread, rows: int, arguments: Sequence[Any], **constants: Any
) -> Launch:
    """The launch of a kernel for so many rows."""
    made = specialize(function, spread, **constants)
    if spread.cluster > 1:
        blocks = min(ceil_div(rows, spread.rows), spread.clusters or rows) * spread.cluster
        return Launch(made, blocks, spread.block, arguments, spread.shared, spread.cluster, overlap=True)
    return Launch(made, ceil_div(rows, spread.block // spread.threads), spread.block, arguments, shared=spread.shared)


@dataclass
class Piece:
    """What one thread has of a row, or of a piece of a long one."""

    row: Row
    first: Any
    """The column of the first element."""
    inside: list[Any]
    """For each vector, the predicate that it is inside the row; None where it always is."""
    bits: list[list[Any]] | None
    """The vectors in registers; None where they are in shared memory."""
    number: int = 0
    """How many vectors of this thread are between `first` and these."""

    def vectors(self) -> Iterator[Piece]:
        """Vector by vector, so that only one of them has to be in registers."""
        for number, inside in enumerate(self.inside):
            bits = None if self.bits is None else [self.bits[number]]
            yield Piece(self.row, self.first, [inside], bits, self.number + number)

    @property
    def column(self) -> Any:
        """The column of the first of these elements."""
        return self.first + self.number * self.row.spread.step

    @property
    def count(self) -> Any:
        """How many elements these are, as f32."""
        vector = float(self.row.spread.vector)
        some = [ptx.selp.f32(vector, 0.0, inside) for inside in self.inside if inside is not None]
        total = f32(vector * (len(self.inside) - len(some)))
        for one in some:
            total += one
        return total

    @property
    def values(self) -> list[Any]:
        """The elements as f32. Those of bf16 are made of their bits each time, which is cheaper than to keep both."""
        return [value for part in self._words() for value in widened(part, self.row.spread.type)]

    @property
    def largest(self) -> Any:
        """The largest element as f32; of 16 bits, two are compared at once."""
        words = [word for part in self._words() for word in part]
        found, *others = words
        for word in others:
            found = larger_of(self.row.spread.type, found, word)
        first, *second = widened([found], self.row.spread.type)
        return ptx.max.f32(first, second[0]) if second else first

    def _words(self) -> list[list[Any]]:
        if self.bits is not None:
            return self.bits
        return self._read(ptx.ld.shared, self.row.kept, self.row.spread.block, self.row.neutral)

    def load(self, array: Any) -> list[Any]:
        """The elements of these columns in an array that all rows share; the cache keeps it."""
        spread, early = self.row.spread, self.row.early.get(id(array))
        if early is not None:
            bits = self._read(ptx.ld.shared, early, spread.block)
        else:
            source = element_pointer(array, spread.type, spread.vector, self.first)
            bits = self._read(ptx.ld.global_.nc, source, spread.stride)
        return [value for part in bits for value in widened(part, spread.type)]

    def _read(self, load: Any, source: Any, step: int, neutral: float = 0.0) -> list[list[Any]]:
        return read(load, source + self.number * step, self.row.spread, self.inside, neutral, step=step)

    def with_zeros_outside(self, values: Sequence[Any]) -> list[Any]:
        """The values, with zero for those of columns that the row does not have."""
        vector = self.row.spread.vector
        return [
            value if inside is None else ptx.selp.f32(value, 0.0, inside)
            for inside, value in zip((i for i in self.inside for _ in range(vector)), values, strict=True)
        ]

    def store(self, matrix: Any, values: Sequence[Any], type: str | None = None) -> None:
        """Write the elements of these columns, rounded to the type of the matrix: that of the row, or another."""
        spread = self.row.spread
        type = type or spread.type
        target = element_pointer(matrix, type, spread.vector, self.row.start, self.first)
        for number, inside in enumerate(self.inside):
            part = values[number * spread.vector : (number + 1) * spread.vector]
            store(target + (self.number + number) * spread.stride, type, part, inside)

    def add(self, matrix: Any, result: Any) -> Piece:
        """These columns with those of another matrix added to them, rounded as they are written to `result`."""
        spread, row = self.row.spread, self.row
        source = element_pointer(matrix, spread.type, spread.vector, row.start, self.first)
        others = read(LOAD, source, spread, self.inside, row.neutral, row.policy)
        target = element_pointer(result, spread.type, spread.vector, row.start, self.first)
        assert self.bits is not None
        summed = []
        for number, (inside, one, other) in enumerate(zip(self.inside, self.bits, others, strict=True)):
            pairs = zip(widened(one, spread.type), widened(other, spread.type), strict=True)
            summed.append(narrowed([a + b for a, b in pairs], spread.type))
            store_bits(target + number * spread.stride, spread.type, summed[-1], inside)
        return Piece(row, self.first, self.inside, summed)


@dataclass
class Row:
    """The row that this thread has a part of."""

    matrix: Any
    columns: Any
    spread: Spread
    neutral: float
    number: Any
    """Which one it is."""
    start: Any
    """Where it starts in the matrix, in elements."""
    first: Any
    """The column of this thread's first element."""
    policy: Any
    """For the L2 cache."""
    whole: Piece | None = None
    """All of it, unless it is too long."""
    cluster: Cluster | None = None
    """The blocks that share it, where there are several."""
    kept: Any = None
    """Where this thread has it in shared memory."""
    early: dict[int, Any] = field(default_factory=dict)
    """Where it has vectors that all rows share, if they come there with the row."""

    @property
    def source(self) -> Any:
        """Where this thread's first vector is in memory."""
        return element_pointer(self.matrix, self.spread.type, self.spread.vector, self.start, self.first)

    def inside(self) -> list[Any]:
        """For each vector of this thread, whether it is inside the row: all are but perhaps the last."""
        held, step = self.spread.held, self.spread.step
        return [None] * (held - 1) + [self.first + (held - 1) * step < self.columns]

    def pieces(self) -> Iterator[Piece]:
        """What this thread has of the row: one piece, or, of a long row, a loop that reads piece by piece."""
        if self.whole is not None:
            yield self.whole
            return
        spread = self.spread
        for start in ptx.range(0, self.columns, spread.step * spread.held):
            first = start + self.first
            inside = [first + number * spread.step < self.columns for number in range(spread.held)]
            source = element_pointer(self.matrix, spread.type, spread.vector, self.start, first)
            yield Piece(self, first, inside, read(LOAD, source, spread, inside, self.neutral, self.policy))

    def vectors(self) -> Iterator[Piece]:
        """The same vector by vector, for a last pass that has more to hold than the row."""
        for piece in self.pieces():
            yield from piece.vectors()

    def add(self, matrix: Any, result: Any) -> None:
        """Make this row the sum with that of another matrix, which is written to `result`."""
        if self.whole is not None:
            self.whole = self.whole.add(matrix, result)
            return
        for piece in self.pieces():
            piece.add(matrix, result)
        self.matrix = result

    def become(self, other: Row) -> None:
        """Be another row, all of which is in registers, too."""
        self.number.set(other.number)
        self.start.set(other.start)
        assert self.whole is not None
        assert other.whole is not None
        for own, bits in zip(self.whole.bits or [], other.whole.bits or [], strict=True):
            for one, word in zip(own, bits, strict=True):
                one.set(word)

    @property
    def is_first(self) -> Any:
        """Whether this is the first of the threads that share the row."""
        return self.first == 0

    def ask(self, number: int) -> None:
        """Ask for all of it that this thread keeps; it is the first of a cluster's rows, or another."""
        spread = self.spread
        if spread.where == "registers":
            bits = read(LOAD, self.source, spread, self.inside(), self.neutral, self.policy)
            self.whole = Piece(self, self.first, self.inside(), bits)
        elif spread.where == "shared":
            self.kept = self.copy(self.source, number)
            self.whole = Piece(self, self.first, self.inside(), None)

    def copy(self, source: Any, number: int) -> Any:
        """Copy this thread's vectors to shared memory, after those of so many others, and return where they will be."""
        spread = self.spread
        target = kept() + number * spread.held * spread.block
        for index, within in enumerate(self.inside()):
            COPY(target + index * spread.block, source + index * spread.stride, WIDEST, self.policy, when=within)
        return target

    def agree(self, value: Any, combine: Combine) -> Any:
        """One value from those of all threads that share the row."""
        return agree([self], [value], combine)[0]


def agree(rows: Sequence[Row], values: Sequence[Any], combine: Combine) -> list[Any]:
    """One value for each row, from those of all threads that share it."""
    first = rows[0]
    if first.cluster is None:
        return [over_block(value, combine, first.spread.threads) for value in values]
    agreed = first.cluster.combine(values, combine)
    if first.early:
        ptx.cp["async"].wait_all()
    return agreed


def own_row(matrix: Any, rows: Any, columns: Any, spread: Spread, neutral: float = 0.0) -> Row:
    """The row of this thread, with `neutral` beyond its end; all that can be kept is asked for at once."""
    (row,) = own_rows(matrix, rows, columns, spread, neutral)
    return row


def own_rows(
    matrix: Any, rows: Any, columns: Any, spread: Spread, neutral: float = 0.0, of_columns: Sequence[Any] = ()
) -> list[Row]:
    """The row of this thread; where a cluster has several at a time, all of them.

    `of_columns` are vectors that all rows share and that are read once threads have agreed.
    """
    if spread.cluster > 1:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
    thread, number = own_number(rows, spread)
    first, policy = thread * spread.vector, keep_what_is_read()
    cluster = Cluster(spread.block, spread.cluster) if spread.cluster > 1 else None
    found = []
    for further in range(spread.rows):
        own = number + further if further else number
        start = ptx.mul.wide.u32(own, columns)
        found.append(Row(matrix, columns, spread, neutral, own, start, first, policy, cluster=cluster))
    for place, row in enumerate(found):
        row.ask(place)
    early = of_columns[: spread.early]
    if early and spread.where == "shared":
        ptx.cp["async"].commit_group()
    for place, array in enumerate(early, spread.kept - spread.early):
        source = element_pointer(array, spread.type, spread.vector, first)
        found[0].early[id(array)] = found[0].copy(source, place)
    if early and spread.where == "shared":
        ptx.cp["async"].commit_group()
        ptx.cp["async"].wait_group(1)
    elif spread.where == "shared":
        ptx.cp["async"].wait_all()
    return found


def own_number(rows: Any, spread: Spread) -> tuple[Any, Any]:
    """The number of this thread among those that share its row, and the number of that row."""
    if spread.threads == WARP:
        number = ptx.ctaid.x * ROWS_A_BLOCK + (ptx.tid.x >> 5)
        with ptx.when(number >= rows):
            ptx.ret()
        return ptx.tid.x & (WARP - 1), number
    if spread.cluster > 1:
        return ptx.cluster_ctarank * spread.block + ptx.tid.x, ptx.clusterid.x * spread.rows
    return ptx.tid.x, ptx.ctaid.x


def kept() -> Any:
    """Where this thread keeps its vectors in shared memory."""
    return (ptx.dynamic_shared(f32) + ptx.tid.x * 4).vector(4)


def read(
    load: Any,
    source: Any,
    spread: Spread,
    inside: list[Any],
    neutral: float = 0.0,
    policy: Any = None,
    step: int | None = None,
) -> list[list[Any]]:
    """Vectors as they are in memory, so many from one to the next: by default as many as threads share the row."""
    step = spread.stride if step is None else step
    return [
        load_bits(load, source + number * step, spread.type, spread.vector, neutral, within, policy)
        for number, within in enumerate(inside)
    ]
