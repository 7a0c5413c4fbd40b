"""Types of a product by `wgmma`: what is multiplied, and what comes out.

A K tile is 128 bytes of each row whatever the type, and an MMA multiplies 32 of them: all that moves data is the same
for every type. Only 16-bit operands may be across k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import Scalar, b8, b16, b32, f32, ptx, s8, s32
from ptxlab.kernels.parts.operands import LINE

ELEMENTS: dict[str, type[Scalar]] = {
    "e4m3": b8, "e5m2": b8, "s8": s8, "f16": b16, "bf16": b16, "tf32": b32, "f32": b32, "s32": b32,
}  # fmt: skip


def bytes_of(type: str) -> int:
    """Bytes of an element."""
    return ELEMENTS[type].type.width // 8


@dataclass(frozen=True)
class Formats:
    """The types of A, B and D, as `wgmma` names them."""

    left: str
    right: str
    out: str

    @staticmethod
    def of(type: str | Formats) -> Formats:
        """All of one type."""
        return Formats(type, type, type) if isinstance(type, str) else type

    @property
    def element(self) -> type[Scalar]:
        """What an element of A and B is in memory."""
        return ELEMENTS[self.left]

    @property
    def depth(self) -> int:
        """Elements of a K tile along k."""
        return LINE // bytes_of(self.left)

    @property
    def out_size(self) -> int:
        """Bytes of an element of D."""
        return bytes_of(self.out)

    @property
    def accumulator(self) -> type[Scalar]:
        """The type of a register that sums are in."""
        return s32 if self.left == "s8" else f32

    def product(self, columns: int, swap_ab: bool = False) -> Any:
        """The instruction that multiplies 64 rows by so many columns."""
        left, right = (self.right, self.left) if swap_ab else (self.left, self.right)
        shape = f"m64n{columns}k{32 // bytes_of(self.left)}"
        return ptx.wgmma.mma_async.sync.aligned[shape][self.accumulator.type.name][left][right]
