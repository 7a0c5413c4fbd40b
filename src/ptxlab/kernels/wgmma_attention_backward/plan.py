"""The parameters of the kernels: the queries of a tile, and what is in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxlab.author import b16, f32, ptx
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.scoring import UNCHANGED, Scoring

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile

BOX = 64  # columns that one copy moves: 128 bytes, the width of the swizzle
GROUPS = 2  # warpgroups that multiply
GROUP_KEYS = 64  # keys of each of them
KEYS = GROUPS * GROUP_KEYS  # of a block
STAGES = 2  # tiles of queries in shared memory
WIDEST = 128  # columns at most whose gradients a block has
THREADS = (GROUPS + 1) * GROUP
MOST_ROWS = 1024  # queries of a block where one kernel does all: what each row needs is in shared memory


def width_of(size: int) -> int:
    """Columns of tiles for heads of so many elements."""
    return next(width for width in (64, 128, 256) if size <= width)


@dataclass(frozen=True)
class Plan:
    """A block has 128 keys and multiplies them with `rows` queries at a time.

    Heads have `size` elements. Tiles have 64, 128 or 256 columns; what is beyond a head is 0, as TMA fills it, and is
    not stored.
    """

    size: int
    type: str
    causal: bool = False
    window: bool = False
    """Whether a query attends to a number of keys only, of those up to its own."""
    rows: int = 64
    ordered: bool = False
    """Whether blocks add to the gradient of the queries in one order, the same in every run."""
    values: int = 0
    """Elements of a head of values and of the answer; 0: as many as of queries and keys."""
    scoring: Scoring = UNCHANGED
    """What became of scores before the softmax."""
    shares: int = 0
    """Blocks that share the queries of a tile of keys, where one kernel does all; 0: three kernels or more do."""

    @property
    def width(self) -> int:
        """Columns of tiles."""
        return width_of(self.size)

    @property
    def boxes(self) -> int:
        """Copies that a row of a head takes."""
        return self.width // BOX

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of queries, or of the gradient of O."""
        return self.rows * self.width * 2

    @property
    def split(self) -> int:
        """How many parts of a tile's queries the warpgroups have, where they do not have columns of their own."""
        return GROUPS // (self.own // BOX)

    @property
    def own(self) -> int:
        """Columns whose gradients a block has: all, or half of them where there are no registers for more."""
        return min(self.width, WIDEST)

    @property
    def parts(self) -> int:
        """Blocks that share the columns of a tile of keys; each computes P."""
        return self.width // self.own

    @property
    def vectors(self) -> int:
        """Vectors of 4 numbers that a thread has of a tile of the gradient of the queries."""
        return self.rows // self.split // 8

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        keys = 2 * KEYS * self.width * 2
        return keys + STAGES * (2 * self.tile_bytes + self.rows * KEYS * 2)

    def mma(self, columns: int) -> Any:
        """The MMA of 64 rows and so many columns."""
        return ptx.wgmma.mma_async.sync.aligned[f"m64n{columns}k16"].f32[self.type][self.type]

    @property
    def scores(self) -> Any:
        """Keys times queries, or values times the gradient of O: both are transposed."""
        return self.mma(self.rows)

    @property
    def sums(self) -> Any:
        """The gradients of keys and values."""
        return self.mma(self.own)

    @property
    def queries(self) -> Any:
        """The gradient of the queries, transposed: 64 of its columns."""
        return self.mma(self.rows // self.split)


class Tiles:
    """Shared memory: keys and values, stages of queries and of the gradient of O, and what is made of them."""

    def __init__(self, plan: Plan) -> None:
        memory: Any = ptx.dynamic_shared(b16, align=1024)

        def cut(rows: int, copies: int) -> Tile:
            nonlocal memory
            found = ptx.tile(b16, rows, BOX, swizzle="128B", copies=copies, at=memory)
            memory = memory + copies * rows * BOX
            return found

        self.k, self.v = (cut(GROUP_KEYS, GROUPS * plan.boxes) for _ in range(2))
        self.q, self.do = (cut(plan.rows, STAGES * plan.boxes) for _ in range(2))
        self.ds = cut(plan.rows, STAGES * GROUPS)  # in each stage the keys of one warpgroup after the other
        count = MOST_ROWS if plan.shares else STAGES * plan.rows
        self.lse, self.d = (ptx.shared(f32, count, align=16, name=name) for name in ("lse", "d"))
