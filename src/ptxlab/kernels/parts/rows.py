"""Rows of a matrix, read once: how threads share a row, and go over it again.

A row is read in vectors by the threads that share it: some lanes of a warp, a warp, with several rows a block, a block,
or all blocks of a cluster. Of n threads the first has the vectors 0, n, 2n and so on, so that each access of a warp is
one piece of memory. Until the row is done with, a thread keeps its vectors in registers. Only what is too long for that
is read again from global memory, piece by piece. Which of these it is, a `Spread` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, f32, kernel, pred, ptx, u32, u64
from ptxlab.kernels.parts.elements import SIZES, WIDEST, element_pointer, keep_what_is_read
from ptxlab.kernels.parts.reductions import WARP, Cluster, Combine, over_block
from ptxlab.kernels.parts.row_stages import Stage
from ptxlab.kernels.parts.row_vectors import Piece, Vector
from ptxlab.kernels.parts.spreads import Spread
from ptxlab.launch.launches import Launch, ceil_div

AT_A_TIME = 1536  # threads on an SM where rows are read in pieces


@cache
def specialize(function: Callable[..., None], spread: Spread, target: str = "sm_80", **constants: object) -> Kernel:
    """The kernel that a function writes for a spread, and for other compile-time arguments."""
    resident = {} if spread.is_kept else {"minnctapersm": AT_A_TIME // spread.block}
    directives: dict[str, Any] = {"maxntid": spread.block, **resident}
    made: Kernel = kernel(target=target if spread.cluster == 1 else "sm_90", **directives)(function)
    return made.specialize(spread=spread, **constants)


def launch_rows(
    function: Callable[..., None], spread: Spread, rows: int, arguments: Sequence[object], **constants: object
) -> Launch:
    """The launch of a kernel for so many rows."""
    made = specialize(function, spread, **constants)
    if spread.cluster > 1:
        return Launch(made, rows * spread.cluster, spread.block, arguments, 0, spread.cluster, overlap=True)
    return Launch(made, ceil_div(rows, spread.block // spread.threads), spread.block, arguments, shared=spread.shared)


@dataclass
class Row:
    """The row that this thread has a part of."""

    matrix: Pointer
    columns: u32
    spread: Spread
    neutral: float
    number: u32
    """Which one it is."""
    start: Any
    """Where it starts in the matrix, in elements."""
    first: u32
    """The column of this thread's first element."""
    policy: u64
    """For the L2 cache."""
    thread: Any = None
    """The number of this thread among those that share the row."""
    is_there: pred | None = None
    """Whether there is such a row; None where there always is."""
    whole: Piece | None = None
    """All of it, unless it is too long."""
    cluster: Cluster | None = None
    """The blocks that share it, where there are several."""
    of_columns: Sequence[Any] = ()
    """Vectors that all rows share."""
    ready: dict[Any, list[Any]] = field(default_factory=dict)
    """Those of them which are in registers, by array, column and number."""
    stage: Stage | None = None
    """Where its results are put together with those of others, if they are."""
    head: int | u32 = 0
    """How many elements are before its first vector."""
    shifts: dict[tuple[int, int], tuple[Any, Any, Any]] = field(default_factory=dict)
    """What `aligned` has found, by array and column."""

    def begin_aligned(self, like: Pointer, type: str) -> None:
        """Have vectors begin where those of a matrix of a type are aligned, with single elements before them."""
        spread = self.spread
        address = element_pointer(like, type, 1, self.start).address
        before = ptx.cvt.u32.u64(address) // SIZES[type] + spread.margin
        self.head = spread.margin + (0 - before & spread.vector - 1)
        self.first = self.head + self.thread * spread.vector

    def aligned(self, array: Pointer, column: u32, *start: u64) -> tuple[Pointer, u32]:
        """The vector that has the element of a column, and how many bytes of it are before that."""
        key = id(array), id(column)
        if key not in self.shifts:
            type, vector = self.spread.type, self.spread.vector
            address = element_pointer(array, type, 1, *start, column).address
            base = ptx.pointer_to(f32, "global", ptx.and_.b64(address, -WIDEST, out=u64()))
            pointer = element_pointer(base, type, vector)
            self.shifts[key] = pointer, ptx.cvt.u32.u64(address) & WIDEST - 1, column  # which stays, and so its number
        return self.shifts[key][:2]

    @property
    def rest(self) -> int:
        """How many columns there are at least from the first of a vector on."""
        return self.spread.vector + self.spread.margin if self.spread.has_ends else 1

    def inside(self) -> list[pred | None]:
        """For each vector of this thread, whether it is inside the row: all are but perhaps the last."""
        held = self.spread.held
        inside = self.first + (held - 1) * self.spread.step + self.rest <= self.columns
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
            found.append(Vector(self, column, inside, 1))
        return found

    def pieces(self) -> Iterator[Piece]:
        """What this thread has of the row: one piece, or, of a long row, a loop that reads piece by piece."""
        if self.whole is not None:
            yield self.whole
            return
        spread = self.spread
        for start in ptx.range(0, self.columns, spread.step * spread.held):
            first = start + self.first
            inside = [first + number * spread.step + self.rest <= self.columns for number in range(spread.held)]
            yield self.read([Vector(self, first, one, spread.vector, at) for at, one in enumerate(inside)])
        if spread.has_ends:
            yield self.read(self.ends())

    def read(self, vectors: list[Vector]) -> Piece:
        """These vectors in registers."""
        return Piece([replace(one, words=one.of_matrix(self.matrix)) for one in vectors])

    def vectors(self) -> Iterator[Vector]:
        """The same vector by vector, for a last pass that has more to hold than the row."""
        for piece in self.pieces():
            for number, vector in enumerate(piece.vectors):
                self.share(number + self.spread.ahead if self.spread.ahead else 0)
                yield vector

    def add(self, matrix: Pointer, result: Pointer) -> None:
        """Make this row the sum with that of another matrix, which is written to `result`."""
        type = self.spread.type
        if self.whole is not None:
            self.whole = Piece([one.plus(matrix) for one in self.whole.vectors])
            for vector in self.whole.vectors:  # all is asked for before: ptxas leaves loads after stores that are there
                vector.put(result, vector.words, type)
            return
        for vector in self.vectors():
            vector.put(result, vector.plus(matrix).words, type)
        self.matrix = result

    @property
    def is_first(self) -> Any:
        """Whether this is the first of the threads that share the row."""
        is_first = self.thread == 0
        return is_first if self.is_there is None else is_first & self.is_there

    def ask(self) -> None:
        """Ask for all of it that this thread keeps, and perhaps for what all rows share."""
        spread = self.spread
        if not spread.is_kept:
            return
        found = [Vector(self, self.first, one, spread.vector, at) for at, one in enumerate(self.inside())]
        self.whole = self.read(found + (self.ends() if spread.has_ends else []))
        if spread.is_eager:
            self.share(len(self.whole.vectors))

    def share(self, count: int) -> None:
        """Ask for what all rows share, at the columns of the first vectors of this thread."""
        for one in self.whole.vectors[:count] if self.whole is not None else ():
            for array in self.of_columns:
                self.ready[id(array), id(one.first), one.number] = one.bits_of(array)

    def agree(self, value: f32 | tuple[f32, f32], combine: Combine) -> Any:
        """One value from those of all threads that share the row."""
        if self.cluster is not None:
            return self.cluster.combine(value, combine)
        return over_block(value, combine, self.spread.threads)


@dataclass(frozen=True)
class Rows:
    """The rows of a matrix, with `neutral` beyond their end, and vectors of columns that all of them share."""

    matrix: Any
    count: Any
    columns: u32
    spread: Spread
    neutral: float = 0.0
    of_columns: Sequence[Any] = ()
    result: Pointer | None = None
    """The matrix in whose memory vectors are aligned, if not this one."""
    type: str | None = None
    """The type of that, if it is another."""


Measure = Callable[[Row], Any]
Finish = Callable[[Row, Any], None]


def go_over(given: Rows, measure: Measure, combine: Combine, finish: Finish) -> None:
    """Measure what each thread has of its row, have all threads agree on that, and finish the row."""
    row, spread = own_row(given), given.spread
    if spread.is_staged:
        row.stage = Stage(given.result, given.type or spread.type, given.count, given.columns, spread)
    measured = measure(row)
    row.share(spread.ahead)  # while other blocks are waited for
    finish(row, row.agree(measured, combine))
    if row.stage is not None:
        row.stage.write()


def own_row(given: Rows) -> Row:
    """The row of this thread; all that can be kept is asked for at once."""
    spread, columns = given.spread, given.columns
    if spread.cluster > 1:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
    thread, number = own_number(given.count, spread)
    is_there = None
    if spread.threads < WARP:
        is_there, number = number < given.count, ptx.min.u32(number, given.count - 1)
    cluster = Cluster(spread.block, spread.cluster) if spread.cluster > 1 else None
    start, first, policy = ptx.mul.wide.u32(number, columns), thread * spread.vector, keep_what_is_read()
    about = spread, given.neutral, number, start, first, policy, thread, is_there
    row = Row(given.matrix, columns, *about, cluster=cluster, of_columns=given.of_columns)
    if spread.has_ends:
        row.begin_aligned(given.matrix if given.result is None else given.result, given.type or spread.type)
    row.ask()
    return row


def own_number(rows: u32, spread: Spread) -> tuple[u32, u32]:
    """The number of this thread among those that share its row, and the number of that row."""
    if spread.cluster > 1:
        return ptx.cluster_ctarank * spread.block + ptx.tid.x, ptx.clusterid.x
    if spread.threads > WARP:
        return ptx.tid.x, ptx.ctaid.x
    number = ptx.ctaid.x * (spread.block // spread.threads) + ptx.tid.x // spread.threads
    if spread.threads == WARP:
        with ptx.when(number >= rows):
            ptx.ret()
    return ptx.tid.x & (spread.threads - 1), number
