"""The way of accumulators to D: they are finished, rounded, and stored from shared memory.

A warpgroup has 64 rows of the tile for each of its MMAs, in boxes that one copy stores each. Copies run while the next
tile is multiplied; before the memory is used again, they have read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

import ptxlab
from ptxlab.author import Pointer, b16, b32, f16, ptx, s32, u32
from ptxlab.kernels.parts.operands import LINE, STRIPE
from ptxlab.kernels.parts.warpgroups import GROUP, pack

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

WIDEST = 112  # columns of a box without a swizzle
CHUNK = 8  # columns of D that a thread has two pairs of
REGISTERS = 176  # of a thread, for accumulators and what is added to them; the rest is for addresses
COPY_BACK = ptx.cp.async_.bulk.tensor["2d"]["global"]["shared::cta"].bulk_group
ADD_BACK = ptx.cp.reduce.async_.bulk.tensor["2d"]["global"]["shared::cta"].add.bulk_group


@dataclass(frozen=True)
class Boxes:
    """How a block stores a tile: each of `groups` warpgroups `tall` times 64 rows of `width` columns, box after box."""

    groups: int
    tall: int
    width: int
    swap_ab: bool = False  # D is stored transposed
    buffers: int = 0  # boxes that a warpgroup has space for; 0: for all of a tile
    size: int = 2  # bytes of an element of D
    pingpong: bool = False  # each warpgroup stores tiles of its own
    box: int = 0  # columns of a box; an odd multiple of 8 has no swizzle; 0: as wide as a swizzle

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns of D that one copy stores, by one warpgroup.

        Rows of an odd multiple of 32 bytes need no swizzle: `stmatrix` writes 8 of them with conflicts of two at most.
        """
        most = LINE // self.size
        if self.swap_ab:
            return self.width, min(STRIPE, most)
        if self.box:
            return STRIPE, self.box
        whole = self.size == 2 and self.width % 32 == 16 and self.width <= WIDEST
        return STRIPE, self.width if whole else gcd(self.width, most)

    @property
    def each(self) -> int:
        """Boxes of 64 rows of the tile."""
        return STRIPE * self.width // (self.extents[0] * self.extents[1])

    @property
    def kept(self) -> int:
        """Boxes that a warpgroup has space for."""
        return self.buffers or self.tall * self.each

    @property
    def bytes(self) -> int:
        """Bytes of all boxes that a block has space for."""
        return self.size * self.groups * self.kept * self.extents[0] * self.extents[1]

    @property
    def swizzle(self) -> str | None:
        """The swizzle of a box: as long as its rows."""
        return None if self.box % 16 else {128: "128B", 64: "64B", 32: "32B"}.get(self.size * self.extents[1])

    def map(self, d: Array) -> TensorMap:
        """The tensor map that copies are given, of a matrix or of an array of them."""
        return ptxlab.tensor_map(d, box=(*(1 for _ in d.shape[2:]), *self.extents), swizzle=self.swizzle)


class TileStore:
    """What a consumer thread needs to store its part of a tile.

    `store` is a `CopyBack` or a `PlainStore`; `finish.apply` changes accumulators before they are rounded, by what
    `finish.load` has loaded. `prepare` loads that for the first boxes, as many as there are registers for.
    """

    parts = 1  # that accumulators are of, before sums over blocks; one is stored

    def __init__(self, type: str, boxes: Boxes, memory: Pointer, store: Any, finish: Any = None) -> None:
        self.type, self.boxes, self.store, self.finish = type, boxes, store, finish
        copies = boxes.groups * boxes.kept
        element = {2: b16, 4: b32}[boxes.size]
        self.tile = ptx.tile(element, *boxes.extents, swizzle=boxes.swizzle, copies=copies, at=memory)
        self.group, self.warp = ptx.tid.x // GROUP, ptx.tid.x >> 5 & 3
        self.is_first = ptx.tid.x % GROUP == 0
        self.is_plain = not isinstance(store, CopyBack)
        self.loaded: list[Any] = []  # for each of the next boxes, what is added
        columns = 2 * CHUNK if boxes.size == 2 and self.values % 8 == 0 else CHUNK
        product = ptx.wgmma.mma_async.sync.aligned[f"m64n{columns}k16"].f32.f16.f16
        self.fragment, self.columns = ptx.warpgroup_fragments(product).d, columns

    @property
    def values(self) -> int:
        """Accumulators of a box, or of 64 rows if D is stored transposed."""
        return STRIPE * self.boxes.width // (GROUP * (1 if self.boxes.swap_ab else self.boxes.each))

    @property
    def ahead(self) -> int:
        """Boxes for which there are registers to load what is added before they are stored."""
        if self.finish is None:
            return 0
        free = REGISTERS - self.parts * STRIPE * self.boxes.width * self.boxes.tall // GROUP
        each: int = max(self.finish.registers(self.values), 1)
        return min(self.boxes.tall * self.boxes.each, max(0, free // each))

    def prepare(self, row: Any, column: Any) -> None:
        """Load what is added to the first boxes that are stored, from that element on."""
        self.loaded = [[*self.load(number, row, column)] for number in range(self.ahead)]

    def load(self, number: int, row: u32, column: u32) -> Iterator[Any]:
        """Load what is added to a box: for each block of columns, what `finish` has loaded."""
        if self.finish is not None:
            row, column = self.first(number, row, column)
            part, box = divmod(number, self.boxes.each)
            column = self.finish.inside(column, 2 * self.values)
            for at in range(0, self.values * 2, self.columns):
                place = part, at if self.boxes.swap_ab else box * self.values * 2 + at
                yield self.finish.load(self.fragment, row + self.warp * 16, column, place, at)

    def first(self, number: int, row: u32, column: u32) -> tuple[u32, u32]:
        """The first row and column of a box of a tile, or of its 64 rows if D is stored transposed."""
        part, box = divmod(number, self.boxes.each)
        own = row if self.boxes.pingpong else row + self.group * (STRIPE * self.boxes.tall)
        return own + part * STRIPE, column if self.boxes.swap_ab else column + box * 2 * self.values

    def write(self, accumulators: list[list[Any]], row: Any, column: Any) -> None:
        """Store a tile, or the part of it that this block has, whose first element is there."""
        kept, boxes, tall, ahead = self.boxes.kept, self.boxes.each, self.boxes.tall, len(self.loaded)
        for number in range(tall * boxes):
            part, box = divmod(number, boxes)
            if number == 0 or kept < tall * boxes:
                if not self.is_plain:  # the copies that still read are those of the other boxes
                    ptx.cp.async_.bulk.wait_group.read(kept - 1 if number else 0, when=self.is_first)
                self.synchronize()
            copy = self.group * kept + number % kept
            loaded = self.loaded.pop(0) if self.loaded else self.load(number, row, column)
            first, values = self.first(number, row, column), accumulators[part]
            if self.boxes.swap_ab:
                self.stage(values, copy, loaded, box)
                first = first[0] + box * (STRIPE // boxes), column
            else:
                self.stage(values[self.values * box :][: self.values], copy, loaded, box)
            if 0 < ahead < tall * boxes - number:
                self.loaded.append([*self.load(number + ahead, row, column)])
            if not self.is_plain:
                ptx.fence.proxy.async_["shared::cta"]()
            self.synchronize()
            self.store.start(self, copy, (first[1], first[0]) if self.boxes.swap_ab else first)

    def stage(self, values: list[object], copy: u32, loaded: Iterable[object], box: int) -> None:
        """Finish accumulators of one box and write them to shared memory."""
        each = 4 * self.columns // CHUNK
        parts: Iterable[list[Any]] = (values[number : number + each] for number in range(0, len(values), each))
        if self.finish is not None:
            parts = (self.finish.apply(part, added) for part, added in zip(parts, loaded, strict=True))
        if self.boxes.size == 2:
            self.stage_halves(parts, copy)
        elif self.boxes.swap_ab:  # columns of a box are rows of half of the warps
            with ptx.when(self.warp // 2 == box):
                self.stage_words(parts, copy)
        else:
            self.stage_words(parts, copy)

    def stage_words(self, parts: Iterable[list[Any]], copy: u32) -> None:
        """Elements of 32 bits: two neighbours of a row at once, or one by one if D is transposed."""
        fragment = self.fragment
        down, right = fragment.first(ptx.laneid)
        rows = self.warp * 16 + down
        if self.boxes.swap_ab:
            rows = rows % self.boxes.extents[1]
            starts = [self.tile.at(right + across, rows + along, copy) for along, across in fragment.offsets]
        else:
            start = self.tile.at(rows, right, copy, below=CHUNK)
            starts = [start, start.move(rows=CHUNK)]
        for number, values in enumerate(parts):
            at = number * CHUNK
            words = [one.view(b32) for one in values]
            if self.boxes.swap_ab:
                for start, word in zip(starts, words, strict=True):
                    ptx.st.shared.b32(start.move(rows=at), word)
            else:
                for start, pair in zip(starts, (words[:2], words[2:]), strict=True):
                    ptx.st.shared.v2.b32(start.move(columns=at), tuple(pair))

    def stage_halves(self, parts: Iterable[list[Any]], copy: u32) -> None:
        """Elements of 16 bits, by `stmatrix`: two by two columns of eight if there are."""
        halves = self.fragment.packed(f16)
        for number, values in enumerate(parts):
            at = number * self.columns
            rounded = [pack(self.type, low, high) for low, high in zip(values[::2], values[1::2], strict=True)]
            if self.boxes.swap_ab:
                turned = halves.transposed
                down, right = turned.row_of(ptx.laneid)
                turned.store(self.tile.at(down + at, right + self.warp * 16, copy), rounded)
            else:
                halves.store(self.tile.matrices(halves, ptx.laneid, self.warp * 16, at, copy), rounded)

    def synchronize(self) -> None:
        """Synchronize the threads of the warpgroup, at a barrier of their own."""
        ptx.barrier.sync.aligned(self.group + 1, GROUP)

    def finish_all(self) -> None:
        """Wait until the last copies have read; what they write is there when the kernel is complete."""
        if not self.is_plain:
            ptx.cp.async_.bulk.wait_group.read(0, when=self.is_first)


class CopyBack:
    """Boxes are stored by TMA copies, or added to D by such, which skip what is out of bounds of D."""

    def __init__(self, d: Pointer, adds: bool = False) -> None:
        self.d, self.instruction = d, ADD_BACK if adds else COPY_BACK

    def start(self, of: TileStore, copy: u32, first: tuple[u32, u32]) -> None:
        """One thread starts the copy of a box."""
        with ptx.when(of.is_first):
            self.copy(of, copy, first)
            ptx.cp.async_.bulk.commit_group()

    def copy(self, of: TileStore, copy: u32, first: tuple[u32, u32]) -> None:
        """Start the copy of a box, by this thread."""
        row, column = first
        self.instruction((self.d, (column.view(s32), row.view(s32))), of.tile.at(0, 0, copy))


class PlainStore:
    """Boxes are stored element by element: rows of D may start anywhere."""

    def __init__(self, d: Pointer, m: u32, n: u32, pitch: u32) -> None:
        self.d, self.m, self.n, self.pitch = d, m, n, pitch

    def start(self, of: TileStore, copy: u32, first: tuple[u32, u32]) -> None:
        """All threads of the warpgroup store a box."""
        (row, column), (rows, columns) = first, of.boxes.extents
        for number in ptx.range(ptx.tid.x % GROUP, u32(rows * columns), GROUP):
            down, right = number // columns, number % columns
            at_row, at_column = row + down, column + right
            with ptx.when(ptx.and_.pred(at_row < self.m, at_column < self.n)):
                bits = f"b{8 * of.boxes.size}"
                value = ptx.ld.shared[bits](of.tile.at(down, right, copy))
                ptx.st.global_[bits](self.d + ptx.mad.wide.u32(at_row, self.pitch, ptx.cvt.u64.u32(at_column)), value)
        of.synchronize()
