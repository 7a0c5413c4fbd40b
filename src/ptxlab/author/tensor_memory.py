"""Tensor memory of Blackwell: columns that a block allocates, and the descriptors of `tcgen05.mma`.

`cells = ptx.tensor_memory(128, when=warp == 0)` allocates them, synchronizes the block and reads the address; then
`cells.at(column)` is an operand of `tcgen05.mma`, and `cells.rows(warp, column)` one of a warp's `tcgen05.ld`. At the
end `cells.free()`.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import raw
from ptxlab.author.arrays import declare
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.values import Scalar, b32, u32
from ptxlab.isa.units.instruction_descriptor import PAIR, PLAIN, InstructionDescriptor

LANES = 16 + 5  # the lane is in the upper half of an address; a warp reads 32 of them
MOST = 512  # columns


class TensorMemory:
    """Columns of tensor memory, each 32 bits wide in 128 lanes; of two blocks, in each of them."""

    def __init__(self, address: u32, columns: int, when: Scalar, blocks: int) -> None:
        self.address = address
        self.columns = columns
        self._when = when
        self._blocks = blocks

    def at(self, column: object = 0) -> Any:
        """The address of a column, a number or a register, as `tcgen05.mma` and `tcgen05.cp` take it."""
        return self._at(self.address, column)

    def rows(self, warp: u32, column: object = 0) -> Any:
        """The address of the 32 lanes that a warp reads and writes, from a column on; `warp` counts from 0 to 3."""
        return self._at(self.address + (warp << LANES), column)

    def _at(self, address: u32, column: object) -> Any:
        if not isinstance(column, int):
            return raw.at((address + column).view(b32), 0)
        if not 0 <= column < self.columns:
            refuse("outside-array", f"column {column} is outside of the {self.columns} that are allocated")
        return raw.at(address.view(b32), column)

    def free(self) -> None:
        """Synchronize the block, or both, and deallocate; loads were waited for, and MMAs by their commits.

        Lanes that had roles of their own converge before the barrier of a cluster, which is one of whole warps.
        """
        if self._blocks > 1:
            emit("bar.warp.sync", [-1])
        _synchronize(self._blocks)
        emit(
            f"tcgen05.dealloc.cta_group::{self._blocks}.sync.aligned.b32", [self.address, self.columns], when=self._when
        )


def tensor_memory(columns: int, *, when: Scalar, blocks: int = 1) -> TensorMemory:
    """Allocate columns by the warp of `when`, and synchronize the block, or with `blocks=2` both of a pair.

    That also makes visible what was initialized before: `ptx.barrier_pipeline` needs no barrier of its own.
    """
    if columns not in (32, 64, 128, 256, MOST):
        refuse("illegal-declaration", f"{columns} columns can't be allocated", helps=["choose 32, 64, 128, 256 or 512"])
    slot = declare("shared", u32, (1,), 4, "tensor_memory")
    group = f"cta_group::{blocks}.sync.aligned"
    emit(f"tcgen05.alloc.{group}.shared::cta.b32", [slot.at(0), columns], when=when)
    emit(f"tcgen05.relinquish_alloc_permit.{group}", [], when=when)
    _synchronize(blocks)
    return TensorMemory(slot[0], columns, when, blocks)


def _synchronize(blocks: int) -> None:
    """All threads synchronize, those of two blocks if there are two."""
    if blocks == 1:
        emit("bar.sync", [0])
    else:
        emit("barrier.cluster.arrive.release.aligned", [])
        emit("barrier.cluster.wait.acquire.aligned", [])


def instruction_descriptor(
    kind: str, rows: int, columns: int, atype: str, btype: str | None = None, *, blocks: int = 1, **more: Any
) -> int:
    """The bits that say to `tcgen05.mma` what it multiplies; `more` are other fields of `InstructionDescriptor`."""
    form = PAIR if blocks == 2 else PLAIN
    try:
        return InstructionDescriptor(kind, rows, columns, atype, btype or atype, form=form, **more).encode()
    except ValueError as problem:
        refuse("no-descriptor", f"no instruction descriptor says this: {problem}")
