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
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ptxlab.author import Kernel, f32, kernel, ptx, u64
from ptxlab.kernels.parts.elements import (
    SIZES,
    WIDEST,
    element_pointer,
    keep_what_is_read,
    larger_of,
    load_bits,
    moved,
    narrowed,
    store,
    store_bits,
    widened,
)
from ptxlab.kernels.parts.reductions import WARP, Cluster, Combine, over_block
from ptxlab.kernels.parts.spreads import Spread
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


@dataclass(frozen=True)
class Vector:
    """Elements after each other that one thread has of a row, and perhaps of other arrays: one access each."""

    row: Row
    first: Any
    """The column of this thread's first vector."""
    inside: Any
    """The predicate that it is inside the row; None where it always is."""
    bits: list[Any] | None
    """What is in registers; None where it is in shared memory."""
    number: int = 0
    """How many vectors of this thread are between `first` and this one."""
    size: int = 0
    """Its elements: as many as one access takes, or one at the ends of a row that are not aligned."""

    @property
    def column(self) -> Any:
        """The column of the first of these elements."""
        return self.first + self.number * self.row.spread.step

    @property
    def words(self) -> list[Any]:
        """The elements as they are in memory."""
        if self.bits is not None:
            return self.bits
        row = self.row
        return self._read(ptx.ld.shared, row.kept + self.number * row.spread.block, row.neutral)

    @property
    def values(self) -> list[Any]:
        """The elements as f32. Those of bf16 are made of their bits each time, which is cheaper than to keep both."""
        return widened(self.words, self.row.spread.type)

    def load(self, array: Any) -> list[Any]:
        """The elements of these columns in an array that all rows share; the cache keeps it."""
        return widened(self.bits_of(array), self.row.spread.type)

    def bits_of(self, array: Any) -> list[Any]:
        """The same as it is in memory."""
        spread, early = self.row.spread, self.row.early.get(id(array))
        ready = self.row.ready.get((id(array), id(self.first), self.number))
        if ready is not None:
            return ready
        if early is not None:
            bits = self._read(ptx.ld.shared, early + self.number * spread.block)
        elif spread.has_ends and self.size > 1:
            bits = self.between(ptx.ld.global_.nc, array)
        else:
            bits = self._read(ptx.ld.global_.nc, self.place(array))
        return bits

    def place(self, array: Any, *start: Any, type: str | None = None) -> Any:
        """Where these columns are in an array, or in the row of a matrix that starts there."""
        spread = self.row.spread
        return element_pointer(array, type or spread.type, self.size, *start, self.first) + self.number * spread.stride

    def between(self, load: Any, array: Any, *start: Any, neutral: float = 0.0, policy: Any = None) -> list[Any]:
        """The elements of an array where these columns are not aligned: from the two vectors that have some of them."""
        spread = self.row.spread
        base, shift = self.row.aligned(array, self.first, *start)
        base = base + self.number * spread.stride
        some = shift != 0 if self.inside is None else (shift != 0) & self.inside
        one = load_bits(load, base, spread.type, spread.vector, neutral, self.inside, policy)
        other = load_bits(load, base + 1, spread.type, spread.vector, neutral, some, policy)
        return moved(one, other, shift)

    def _read(self, load: Any, source: Any, neutral: float = 0.0, policy: Any = None) -> list[Any]:
        return load_bits(load, source, self.row.spread.type, self.size, neutral, self.inside, policy)

    def of_matrix(self, matrix: Any) -> list[Any]:
        """The elements of these columns in the same row of a matrix."""
        row = self.row
        if row.spread.is_shifted and self.size > 1:
            return self.between(LOAD, matrix, row.start, neutral=row.neutral, policy=row.policy)
        return self._read(LOAD, self.place(matrix, row.start), row.neutral, row.policy)

    def store(self, matrix: Any, values: Sequence[Any], type: str | None = None) -> None:
        """Write the elements of these columns, rounded to the type of the matrix: that of the row, or another."""
        type, stage = type or self.row.spread.type, self.row.stage
        if stage is not None:
            place = (stage.row + self.first).vector(self.size) + self.number * self.row.spread.stride
            store_bits(place, type, narrowed(values, type), self.inside, ptx.st.shared)
            return
        store(self.place(matrix, self.row.start, type=type), type, values, self.inside)

    def add(self, matrix: Any, result: Any) -> Vector:
        """These columns with those of another matrix added to them, rounded as they are written to `result`."""
        type = self.row.spread.type
        pairs = zip(self.values, widened(self.of_matrix(matrix), type), strict=True)
        summed = narrowed([a + b for a, b in pairs], type)
        store_bits(self.place(result, self.row.start), type, summed, self.inside)
        return replace(self, bits=summed)


@dataclass(frozen=True)
class Piece:
    """What one thread has of a row, or of a piece of a long one."""

    vectors: list[Vector]

    @property
    def values(self) -> list[Any]:
        """The elements as f32."""
        return [value for vector in self.vectors for value in vector.values]

    def load(self, array: Any) -> list[Any]:
        """The elements of these columns in an array that all rows share."""
        return [value for vector in self.vectors for value in vector.load(array)]

    @property
    def count(self) -> Any:
        """How many elements these are, as f32."""
        total = f32(float(sum(one.size for one in self.vectors if one.inside is None)))
        for one in self.vectors:
            if one.inside is not None:
                total += ptx.selp.f32(float(one.size), 0.0, one.inside)
        return total

    @property
    def origin(self) -> Any:
        """One of these elements, if there is one."""
        first, *others = [(one.values[0], one.inside) for one in self.vectors]
        found = first[0]
        if first[1] is not None:
            for value, inside in [*others, first]:
                found = value if inside is None else ptx.selp.f32(value, found, inside)
        return found

    @property
    def largest(self) -> Any:
        """The largest element as f32; of 16 bits, two are compared at once."""
        type = self.vectors[0].row.spread.type
        found: dict[int, Any] = {}  # by the bits that a word has
        for word in (word for vector in self.vectors for word in vector.words):
            width = word.type.width
            found[width] = larger_of(type, found[width], word) if width in found else word
        values = [value for word in found.values() for value in widened([word], type)]
        largest, *others = values
        for value in others:
            largest = ptx.max.f32(largest, value)
        return largest

    def with_zeros_outside(self, values: Sequence[Any]) -> list[Any]:
        """The values, with zero for those of columns that the row does not have."""
        whether = (one.inside for one in self.vectors for _ in range(one.size))
        return [
            value if inside is None else ptx.selp.f32(value, 0.0, inside)
            for inside, value in zip(whether, values, strict=True)
        ]


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
    thread: Any = None
    """The number of this thread among those that share the row."""
    is_there: Any = None
    """Whether there is such a row; None where there always is."""
    whole: Piece | None = None
    """All of it, unless it is too long."""
    cluster: Cluster | None = None
    """The blocks that share it, where there are several."""
    kept: Any = None
    """Where this thread has it in shared memory."""
    early: dict[int, Any] = field(default_factory=dict)
    """Where it has vectors that all rows share, if they come there with the row."""
    ready: dict[Any, list[Any]] = field(default_factory=dict)
    """Vectors that all rows share which are in registers, by array, column and number."""
    stage: Any = None
    """Where its results are put together with those of others, if they are."""
    shifts: dict[Any, Any] = field(default_factory=dict)
    """What `aligned` has found, by array and column."""

    @property
    def source(self) -> Any:
        """Where this thread's first vector is in memory."""
        return element_pointer(self.matrix, self.spread.type, self.spread.vector, self.start, self.first)

    def begin_aligned(self, like: Any) -> None:
        """Have vectors begin where those of a matrix are aligned, with single elements before them."""
        spread = self.spread
        address = element_pointer(like, spread.type, 1, self.start).address
        before = ptx.cvt.u32.u64(address) // SIZES[spread.type] + spread.margin
        self.head = spread.margin + (0 - before & spread.vector - 1)
        self.first = self.head + self.thread * spread.vector

    def aligned(self, array: Any, column: Any, *start: Any) -> tuple[Any, Any]:
        """The vector that has the element of a column, and how many bytes of it are before that."""
        key = id(array), id(column)
        if key not in self.shifts:
            type, vector = self.spread.type, self.spread.vector
            address = element_pointer(array, type, 1, *start, column).address
            base = ptx.pointer_to(f32, "global", ptx.and_.b64(address, -WIDEST, out=u64()))
            pointer = element_pointer(base, type, vector)
            self.shifts[key] = pointer, ptx.cvt.u32.u64(address) & WIDEST - 1
        return self.shifts[key]

    def inside(self) -> list[Any]:
        """For each vector of this thread, whether it is inside the row: all are but perhaps the last."""
        held, step, spread = self.spread.held, self.spread.step, self.spread
        last = self.first + (held - 1) * step
        rest = spread.vector + spread.margin if spread.has_ends else 1
        inside = last + rest <= self.columns
        return [self.is_there] * (held - 1) + [inside if self.is_there is None else inside & self.is_there]

    def ends(self) -> list[Vector]:
        """Single elements of this thread before and after what is in vectors."""
        spread = self.spread
        half, most = spread.ends, self.columns - spread.margin
        tail = self.head + (most - self.head) // spread.vector * spread.vector
        found = []
        for number in range(ceil_div(2 * half, spread.threads)):
            own = self.thread + number * spread.threads
            is_head = own < half
            column = ptx.selp.u32(own, tail + own - half, is_head)
            inside = column < ptx.selp.u32(self.head, self.columns, is_head)
            inside = inside if self.is_there is None else inside & self.is_there
            found.append(Vector(self, column, inside, None, size=1))
        return found

    def pieces(self) -> Iterator[Piece]:
        """What this thread has of the row: one piece, or, of a long row, a loop that reads piece by piece."""
        if self.whole is not None:
            yield self.whole
            return
        spread = self.spread
        for start in ptx.range(0, self.columns, spread.step * spread.held):
            first = start + self.first
            inside = [first + number * spread.step < self.columns for number in range(spread.held)]
            yield self.read([Vector(self, first, one, None, at, spread.vector) for at, one in enumerate(inside)])

    def read(self, vectors: list[Vector]) -> Piece:
        """These vectors in registers."""
        return Piece([replace(one, bits=one.of_matrix(self.matrix)) for one in vectors])

    def vectors(self) -> Iterator[Vector]:
        """The same vector by vector, for a last pass that has more to hold than the row."""
        for piece in self.pieces():
            yield from piece.vectors

    def add(self, matrix: Any, result: Any) -> None:
        """Make this row the sum with that of another matrix, which is written to `result`."""
        if self.whole is not None:
            self.whole = Piece([one.add(matrix, result) for one in self.whole.vectors])
            return
        for vector in self.vectors():
            vector.add(matrix, result)
        self.matrix = result

    def become(self, other: Row) -> None:
        """Be another row, all of which is in registers, too."""
        self.number.set(other.number)
        self.start.set(other.start)
        assert self.whole is not None
        assert other.whole is not None
        for own, vector in zip(self.whole.vectors, other.whole.vectors, strict=True):
            for one, word in zip(own.words, vector.words, strict=True):
                one.set(word)

    @property
    def is_first(self) -> Any:
        """Whether this is the first of the threads that share the row."""
        is_first = self.thread == 0
        return is_first if self.is_there is None else is_first & self.is_there

    def ask(self, number: int) -> None:
        """Ask for all of it that this thread keeps; it is the first of a cluster's rows, or another."""
        spread = self.spread
        if spread.where == "global":
            return
        if spread.where == "shared":
            self.kept = self.copy(self.source, number)
        vector = spread.vector
        found = [Vector(self, self.first, inside, None, at, vector) for at, inside in enumerate(self.inside())]
        found += self.ends() if spread.has_ends else []
        self.whole = self.read(found) if spread.where == "registers" else Piece(found)

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


def own_row(matrix: Any, rows: Any, columns: Any, spread: Spread, neutral: float = 0.0, like: Any = None) -> Row:
    """The row of this thread, with `neutral` beyond its end; all that can be kept is asked for at once."""
    (row,) = own_rows(matrix, rows, columns, spread, neutral, like=like)
    return row


def own_rows(
    matrix: Any,
    rows: Any,
    columns: Any,
    spread: Spread,
    neutral: float = 0.0,
    of_columns: Sequence[Any] = (),
    like: Any = None,
) -> list[Row]:
    """The row of this thread; where a cluster has several at a time, all of them.

    `of_columns` are vectors that all rows share and that are read once threads have agreed. Vectors are aligned to
    memory of `like`, where that is not the matrix itself.
    """
    if spread.cluster > 1:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
    thread, number = own_number(rows, spread)
    is_there = number < rows if spread.threads < WARP else None
    first, policy = thread * spread.vector, keep_what_is_read()
    cluster = Cluster(spread.block, spread.cluster) if spread.cluster > 1 else None
    found = []
    for further in range(spread.rows):
        own = number + further if further else number
        start = ptx.mul.wide.u32(own, columns)
        row = Row(matrix, columns, spread, neutral, own, start, first, policy, thread, is_there, cluster=cluster)
        if spread.has_ends:
            row.begin_aligned(matrix if like is None else like)
        found.append(row)
    for place, row in enumerate(found):
        row.ask(place)
    early = of_columns[: spread.early]
    if early and spread.where == "shared":
        ptx.cp["async"].commit_group()
    for place, array in enumerate(early, spread.kept - spread.early):
        source = element_pointer(array, spread.type, spread.vector, first)
        found[0].early[id(array)] = found[0].copy(source, place)
    if spread.is_eager and found[0].whole is not None:
        for array in of_columns:
            for one in found[0].whole.vectors:
                found[0].ready[id(array), id(one.first), one.number] = one.bits_of(array)
    if early and spread.where == "shared":
        ptx.cp["async"].commit_group()
        ptx.cp["async"].wait_group(1)
    elif spread.where == "shared":
        ptx.cp["async"].wait_all()
    return found


def own_number(rows: Any, spread: Spread) -> tuple[Any, Any]:
    """The number of this thread among those that share its row, and the number of that row."""
    if spread.cluster > 1:
        return ptx.cluster_ctarank * spread.block + ptx.tid.x, ptx.clusterid.x * spread.rows
    if spread.threads > WARP:
        return ptx.tid.x, ptx.ctaid.x
    number = ptx.ctaid.x * (spread.block // spread.threads) + ptx.tid.x // spread.threads
    if spread.threads == WARP:
        with ptx.when(number >= rows):
            ptx.ret()
    return ptx.tid.x & (spread.threads - 1), number


def kept() -> Any:
    """Where this thread keeps its vectors in shared memory."""
    return (ptx.dynamic_shared(f32) + ptx.tid.x * 4).vector(4)
