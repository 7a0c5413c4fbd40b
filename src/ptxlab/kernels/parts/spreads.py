"""How a row of a matrix is shared: by how many threads, of a warp, a block or a cluster, and how they read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import SIZES, WIDEST, address_of
from ptxlab.kernels.parts.reductions import WARP
from ptxlab.launch.launches import ceil_div
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

# Found by measuring random sizes on an H200 (`benchmarks/random_rows.py explore`): times change little around these.
_GPU = 132 << 10  # threads among which few rows are divided
_HELD = 8  # vectors of a thread at most
_LINE = 8  # threads at least, if there are so many vectors: they read and write a line of 128 bytes
_SINGLE, _SINGLE_OF_MANY = 32, 16  # elements of a thread at most, where vectors are shorter; of several rows a warp
_EAGER = 32  # elements of a thread for which it has registers for weights, too
_SHORT = 1024  # vectors that are shorter than 16 bytes: with more of them in a row, its ends are read apart
_BLOCK, _LARGEST_BLOCK, _SHARED_BLOCK = 256, 1024, 128  # threads; the last where it has several rows
_CLUSTER = 16  # blocks at most
_IN_PARTS = 8  # bytes of a thread that it writes itself, though it writes them in parts
_MANY = 2048  # rows: with a block for each, all SMs are done at about the same time
_REGISTERS, _OWN, _SHIFTED = 65536, 32, 8  # registers of an SM; of a thread, besides vectors; where these are shifted
_SMS, _RESIDENT = 132, 3  # SMs; blocks of clusters on each at most, so that some copy while others wait
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


row_entry = partial(Entry, sizes=MEASURED, small=SMALL, tolerance=tolerance)
"""What is measured and tested of a function of rows."""


class Access(NamedTuple):
    """How rows are read and written, by where arrays begin in memory."""

    vector: int
    """Elements that one access takes."""
    margin: int | None = None
    """Where rows are not aligned: elements that are at least before and after what is read in vectors.

    0 if all that is read in vectors is aligned where the result is, else as many as a vector has but one: then the two
    vectors that have elements of one that is not aligned are inside.
    """
    is_shifted: bool = False
    """Whether what is read of rows is not aligned where the result is."""

    @staticmethod
    def of(columns: int, read: Sequence[object], written: Sequence[Array], of_columns: Sequence[Array]) -> Access:
        """In whole vectors of 16 bytes if all are aligned; else, in short rows, in shorter ones that are."""
        whole = WIDEST // SIZES[type_of(read[0])]
        results, others, shared = (_places(some, whole) for some in (written or read[:1], read, of_columns))
        vector = math.gcd(columns, whole, *results, *others, *shared)
        if vector == whole or columns <= _SHORT * vector or len(set(results)) > 1:
            return Access(vector)
        is_shifted = set(others) != set(results)
        return Access(whole, whole - 1 if is_shifted or of_columns else 0, is_shifted)

    def count(self, columns: int) -> int:
        """How many vectors of a row there are at most."""
        if self.margin is None:
            return ceil_div(columns, self.vector)
        return (columns - 2 * self.margin) // self.vector


def _places(arrays: Sequence[object], vector: int) -> list[int]:
    """For each array, how many elements are before its first one in the vector that has it."""
    return [address_of(one) // SIZES[type_of(one)] % vector for one in arrays]


@dataclass(frozen=True)
class Spread:
    """How a row is shared by threads: a compile-time argument of a kernel."""

    type: str
    access: Access
    threads: int
    held: int
    """Vectors that a thread has at a time."""
    is_kept: bool = True
    """Whether they are all it has of the row, and stay in registers; else it is read piece by piece."""
    cluster: int = 1
    """Blocks that share a row, in a cluster; their kernel starts before the one before it has ended."""
    is_eager: bool = False
    """Whether vectors that all rows share, as weights, come to registers together with the row."""
    ahead: int = 0
    """In a cluster, how many of those are asked for before they are needed: loads that are not `.nc` stay in order."""

    @staticmethod
    def of(
        read: Sequence[Any], written: Sequence[Any] = (), of_columns: Sequence[Array] = (), is_kept: bool = True
    ) -> Spread:
        """For the rows of matrices, and vectors that all of them share.

        Where rows are few, they are divided among all threads of the GPU. Many are shared by as few threads as can keep
        them. Very many need not be kept if they are gone over once: a block goes over each, piece by piece.
        """
        type, (rows, columns) = type_of(read[0]), extents(read[0])
        access = Access.of(columns, read, written, of_columns)
        count = access.count(columns)
        if access.vector * SIZES[type] == WIDEST:
            fewest = max(_power(ceil_div(count, _HELD)), min(_power(count), _LINE))
        else:
            several = min(_power(ceil_div(columns, _SINGLE_OF_MANY)), WARP)
            fewest = max(several, _power(ceil_div(columns, _SINGLE)))
        most = _power(ceil_div(columns * SIZES[type], WIDEST))
        most = min(max(most // 2, _BLOCK), most, _CLUSTER * _BLOCK)  # in a cluster, two vectors of a thread at least
        threads = max(fewest, min(_power(_GPU // rows + 1) // 2, most))
        if threads > _CLUSTER * _LARGEST_BLOCK or (threads > _BLOCK and not is_kept and rows > _MANY):
            threads = _LARGEST_BLOCK // 2
            return Spread(type, access, threads, _PIECE // SIZES[type] // access.vector, is_kept=False)
        held = ceil_div(count, threads)
        is_eager = bool(of_columns) and held * access.vector <= _EAGER
        found = Spread(type, access, threads, held, True, min(max(threads // _BLOCK, 1), _CLUSTER), is_eager)
        if found.cluster == 1 or is_eager or not of_columns:
            return found
        words = access.vector * SIZES[type] // 4
        blocks = min(ceil_div(rows * found.cluster, _SMS), _RESIDENT)
        own = _OWN + (_SHIFTED if found.margin else 0) + held * words
        free = _REGISTERS // (found.block * blocks) - own
        return replace(found, ahead=max(2, min(free // (words * len(of_columns)), held)))

    def __str__(self) -> str:
        blocks = f"_{self.cluster}_blocks" if self.cluster > 1 else ""
        margin = "" if self.access.margin is None else f"_margin_{self.access.margin}"
        shifted, eager = "_shifted" * self.access.is_shifted, "_eager" * self.is_eager
        where, ahead = "registers" if self.is_kept else "pieces", f"_{self.ahead}_ahead" if self.ahead else ""
        return f"{self.type}x{self.vector}_{self.threads}x{self.held}_{where}{blocks}{margin}{shifted}{eager}{ahead}"

    @property
    def vector(self) -> int:
        """Elements that one access takes."""
        return self.access.vector

    @property
    def margin(self) -> int:
        """Elements that are at least before and after what is read in vectors, where the ends are read apart."""
        return self.access.margin or 0

    @property
    def has_ends(self) -> bool:
        """Whether the ends of rows are read and written as single elements."""
        return self.access.margin is not None

    @property
    def ends(self) -> int:
        """A power of two that is above the number of elements at either end."""
        return _power(self.vector + self.margin)

    @property
    def is_staged(self) -> bool:
        """Whether results of a warp's rows are put together in shared memory: by each thread, sectors are in parts."""
        bytes = self.vector * SIZES[self.type]
        return self.is_kept and self.threads < WARP and bytes < WIDEST and self.held * bytes > _IN_PARTS

    @property
    def block(self) -> int:
        """Threads of a block."""
        return _SHARED_BLOCK if self.threads <= WARP else self.threads // self.cluster

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a launch has to ask for."""
        return self.block // WARP * self.staged if self.is_staged else 0

    @property
    def staged(self) -> int:
        """Bytes of the results of a warp's rows, which begin anywhere in a vector."""
        return (WARP * self.held * self.vector * SIZES[self.type] // WIDEST + 1) * WIDEST

    @property
    def step(self) -> int:
        """Elements from one vector of a thread to its next."""
        return self.threads * self.vector


def _power(number: int) -> int:
    """The power of two that is not below a number, and next to it."""
    return 1 << max(number - 1, 0).bit_length()
