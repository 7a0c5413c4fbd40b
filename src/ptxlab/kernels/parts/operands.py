"""A matrix that is multiplied: its K tiles in shared memory, how they come there, and how `wgmma` finds them.

A matrix whose rows run along k comes in boxes of 128 bytes of each row, all rows of a tile at once. One of 16-bit
elements whose rows run across k comes in boxes of 64 by 64 elements, or less wide ones; `wgmma` transposes it. Tensor
map, copies and descriptors are all made by one `Operand`, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ptxlab
from ptxlab.author import Pointer, Scalar, b16, ptx, s32, u16, u32

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side
    from ptxlab.author.tiles import Tile
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

LINE = 128  # bytes of a row of a K tile: the width of the swizzle
SECTOR = 32  # bytes of memory that caches read at a time
UNIT = 16  # bytes that descriptors count in
STRIPE = 64  # rows of one `wgmma`; also the 16-bit elements of a row

PREFETCHES = [ptx.cp.async_.bulk.prefetch.tensor[f"{rank}d"].L2["global"] for rank in range(1, 6)]
COPIES = [
    ptx.cp.async_.bulk.tensor[f"{rank}d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
    for rank in range(1, 6)
]


def padded(rows: int, sharers: int) -> int:
    """Rows of a K tile that so many blocks copy: each as many, and whole groups of 8, as the swizzle has them."""
    return -(-rows // (8 * sharers)) * 8 * sharers if sharers > 1 else rows


@dataclass(frozen=True)
class Operand:
    """One of both: `rows` of it are multiplied by a block; each of `sharers` blocks copies a part, to all of them.

    That is some of the rows, or, if the matrix is not along k, all of them for a part of k. The rows may be of several
    matrices, as many of each. A matrix may be one of several in an array: `coordinates` then say which. Of a cluster
    with more blocks than sharers, the ranks of those that share a K tile are `apart`. Some rows more may be copied than
    are multiplied, so that all copy as many.
    """

    rows: int
    along_k: bool
    stages: int
    sharers: int = 1
    element: type[Scalar] = b16
    matrices: int = 1
    keep: str = ""  # what L2 does with it: "evict_first" for what is read once, "evict_last" for what is read again
    span: int = STRIPE  # elements of a row of a box, if the matrix is not along k: 64, 32 or 16
    cluster: int = 0  # blocks of a cluster; 0: as many as sharers
    apart: int = 1  # from the rank of a sharer to that of the next

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.element.type.width // 8

    @property
    def depth(self) -> int:
        """Elements of a K tile along k."""
        return LINE // self.bytes

    @property
    def boxes(self) -> int:
        """Boxes of a K tile of a matrix that this block copies."""
        return 1 if self.along_k else -(-self.rows // self.span) // self.matrices

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of a box."""
        if self.along_k:
            return padded(self.rows // self.matrices, self.sharers) // self.sharers, self.depth
        return self.depth // self.sharers, self.span

    @property
    def swizzle(self) -> str:
        """The swizzle, as long as a row of a box."""
        return "128B" if self.along_k else f"{2 * self.span}B"

    @property
    def stage_bytes(self) -> int:
        """Bytes of a K tile."""
        return self.sharers * self.matrices * self.boxes * self.box[0] * self.box[1] * self.bytes

    def map(self, matrix: Array) -> TensorMap:
        """The tensor map that copies are given, of a matrix or of an array of them; f32 is rounded to tf32."""
        box = *(1 for _ in matrix.shape[2:]), *self.box
        type = "tf32" if self.bytes == 4 else None
        found = ptxlab.tensor_map(matrix, box=box, swizzle=self.swizzle, l2_promotion="256B", type=type)
        if any(step % SECTOR for step in found.strides):  # rows of a box are parts of more lines then
            return replace(found, l2_promotion="128B")
        return found

    def tile(self, memory: Pointer) -> Tile:
        """The K tiles of all stages, one box after the other."""
        copied = self.matrices * self.sharers * self.box[0]
        rows, columns = (copied, self.depth) if self.along_k else (self.depth, self.span)
        copies = self.stages if self.along_k else self.stages * self.boxes * self.matrices
        return ptx.tile(self.element, rows, columns, swizzle=self.swizzle, copies=copies, at=memory)

    def policy(self) -> tuple[object, ...]:
        """What copies are given besides, for the L2 cache."""
        return (ptx.createpolicy.fractional[f"L2::{self.keep}"].b64(1.0),) if self.keep else ()

    def coordinates(self, first: Any, start: Any) -> tuple[Any, Any, Sequence[u32]]:
        """Where a K tile is: its row, where it is along k, and the coordinates of its matrix in an array of them."""
        return first, start, ()

    def copy(
        self, sources: list[Pointer], tile: Tile, stage: Side, first: Any, start: u32, rank: Any, policy: Sequence[Any]
    ) -> None:
        """Start the copies of a K tile to a stage: rows from `first` on, along k from `start` on.

        `sources` are the tensor maps, one of each matrix; `rank` is that of the block in its cluster, `policy` is what
        `policy()` returned.
        """
        first, start, outer = self.coordinates(first, start)
        part, everyone = self.part(rank), self.everyone(rank)
        for number, (source, coordinates) in enumerate(self.places(sources, first, start, rank, outer)):
            row = number * self.sharers * self.box[0] if self.along_k else 0  # after those of the matrices before
            index = stage.index if self.along_k else stage.index * (self.boxes * self.matrices) + number
            place = tile.at(row + part * self.box[0] if self.sharers > 1 else row, 0, index)
            copy: Any = COPIES[len(coordinates) - 1]
            copy = copy["multicast::cluster"] if everyone else copy
            copy = copy["L2::cache_hint"] if policy else copy
            copy(place, (source, coordinates), stage.barrier, *everyone, *policy)

    def prefetch(
        self, sources: list[Pointer], first: u32, start: object, rank: object, policy: tuple[object, ...] = ()
    ) -> None:
        """Have what `copy` copies brought to the L2 cache. Nothing is read: earlier kernels may still write it."""
        for source, coordinates in self.places(sources, first, start, rank):
            ask = PREFETCHES[len(coordinates) - 1]
            (ask["L2::cache_hint"] if policy else ask)((source, coordinates), *policy)

    def places(
        self, sources: list[Pointer], first: u32, start: object, rank: object, outer: Sequence[u32] = ()
    ) -> Iterator[tuple[object, tuple[object, ...]]]:
        """The tensor map and the coordinates of each box that this block copies."""
        if self.sharers > 1:
            more = self.part(rank) * self.box[0]
            first, start = (first + more, start) if self.along_k else (first, start + more)
        for number in range(self.matrices * self.boxes):
            there = (start, first) if self.along_k else (first + number % self.boxes * self.span, start)
            yield sources[number // self.boxes], tuple(one.view(s32) for one in (*there, *outer))

    def part(self, rank: Any) -> Any:
        """Which part of a K tile the block of this rank copies."""
        if self.cluster <= self.sharers:
            return rank
        return rank // self.apart if self.apart > 1 else rank % self.sharers

    def everyone(self, rank: Any) -> list[u16]:
        """A bit for each block that a part is copied to: those that share it with the block of this rank."""
        if self.sharers == 1:
            return []
        bits = sum(1 << self.apart * number for number in range(self.sharers))
        if self.cluster <= self.sharers:
            return [u16(bits)]
        first = rank % self.apart if self.apart > 1 else rank - rank % self.sharers
        return [ptx.cvt.u16.u32(ptx.shl.b32(u32(bits), first))]

    def units(self, step: int) -> int:
        """How far the part of a K tile from element `step` along k on is from its start, as descriptors count."""
        return step * (self.bytes if self.along_k else 2 * self.span) // UNIT


class Descriptors:
    """What `wgmma` is given for an operand, from row 64·`stripe` of its K tiles on.

    It is made once; where a stage is, and what is in it, is added: the address is in the lowest bits, with space above.
    """

    def __init__(self, operand: Operand, tile: Tile, stripe: u32 | None = None) -> None:
        self.operand = operand
        self.start = ptx.descriptor(tile, transposed=not operand.along_k)
        if stripe is not None:
            self.start = self.start + ptx.cvt.u64.u32(stripe * (STRIPE * LINE // UNIT))

    def stage(self, index: u32) -> Scalar:
        """The descriptor of a stage."""
        return self.start + ptx.mul.wide.u32(index, self.operand.stage_bytes // UNIT)

    def at(self, start: Scalar, step: int, stripe: int = 0) -> Scalar:
        """The descriptor of 32 bytes along k, from element `step` on, of the stage that starts there."""
        more = self.operand.units(step) + stripe * (STRIPE * LINE // UNIT)
        return start + more if more else start
