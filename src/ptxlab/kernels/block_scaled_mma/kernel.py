"""D = A·Bᵀ of matrices with scale factors by `mma.sync`, as GPUs of sm_120 have it: a warp computes 16 by 32 of D.

Whatever the format, an MMA takes 32 bytes of each row of A and B, and a lane has the same bytes of it in its registers.
The factors come in a register of their own: in each four lanes, the first has those of row g of A and of column g of B,
the second those of row g + 8 of A, where g is the number of the four.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, Scalar, b8, b32, f32, kernel, pointer, ptx, u32

WARPS = 4
ROWS, COLUMNS = 16, 8  # of an MMA
ACROSS = 4  # MMAs side by side, which share their part of A
BYTES = 32  # of a row that an MMA multiplies
LOAD = ptx.ld.global_.nc


@dataclass(frozen=True)
class Format:
    """What is multiplied: the kind of MMA, the types of A and B, and the factors."""

    kind: str
    a: str
    b: str
    group: int
    """Numbers that share a factor."""
    factor: str

    @property
    def bits(self) -> int:
        """Bits that a number takes in memory and in registers."""
        return 8 if self.kind == "mxf8f6f4" else 4

    @property
    def depth(self) -> int:
        """Numbers of a row that an MMA multiplies."""
        return BYTES * 8 // self.bits

    @property
    def scale_factors(self) -> int:
        """Factors of a row that an MMA takes."""
        return self.depth // self.group

    @property
    def instruction(self) -> Any:
        """The MMA."""
        scaled = f"kind::{self.kind}.block_scale.scale_vec::{self.scale_factors}X"
        return ptx[f"mma.sync.aligned.m16n8k{self.depth}.row.col.{scaled}.f32.{self.a}.{self.b}.f32.{self.factor}"]


@cache
def specialize(format: Format) -> Kernel:
    """Build the kernel; its arguments are A, B, their factors, D, the extents of D, and the bytes of a row of A."""

    @kernel(target="sm_120a", maxntid=32 * WARPS)
    def block_scaled_mma(
        a: pointer[b8], a_factors: pointer[b8], b: pointer[b8], b_factors: pointer[b8], d: pointer[f32], m: u32, n: u32,
        bytes: u32,
    ) -> None:  # fmt: skip
        four, within = ptx.laneid >> 2, ptx.laneid & 3
        row = (ptx.ctaid.y * WARPS + (ptx.tid.x >> 5)) * ROWS + four
        column = ptx.ctaid.x * (ACROSS * COLUMNS) + four
        left = [Row(format, a, a_factors, first, m, bytes) for first in (row, row + 8)]
        right = [Row(format, b, b_factors, column + COLUMNS * at, n, bytes) for at in range(ACROSS)]
        scaled = Row(format, a, a_factors, row + (within & 1) * 8, m, bytes)
        sums = [[f32(0.0) for _ in range(4)] for _ in range(ACROSS)]
        for start in ptx.range(0, bytes, BYTES):
            parts = [one.words(start + within * 4) for one in left]
            held = [parts[0][0], parts[1][0], parts[0][1], parts[1][1]]
            scale = scaled.scale(start)
            for other, total in zip(right, sums, strict=True):
                given = (held, other.words(start + within * 4), total)
                format.instruction(*given, scale, (0, 0), other.scale(start), (0, 0), out=[total])
        first = ptx.ctaid.x * (ACROSS * COLUMNS) + within * 2
        for at, total in enumerate(sums):
            store(d, (row, first + at * COLUMNS), (m, n), total)

    return block_scaled_mma


class Row:
    """A row of a matrix and of its factors; beyond the last one, the last one, which no result is stored of."""

    def __init__(
        self, format: Format, matrix: Pointer, scale_factors: Pointer, number: u32, rows: u32, bytes: u32
    ) -> None:
        number = ptx.min.u32(number, rows - 1)
        self.count = format.scale_factors
        self.numbers = matrix.at(ptx.mul.wide.u32(number, bytes))
        self.scale_factors = scale_factors.at(ptx.mul.wide.u32(number, bytes // BYTES * self.count))

    def words(self, at: Any) -> list[b32]:
        """Four bytes, and the four that are 16 bytes after them."""
        return [LOAD.b32(self.numbers + (at + half)) for half in (0, 16)]

    def scale(self, start: u32) -> Scalar:
        """The factors of the numbers that start there, in the low bytes of a register."""
        place = self.scale_factors + start // BYTES * self.count
        if self.count == 4:
            return LOAD.b32(place)
        return ptx.cvt.u32.u16(LOAD.b16(place) if self.count == 2 else LOAD.u8(place))


def store(d: Pointer, at: tuple[u32, u32], extents: tuple[u32, u32], values: list[f32]) -> None:
    """Store what a lane has of a tile: two neighbours in a row, and two in the row 8 below."""
    (row, column), (m, n) = at, extents
    for down in (0, 8):
        with ptx.when(ptx.and_.pred(row + down < m, column < n)):
            pair = values[down // 4 : down // 4 + 2]
            ptx.st.global_.v2.f32(d.at(ptx.mad.lo.u32(row + down, n, column)), pair)
