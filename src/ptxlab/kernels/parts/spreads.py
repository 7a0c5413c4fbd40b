"""How a row of a matrix is shared: by how many threads, of one block or of a cluster, and where they keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ptxlab.kernels.parts.elements import SIZES, WIDEST, vector_of
from ptxlab.kernels.parts.reductions import WARP
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import ceil_div

_SHARED_BLOCK = 128  # threads of a block that has several rows: a warp at most has one
_VERY_LONG = 64 << 10  # bytes of a row for as many threads as a block can have
_MOST_THREADS = 1024
_MOST_BLOCKS = 16  # of a cluster
_SHARED_MEMORY = 224 << 10  # bytes that a block can have
_IN_REGISTERS = 128 << 10  # bytes of several rows that a block of a cluster has
_TURNS = 4  # rows for each cluster of a stream, at least
_STAGE = 8 << 10  # bytes of a stage of its ring
_PIECE = 64  # bytes that a thread reads at a time of a row that is not kept

MEASURED = [
    {"rows": 65536, "columns": 1024, "type": "f32"},
    {"rows": 4096, "columns": 32768, "type": "bf16"},
    {"rows": 1024, "columns": 131072, "type": "bf16"},
    {"rows": 256, "columns": 262144, "type": "f32"},
    {"rows": 16384, "columns": 8192, "type": "bf16"},
]
"""The sizes at which kernels of rows are measured: 256 MiB each."""
SMALL = [
    {"rows": 1, "columns": 1, "type": "f32"},
    {"rows": 5, "columns": 33, "type": "bf16"},
    {"rows": 6, "columns": 520, "type": "f16"},
    {"rows": 3, "columns": 1000, "type": "f32"},
    {"rows": 2, "columns": 17000, "type": "bf16"},
    {"rows": 1, "columns": 8203, "type": "f32"},
    {"rows": 1, "columns": 33000, "type": "f32"},
]
"""Sizes that reach every way to keep a row."""


def extents(array: Any) -> tuple[int, int]:
    """Rows and columns of an array: rows are its last dimension."""
    *outer, columns = array.shape
    return math.prod(outer), columns


def tolerance(rows: int, columns: int, type: str) -> float:
    """What rounding to the type of the matrix costs."""
    return {"f32": 1e-6, "f16": 5e-4, "bf16": 3e-3}[type]


@dataclass(frozen=True)
class Part:
    """What a block of a cluster has of a row: vectors for so many threads, and where they are kept."""

    threads: int
    held: int
    where: str
    at_a_time: int | None = None
    """Threads on an SM."""
    rows: int = 1
    """Rows that a cluster has at a time, if their number is a multiple."""
    early: int = 0
    """Vectors that all rows share and that come to shared memory with these."""


@dataclass(frozen=True)
class Streamed:
    """How rows stream through clusters of 16 blocks, where there are many that are so long."""

    part: int
    """Bytes of a row that a block has at most; rows of half of that have their own blocks or clusters."""
    threads: int
    early: int
    """Vectors that all rows share and that stay in shared memory."""
    clusters: int
    """How many run at the same time on an H200."""
    at_a_time: int
    """Threads on an SM."""


@dataclass(frozen=True)
class Capacity:
    """What a kernel has for its rows beside its own work: found by measuring on an H200."""

    shares: Mapping[str, int] = field(default_factory=lambda: {"f32": 32, "f16": 64, "bf16": 64})
    """Bytes of a row for each thread, by the type of its elements, as long as there are more threads to take."""
    threads: int = 512
    """The most threads of a block."""
    registers: int = 16 << 10
    """Bytes of a row that its threads keep in registers; longer ones are kept in shared memory."""
    at_a_time: int = 1024
    """Threads on an SM where rows are in shared memory."""
    alone: int = 64 << 10
    """Bytes of a row that one block keeps; longer ones are shared by the blocks of a cluster."""
    keeps: bool = True
    """Whether rows that are too long for registers are kept at all."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What a block of a cluster has of a row, by the type of its elements."""
    streams: Mapping[str, Streamed] = field(default_factory=dict)
    """How rows that are too long for a block stream, where there are many of them."""


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
    """Where they are kept: in `registers`, in `shared` memory, or, as only a piece of the row, in `global` memory.

    Rows of a `stream` are in registers, too, and come there through a ring: one cluster has one after the other.
    """
    at_a_time: int | None = None
    """Threads on an SM, which bounds the registers of each of them; None leaves that to ptxas."""
    cluster: int = 1
    """Blocks that share a row, in a cluster."""
    rows: int = 1
    """Rows that a cluster has at a time: what all rows share is read once for all of these."""
    early: int = 0
    """Vectors that all rows share, as weights, which come to shared memory while the rows are read."""
    stages: int = 0
    """Stages of the ring of a stream."""
    piece: int = 0
    """Vectors of a thread that are in a stage."""
    clusters: int = 0
    """Clusters of a stream that run at the same time: as many as an H200 has room for."""

    margin: int | None = None
    """Where rows are not aligned: elements that are at least before and after what is read in vectors.

    0 if all that is read in vectors is aligned where the result is, else as many as a vector has but one: then the two
    vectors that have elements of one that is not aligned are inside.
    """
    is_shifted: bool = False
    """Whether the matrix that is read is not aligned where the result is."""
    is_staged: bool = False
    """Whether results of a warp's rows are put together in shared memory before they are written."""
    is_eager: bool = False
    """Whether vectors that all rows share, as weights, come to registers together with the row."""

    @property
    def has_ends(self) -> bool:
        """Whether the ends of rows are read and written as single elements."""
        return self.margin is not None

    @property
    def ends(self) -> int:
        """A power of two that is above the number of elements at either end."""
        return 1 << (self.vector - 1 + (self.margin or 0)).bit_length()

    def __str__(self) -> str:
        blocks = f"_{self.cluster}_blocks" if self.cluster > 1 else ""
        rows = f"_{self.rows}_rows" if self.rows > 1 else ""
        early = f"_{self.early}_early" if self.early else ""
        ring = f"_{self.stages}x{self.piece}" if self.stages else ""
        ends = f"_ends_{self.margin}" + "_shifted" * self.is_shifted if self.has_ends else ""
        ends += "_staged" * self.is_staged + "_eager" * self.is_eager
        return f"{self.type}x{self.vector}_{self.threads}x{self.held}_{self.where}{blocks}{rows}{early}{ring}{ends}"

    @staticmethod
    def of(capacity: Capacity, columns: int, *arrays: Any) -> Spread:
        """For rows of so many elements in such arrays."""
        type, vector = type_of(arrays[0]), vector_of(columns, *arrays)
        length = columns * SIZES[type]
        if vector > 1 and length > capacity.alone and type in capacity.parts:
            rows = extents(arrays[0])[0]
            streams = Spread.in_stream(capacity, rows, columns, type, vector)
            found = streams or Spread.in_cluster(capacity, rows, columns, type, vector)
            if found is not None:
                return found
        threads = WARP
        while threads < capacity.threads and length > threads * capacity.shares[type]:
            threads *= 2
        if length > _VERY_LONG:
            threads = _MOST_THREADS
        held = ceil_div(columns, threads * vector)
        if length <= capacity.registers and (vector > 1 or length <= threads * capacity.shares[type]):
            return Spread(type, vector, threads, held, "registers")
        if vector > 1 and capacity.keeps and held * threads * WIDEST <= _SHARED_MEMORY:
            return Spread(type, vector, threads, held, "shared", capacity.at_a_time)
        return Spread(type, vector, threads, _PIECE // SIZES[type] // vector, "global", capacity.at_a_time)

    @staticmethod
    def in_cluster(capacity: Capacity, rows: int, columns: int, type: str, vector: int) -> Spread | None:
        """For rows that the blocks of a cluster share; None if they are too long for that."""
        part = capacity.parts[type]
        threads, blocks = part.threads, 2
        while threads * blocks * part.held * vector < columns:
            if blocks < _MOST_BLOCKS:
                blocks *= 2
            elif threads < _MOST_THREADS:
                threads *= 2
            else:
                return None
        held = ceil_div(columns, blocks * threads * vector)
        at_a_time = None if part.at_a_time is None else max(part.at_a_time, threads)
        is_too_much = part.rows * held * threads * WIDEST > _IN_REGISTERS
        together = (1, 0) if rows % part.rows or is_too_much else (part.rows, part.early)
        found = Spread(type, vector, blocks * threads, held, part.where, at_a_time, blocks, *together)
        return found if found.shared <= _SHARED_MEMORY else None

    @staticmethod
    def in_stream(capacity: Capacity, rows: int, columns: int, type: str, vector: int) -> Spread | None:
        """For many rows that clusters take one after the other; None if they are few, or of another length."""
        stream = capacity.streams.get(type)
        length = columns * SIZES[type]
        if stream is None or not _MOST_BLOCKS * stream.part // 2 < length <= _MOST_BLOCKS * stream.part:
            return None
        held = ceil_div(columns, _MOST_BLOCKS * stream.threads * vector)
        piece = max(_STAGE // (stream.threads * WIDEST), 1)
        blocks = stream.at_a_time // stream.threads
        room = (_SHARED_MEMORY - 5120 * blocks) // blocks - stream.early * held * stream.threads * WIDEST
        shape = _MOST_BLOCKS * stream.threads, held, "stream", stream.at_a_time, _MOST_BLOCKS, 1, stream.early
        found = Spread(type, vector, *shape, room // (piece * stream.threads * WIDEST), piece, stream.clusters)
        is_even = columns % (_MOST_BLOCKS * vector) == 0
        return found if is_even and rows >= _TURNS * stream.clusters and found.stages >= found.pieces else None

    @property
    def block(self) -> int:
        """Threads of a block."""
        return _SHARED_BLOCK if self.threads <= WARP else self.threads // self.cluster

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a launch has to ask for."""
        if self.is_staged:
            return self.block // WARP * self.staged
        return self.kept * self.part + self.stages * self.stage

    @property
    def staged(self) -> int:
        """Bytes of the results of a warp's rows, which begin anywhere in a vector."""
        return (WARP * self.held * self.vector * SIZES[self.type] // WIDEST + 1) * WIDEST

    @property
    def part(self) -> int:
        """Bytes that a block has of a row."""
        return self.held * self.block * WIDEST

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return self.piece * self.block * WIDEST

    @property
    def pieces(self) -> int:
        """Stages that a block's part of a row takes."""
        return ceil_div(self.held, self.piece)

    @property
    def kept(self) -> int:
        """Vectors of a row's length that are in shared memory, with a block's part of each."""
        return self.early + (self.rows if self.where == "shared" else 0)

    @property
    def stride(self) -> int:
        """Vectors from one of a thread to its next: in a stream, a block's columns are beside each other."""
        return self.block if self.where == "stream" else self.threads

    @property
    def step(self) -> int:
        """Elements from one vector of a thread to its next."""
        return self.stride * self.vector
