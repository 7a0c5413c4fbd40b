"""Rows of a matrix, read once: how threads share a row, and where it is while they go over it again.

A row is read in vectors by the threads that share it: a warp, with several rows a block, or a whole block. Of n threads
the first has the vectors 0, n, 2n and so on, so that each access of a warp is one piece of memory.

Until the row is done with, a thread keeps its vectors in registers, or, where they are too many, in shared memory:
`cp.async` brings them there without a register in between, and no other thread reads them, so that no barrier is
needed. Only what is too long for either, or is read an element at a time, is read again from global memory, piece by
piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ptxlab.author import Kernel, f32, kernel, ptx
from ptxlab.kernels.elements import (
    SIZES,
    WIDEST,
    element_pointer,
    keep_what_is_read,
    load_bits,
    store,
    vector_of,
    widened,
)
from ptxlab.kernels.reductions import WARP, Combine, over_block
from ptxlab.measure import Launch
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import ceil_div

LOAD = ptx.ld.global_["L2::cache_hint"]
COPY = ptx.cp["async"].cg.shared.global_["L2::cache_hint"]
ROWS_A_BLOCK = 4  # where a warp has a row
_VERY_LONG = 64 << 10  # bytes of a row for as many threads as a block can have
_MOST_THREADS = 1024
_SHARED_MEMORY = 224 << 10  # bytes that a block can have
_PIECE = 64  # bytes that a thread reads at a time of a row that is not kept

MEASURED = [
    {"rows": 131072, "columns": 1024, "type": "f32"},
    {"rows": 32768, "columns": 8192, "type": "bf16"},
    {"rows": 8192, "columns": 32768, "type": "bf16"},
    {"rows": 32768, "columns": 4096, "type": "f32"},
]
"""The sizes at which kernels of rows are measured: 512 MiB each."""
SMALL = [
    {"rows": 1, "columns": 1, "type": "f32"},
    {"rows": 5, "columns": 33, "type": "bf16"},
    {"rows": 6, "columns": 520, "type": "bf16"},
    {"rows": 3, "columns": 1000, "type": "f32"},
    {"rows": 2, "columns": 17000, "type": "bf16"},
    {"rows": 2, "columns": 8203, "type": "f32"},
]
"""Sizes that reach every way to keep a row."""


def tolerance(rows: int, columns: int, type: str) -> float:
    """What rounding to the type of the matrix costs."""
    return {"f32": 1e-6, "bf16": 3e-3}[type]


@dataclass(frozen=True)
class Capacity:
    """What a kernel has for its rows beside its own work: found by measuring on an H200."""

    shares: Mapping[str, int] = field(default_factory=lambda: {"f32": 32, "bf16": 64})
    """Bytes of a row for each thread, by the type of its elements, as long as there are more threads to take."""
    threads: int = 512
    """The most threads that share a row."""
    registers: int = 16 << 10
    """Bytes of a row that its threads keep in registers; longer ones are kept in shared memory."""
    at_a_time: int = 1024
    """Threads on an SM where rows are in shared memory."""


@dataclass(frozen=True)
class Spread:
    """How a row is shared by threads: a compile-time argument of a kernel."""

    type: str
    vector: int
    """Elements that one access takes."""
    threads: int
    held: int
    """Vectors that a thread has at a time."""
    where: str
    """Where they are kept: in `registers`, in `shared` memory, or, as only a piece of the row, in `global` memory."""
    at_a_time: int | None = None
    """Threads on an SM, which bounds the registers of each of them; None leaves that to ptxas."""

    def __str__(self) -> str:
        return f"{self.type}x{self.vector}_{self.threads}x{self.held}_{self.where}"

    @staticmethod
    def of(capacity: Capacity, columns: int, *arrays: Any) -> Spread:
        """For rows of so many elements in such arrays."""
        type, vector = type_of(arrays[0]), vector_of(columns, *arrays)
        length = columns * SIZES[type]
        threads = WARP
        while threads < capacity.threads and length > threads * capacity.shares[type]:
            threads *= 2
        if length > _VERY_LONG:
            threads = _MOST_THREADS
        held = ceil_div(columns, threads * vector)
        if length <= min(capacity.registers, threads * capacity.shares[type]):
            return Spread(type, vector, threads, held, "registers")
        if vector > 1 and held * threads * WIDEST <= _SHARED_MEMORY:
            return Spread(type, vector, threads, held, "shared", capacity.at_a_time)
        return Spread(type, vector, threads, _PIECE // SIZES[type] // vector, "global", capacity.at_a_time)

    @property
    def block(self) -> int:
        """Threads of a block."""
        return WARP * ROWS_A_BLOCK if self.threads == WARP else self.threads

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a launch has to ask for."""
        return self.held * self.threads * WIDEST if self.where == "shared" else 0

    @property
    def step(self) -> int:
        """Elements from one vector of a thread to its next."""
        return self.threads * self.vector


@cache
def specialize(function: Callable[..., None], spread: Spread) -> Kernel:
    """The kernel that a function writes for a spread."""
    resident = {} if spread.at_a_time is None else {"minnctapersm": spread.at_a_time // spread.block}
    directives: dict[str, Any] = {"maxntid": spread.block, **resident}
    made: Kernel = kernel(target="sm_80", **directives)(function)
    return made.specialise(spread=spread)


def launch_rows(function: Callable[..., None], spread: Spread, rows: int, arguments: Sequence[Any]) -> Launch:
    """The launch of a kernel for so many rows."""
    blocks = ceil_div(rows, spread.block // spread.threads)
    return Launch(specialize(function, spread), blocks, spread.block, arguments, shared=spread.shared)


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
    def values(self) -> list[Any]:
        """The elements as f32. Those of bf16 are made of their bits each time, which is cheaper than to keep both."""
        bits = self.bits
        if bits is None:
            bits = self._read(ptx.ld.shared, kept(), self.row.neutral)
        return [value for part in bits for value in widened(part, self.row.spread.type)]

    def load(self, array: Any) -> list[Any]:
        """The elements of these columns in an array that all rows share; the cache keeps it."""
        spread = self.row.spread
        bits = self._read(ptx.ld.global_.nc, element_pointer(array, spread.type, spread.vector, self.first))
        return [value for part in bits for value in widened(part, spread.type)]

    def _read(self, load: Any, source: Any, neutral: float = 0.0) -> list[list[Any]]:
        spread = self.row.spread
        return read(load, source + self.number * spread.threads, spread, self.inside, neutral)

    def with_zeros_outside(self, values: Sequence[Any]) -> list[Any]:
        """The values, with zero for those of columns that the row does not have."""
        vector = self.row.spread.vector
        return [
            value if inside is None else ptx.selp.f32(value, 0.0, inside)
            for inside, value in zip((i for i in self.inside for _ in range(vector)), values, strict=True)
        ]

    def store(self, matrix: Any, values: Sequence[Any]) -> None:
        """Write the elements of these columns, rounded to the type of the matrix."""
        spread = self.row.spread
        target = element_pointer(matrix, spread.type, spread.vector, self.row.start, self.first)
        for number, inside in enumerate(self.inside):
            part = values[number * spread.vector : (number + 1) * spread.vector]
            store(target + (self.number + number) * spread.threads, spread.type, part, inside)


@dataclass
class Row:
    """The row that this thread has a part of."""

    matrix: Any
    columns: Any
    spread: Spread
    neutral: float
    start: Any
    """Where it starts in the matrix, in elements."""
    first: Any
    """The column of this thread's first element."""
    policy: Any
    """For the L2 cache."""
    whole: Piece | None = None
    """All of it, unless it is too long."""

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

    def agree(self, value: Any, combine: Combine) -> Any:
        """One value from those of all threads that share the row."""
        return over_block(value, combine, self.spread.threads)


def own_row(matrix: Any, rows: Any, columns: Any, spread: Spread, neutral: float = 0.0) -> Row:
    """The row of this thread, with `neutral` beyond its end; all that can be kept is asked for at once."""
    if spread.threads == WARP:
        thread, number = ptx.tid.x & (WARP - 1), ptx.ctaid.x * ROWS_A_BLOCK + (ptx.tid.x >> 5)
        with ptx.when(number >= rows):
            ptx.ret()
    else:
        thread, number = ptx.tid.x, ptx.ctaid.x
    first = thread * spread.vector
    policy = keep_what_is_read()
    row = Row(matrix, columns, spread, neutral, ptx.mul.wide.u32(number, columns), first, policy)
    if spread.where == "global":
        return row
    inside = [None] * (spread.held - 1) + [first + (spread.held - 1) * spread.step < columns]
    source = element_pointer(matrix, spread.type, spread.vector, row.start, first)
    if spread.where == "registers":
        row.whole = Piece(row, first, inside, read(LOAD, source, spread, inside, neutral, policy))
        return row
    target = kept()
    for index, within in enumerate(inside):
        COPY(target + index * spread.threads, source + index * spread.threads, WIDEST, policy, when=within)
    ptx.cp["async"].wait_all()
    row.whole = Piece(row, first, inside, None)
    return row


def kept() -> Any:
    """Where this thread keeps its vectors in shared memory."""
    return (ptx.dynamic_shared(f32) + ptx.tid.x * 4).vector(4)


def read(
    load: Any, source: Any, spread: Spread, inside: list[Any], neutral: float = 0.0, policy: Any = None
) -> list[list[Any]]:
    """Vectors that are laid out as those of a row, as they are in memory."""
    return [
        load_bits(load, source + number * spread.threads, spread.type, spread.vector, neutral, within, policy)
        for number, within in enumerate(inside)
    ]
