"""The parameters of the kernel: the rows and keys of a tile, the ring of stages, the registers of each warpgroup."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ptxlab.author import ptx, s32, u32
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.scoring import UNCHANGED, Scoring

LINE = 128  # bytes of a row that one copy moves: the width of the swizzle
BOX = 64  # elements of 2 bytes in them
STEP = 32  # bytes along which one MMA multiplies
GROUP_ROWS = 64  # rows that a warpgroup multiplies
DEPTH = 16  # elements along which one MMA of 2-byte elements multiplies


@dataclass(frozen=True)
class Plan:
    """A block computes 64 rows for each of `groups` warpgroups, `keys` keys at a time.

    Heads have `size` elements. Tiles are multiples of 16 and 64 columns wide; what is beyond a head is 0, as TMA fills
    it, and is not stored.
    """

    size: int
    type: str
    causal: bool = False
    window: bool = False
    """Whether a query attends to a number of keys only, of those up to its own."""
    groups: int = 2
    keys: int = 128
    stages: int = 2
    packed: bool = False
    """Whether sequences of unequal lengths are one after the other, in a batch of their own."""
    logs: bool = False
    """Whether the log-sum-exp of each row is stored, for the gradients."""
    values: int = 0
    """Elements of a head of values and of the answer; 0: as many as of queries and keys."""
    scoring: Scoring = UNCHANGED
    """What becomes of scores before the softmax."""
    page: int = 0
    """Positions of a page, where keys and values are in pages of a cache."""

    @property
    def rows(self) -> int:
        """Queries of a tile."""
        return self.groups * GROUP_ROWS

    @property
    def key_rows(self) -> int:
        """Keys or values that one copy moves: of one page."""
        return math.gcd(self.keys, self.page)

    @property
    def element(self) -> str:
        """The type of queries, keys and values; that of the answer is `type`."""
        return self.type

    @property
    def bytes(self) -> int:
        """Bytes of an element of queries, keys and values."""
        return 2

    @property
    def width(self) -> int:
        """Columns of queries and keys that are multiplied."""
        return -(-self.size // DEPTH) * DEPTH

    @property
    def columns(self) -> int:
        """Columns of values and of the answer."""
        return -(-(self.values or self.size) // DEPTH) * DEPTH

    @property
    def box(self) -> int:
        """Columns that one copy moves."""
        return min(-(-self.size // BOX) * BOX, LINE // self.bytes)

    @property
    def boxes(self) -> int:
        """Copies that a row of queries or keys takes."""
        return -(-self.width // self.box)

    @property
    def value_boxes(self) -> int:
        """Copies that a row of values takes."""
        return -(-self.columns // self.box)

    @property
    def answer_boxes(self) -> int:
        """Copies that a row of the answer takes."""
        return -(-self.columns // BOX)

    @property
    def answer_step(self) -> int:
        """Boxes from the answer of one warpgroup to that of the next, which may be where its queries were."""
        return self.answer_boxes if self.overlaps else self.boxes

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and a warpgroup that issues copies."""
        return (self.groups + 1) * GROUP

    @property
    def kept(self) -> int:
        """Registers of a producer thread."""
        return 40 if self.groups < 3 else 32

    @property
    def taken(self) -> int:
        """Registers of a consumer thread."""
        return 232 if self.groups < 3 else 160

    @property
    def is_counted(self) -> bool:
        """Whether blocks count tiles while they run: under a mask, or of unequal lengths, these take unequal times.

        Where they take equal ones, it was measured to pay for heads of 64 elements only.
        """
        return self.causal or self.packed or self.size <= 64

    def span(self, first: s32, keys: u32, window: u32) -> tuple[u32, u32]:
        """The tiles of keys that the tile at a row attends to: the first, and the one after the last; one at least."""
        row = self.row(first)
        start, end = u32(0), ptx.max.u32((keys + (self.keys - 1)) // self.keys, 1)
        if self.causal:
            end = ptx.min.u32(end, (row + (self.rows + self.keys - 1)) // self.keys)
        if self.window:
            start = ptx.min.u32(self.above(row + 1, window) // self.keys, end - 1)
        return start, end

    def row(self, row: s32) -> u32:
        """A row as tiles of keys are counted by it; one before the first key is as that of the first."""
        return ptx.max.s32(row, 0).view(u32) if self.page else row.view(u32)

    @staticmethod
    def above(row: u32, window: u32) -> u32:
        """The key a window before a row, or the first."""
        return ptx.max.u32(row, window) - window

    @property
    def packs_early(self) -> bool:
        """Whether there are registers for the weights of two tiles of keys: those multiplied, and the next."""
        return self.groups < 3

    @property
    def overlaps(self) -> bool:
        """Whether a tile begins before the last one is stored, where there is memory for two tiles of queries."""
        return self.size <= 128

    @property
    def query_stages(self) -> int:
        """Tiles of queries in shared memory."""
        return 2 if self.overlaps else 1

    @property
    def value_stages(self) -> int:
        """Stages of values."""
        return self.stages

    @property
    def answer_bytes(self) -> int:
        """Bytes of an answer; where tiles do not overlap it is where the queries were."""
        return 2 * self.rows * self.answer_boxes * BOX if self.overlaps else 0

    @property
    def query_bytes(self) -> int:
        """Bytes of a tile of queries."""
        return self.rows * self.boxes * self.box * self.bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of a tile of keys."""
        return self.keys * self.boxes * self.box * self.bytes

    @property
    def value_bytes(self) -> int:
        """Bytes of a tile of values."""
        return self.keys * self.value_boxes * self.box * self.bytes

    @property
    def shared(self) -> int:
        """Bytes of shared memory: the answer, queries, and stages of keys and of values."""
        read = self.stages * self.key_bytes + self.value_stages * self.value_bytes
        return self.answer_bytes + self.query_stages * self.query_bytes + read

    def mma(self, columns: int) -> Any:
        """The MMA of 64 rows and so many columns."""
        return ptx.wgmma.mma_async.sync.aligned[f"m64n{columns}k{STEP // self.bytes}"].f32[self.element][self.element]

    @property
    def scores(self) -> Any:
        """The MMA of queries and keys."""
        return self.mma(self.keys)

    @property
    def output(self) -> Any:
        """The MMA of P and V."""
        return self.mma(self.columns)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Where each MMA of queries and keys begins: the box, and the byte in its rows."""
        return [divmod(start, self.box * self.bytes) for start in range(0, self.width * self.bytes, STEP)]
