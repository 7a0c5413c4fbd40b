"""Vectors of a row: elements after each other that one thread reads and writes by one access.

Rows need not be aligned. Then vectors begin where the result is aligned, and what is before and after them are vectors
of one element. What is not aligned there, as weights, comes from the two vectors that have some of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Scalar, f32, pred, ptx, u32, u64
from ptxlab.kernels.parts.elements import (
    element_pointer,
    larger_of,
    load_bits,
    moved,
    narrowed,
    store_bits,
    widened,
)

if TYPE_CHECKING:
    from ptxlab.kernels.parts.rows import Row

LOAD = ptx.ld.global_["L2::cache_hint"]


@dataclass(frozen=True)
class Vector:
    """Elements after each other that one thread has of a row, and perhaps of other arrays: one access each."""

    row: Row
    first: u32
    """The column of this thread's first vector."""
    inside: pred | None
    """The predicate that it is inside the row; None where it always is."""
    size: int
    """Its elements: as many as one access takes, or one at the ends of a row that are not aligned."""
    number: int = 0
    """How many vectors of this thread are between `first` and this one."""
    words: Sequence[Scalar] = ()
    """The elements as they are in memory, in registers."""

    @property
    def column(self) -> u32:
        """The column of the first of these elements."""
        return self.first + self.number * self.row.spread.step

    @property
    def values(self) -> list[f32]:
        """The elements as f32. Those of bf16 are made of their bits each time, which is cheaper than to keep both."""
        return widened(self.words, self.row.spread.type)

    def load(self, array: Any) -> list[f32]:
        """The elements of these columns in an array that all rows share; the cache keeps it."""
        return widened(self.bits_of(array), self.row.spread.type)

    def bits_of(self, array: Pointer) -> list[Any]:
        """The same as it is in memory."""
        found = self.row.ready.get((id(array), id(self.first), self.number))
        if found is not None:
            return found
        load = ptx.ld.global_ if self.row.spread.cluster > 1 else ptx.ld.global_.nc  # one that starts early
        return self.between(load, array) if self.row.spread.has_ends and self.size > 1 else self._read(load, array)

    def place(self, array: Pointer, *start: u64, type: str | None = None) -> Any:
        """Where these columns are in an array, or in the row of a matrix that starts there."""
        spread = self.row.spread
        return element_pointer(array, type or spread.type, self.size, *start, self.first) + self.number * spread.threads

    def between(self, load: Any, array: Pointer, *start: u64, neutral: float = 0.0, policy: Any = None) -> list[f32]:
        """The elements of an array where these columns are not aligned: from the two vectors that have some of them."""
        spread = self.row.spread
        base, shift = self.row.aligned(array, self.first, *start)
        base = base + self.number * spread.threads
        some = shift != 0 if self.inside is None else (shift != 0) & self.inside
        one = load_bits(load, base, spread.type, spread.vector, neutral, self.inside, policy)
        other = load_bits(load, base + 1, spread.type, spread.vector, neutral, some, policy)
        return moved(one, other, shift)

    def _read(
        self, load: object, array: Pointer, *start: u64, neutral: float = 0.0, policy: u64 | None = None
    ) -> list[Scalar]:
        place = self.place(array, *start)
        return load_bits(load, place, self.row.spread.type, self.size, neutral, self.inside, policy)

    def of_matrix(self, matrix: Pointer) -> list[f32] | list[Scalar]:
        """The elements of these columns in the same row of a matrix."""
        row = self.row
        read = self.between if row.spread.access.is_shifted and self.size > 1 else self._read
        return read(LOAD, matrix, row.start, neutral=row.neutral, policy=row.policy)

    def store(self, matrix: Pointer, values: Sequence[f32], type: str | None = None) -> None:
        """Write the elements of these columns, rounded to the type of the matrix: that of the row, or another."""
        row, type = self.row, type or self.row.spread.type
        if row.stage is not None:
            row.stage.put(self.first, self.number, values, self.inside)
        else:
            self.put(matrix, narrowed(values, type), type)

    def put(self, matrix: Pointer, words: Sequence[Scalar], type: str) -> None:
        """Write the elements of these columns as they are in memory."""
        store_bits(self.place(matrix, self.row.start, type=type), type, words, self.inside)

    def plus(self, matrix: Pointer) -> Vector:
        """These columns with those of another matrix added to them, rounded."""
        type = self.row.spread.type
        pairs = zip(self.values, widened(self.of_matrix(matrix), type), strict=True)
        return replace(self, words=narrowed([a + b for a, b in pairs], type))


@dataclass(frozen=True)
class Piece:
    """What one thread has of a row, or of a piece of a long one."""

    vectors: list[Vector]

    @property
    def values(self) -> list[f32]:
        """The elements as f32."""
        return [value for vector in self.vectors for value in vector.values]

    def load(self, array: Pointer) -> list[f32]:
        """The elements of these columns in an array that all rows share."""
        return [value for vector in self.vectors for value in vector.load(array)]

    @property
    def count(self) -> f32:
        """How many elements these are, as f32."""
        total = f32(float(sum(one.size for one in self.vectors if one.inside is None)))
        for one in self.vectors:
            if one.inside is not None:
                total += ptx.selp.f32(float(one.size), 0.0, one.inside)
        return total

    @property
    def origin(self) -> f32:
        """One of these elements, if there is one."""
        first, *others = [(one.values[0], one.inside) for one in self.vectors]
        found = first[0]
        if first[1] is not None:
            for value, inside in [*others, first]:
                found = value if inside is None else ptx.selp.f32(value, found, inside)
        return found

    @property
    def largest(self) -> f32:
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

    def with_zeros_outside(self, values: Sequence[f32]) -> list[f32]:
        """The values, with zero for those of columns that the row does not have."""
        whether = (one.inside for one in self.vectors for _ in range(one.size))
        return [
            value if inside is None else ptx.selp.f32(value, 0.0, inside)
            for inside, value in zip(whether, values, strict=True)
        ]
