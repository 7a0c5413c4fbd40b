"""The way of accumulators to D: they are finished, rounded, and stored from shared memory.

A warpgroup has 64 rows of the tile for each of its MMAs, in boxes that one copy stores each. Copies run while the next
tile is multiplied; before the memory is used again, they have read it.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import b16, b32, f16, ptx, s32, u32
from ptxlab.kernels.wgmma_gemm.finish import Finish
from ptxlab.kernels.wgmma_gemm.shapes import CHUNK, STRIPE, Shape

GROUP = 128  # threads of a warpgroup
COPY_BACK = ptx.cp.async_.bulk.tensor["2d"]["global"]["shared::cta"].bulk_group


class Epilogue:
    """What a consumer thread needs to store its part of a tile."""

    def __init__(self, type: str, shape: Shape, memory: Any, store: Any, finish: Finish | None = None) -> None:
        self.type, self.shape, self.store, self.finish = type, shape, store, finish
        rows, columns = shape.box
        copies = shape.groups * shape.kept_boxes
        self.tile = ptx.tile(b16, rows, columns, swizzle=shape.box_swizzle, copies=copies, at=memory)
        self.group, self.warp = ptx.tid.x // GROUP, ptx.tid.x >> 5 & 3
        self.is_first = ptx.tid.x % GROUP == 0
        self.is_plain = not isinstance(store, CopyBack)

    def write(self, accumulators: list[list[Any]], row: Any, column: Any) -> None:
        """Store a tile, or the part of it that this block has, whose first element is there."""
        kept, boxes = self.shape.kept_boxes, self.shape.boxes
        own = row + self.group * (STRIPE * self.shape.tall)
        for number in range(self.shape.tall * boxes):
            part, box = divmod(number, boxes)
            if number == 0 or kept < self.shape.tall * boxes:
                if not self.is_plain:  # the copies that still read are those of the other boxes
                    ptx.cp.async_.bulk.wait_group.read(kept - 1 if number else 0, when=self.is_first)
                self.synchronize()
            copy = self.group * kept + number % kept
            first = own + part * STRIPE, column + box * (self.shape.width // boxes)
            each = len(accumulators[part]) // boxes
            self.stage(accumulators[part][box * each :][:each], copy, first)
            if not self.is_plain:
                ptx.fence.proxy.async_["shared::cta"]()
            self.synchronize()
            self.store.start(self, copy, (first[1], first[0]) if self.shape.swapped else first)

    def stage(self, values: list[Any], copy: Any, first: tuple[Any, Any]) -> None:
        """Round accumulators of one box and write them to shared memory, two by two columns of eight if there are."""
        columns = 2 * CHUNK if len(values) % 8 == 0 else CHUNK
        block = ptx.warpgroup_fragments(ptx.wgmma.mma_async.sync.aligned[f"m64n{columns}k16"].f32[self.type][self.type])
        packed = block.d.packed(f16)
        each = 2 * packed.registers
        for number in range(0, len(values), each):
            at = number // each * columns
            some = values[number : number + each]
            if self.finish is not None:
                some = self.finish.apply(some, block.d, first[0] + self.warp * 16, first[1] + at)
            pairs = zip(some[::2], some[1::2], strict=True)
            rounded = [ptx.cvt.rn[f"{self.type}x2"].f32(high, low).view(b32) for low, high in pairs]
            if self.shape.swapped:
                turned = packed.transposed
                down, right = turned.row_of(ptx.laneid)
                turned.store(self.tile.at(down + at, right + self.warp * 16, copy), rounded)
            else:
                packed.store(self.tile.matrices(packed, ptx.laneid, self.warp * 16, at, copy), rounded)

    def synchronize(self) -> None:
        """Synchronize the threads of the warpgroup, at a barrier of their own."""
        ptx.barrier.sync.aligned(self.group + 1, GROUP)

    def finish_all(self) -> None:
        """Wait until the last copies have read; what they write is there when the kernel is complete."""
        if not self.is_plain:
            ptx.cp.async_.bulk.wait_group.read(0, when=self.is_first)


class CopyBack:
    """Boxes are stored by TMA copies, which skip what is out of bounds of D."""

    def __init__(self, d: Any) -> None:
        self.d = d

    def start(self, of: Epilogue, copy: Any, first: tuple[Any, Any]) -> None:
        """One thread starts the copy of a box."""
        row, column = first
        with ptx.when(of.is_first):
            COPY_BACK((self.d, (column.view(s32), row.view(s32))), of.tile.at(0, 0, copy))
            ptx.cp.async_.bulk.commit_group()


class PlainStore:
    """Boxes are stored element by element: rows of D may start anywhere."""

    def __init__(self, d: Any, m: Any, n: Any, pitch: Any) -> None:
        self.d, self.m, self.n, self.pitch = d, m, n, pitch

    def start(self, of: Epilogue, copy: Any, first: tuple[Any, Any]) -> None:
        """All threads of the warpgroup store a box."""
        (row, column), (rows, columns) = first, of.shape.box
        for number in ptx.range(ptx.tid.x % GROUP, u32(rows * columns), GROUP):
            down, right = number // columns, number % columns
            at_row, at_column = row + down, column + right
            with ptx.when(ptx.and_.pred(at_row < self.m, at_column < self.n)):
                value = ptx.ld.shared.b16(of.tile.at(down, right, copy))
                ptx.st.global_.b16(self.d + ptx.mad.wide.u32(at_row, self.pitch, ptx.cvt.u64.u32(at_column)), value)
        of.synchronize()
