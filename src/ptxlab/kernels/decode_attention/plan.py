"""The parameters of the kernel, fixed when it is built."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ptxlab.author import Swizzle

ROWS = 16  # heads of queries that a product takes
CHUNK = 16  # bytes that one copy moves
SHARED = 227 << 10  # bytes of an SM
PAD = 8  # numbers between rows of results in shared memory, which puts rows into different banks


@dataclass(frozen=True)
class Plan:
    """How a block attends."""

    size: int
    """The size of a head: 64, 128 or 256."""
    type: str
    """The type of queries and results: bf16 or f16."""
    cache: str
    """The type of keys and values: that of the queries, or e4m3."""
    is_paged: bool = False
    """Whether a table says where keys and values are, page by page."""
    few: bool = True
    """Whether at most 8 heads share a head of keys: then half of each product is left out."""
    warps: int = 4
    keys: int = 16
    """Keys that a warp multiplies at once."""
    stages: int = 3
    """Stages of keys and values in shared memory, for each warp its own."""
    blocks: int = 2
    """Blocks on an SM at once."""
    together: int = 16
    """Parts of a result that are read at once when they are put together."""

    def __str__(self) -> str:
        paged = "_paged" if self.is_paged else ""
        split = f"{self.warps}x{self.keys}x{self.stages}x{self.blocks}"
        return f"{self.size}_{self.type}_{self.cache}{paged}_{self.rows}_{split}"

    @property
    def rows(self) -> int:
        """Rows of a product that count."""
        return ROWS // 2 if self.few else ROWS

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def tile(self) -> int:
        """Keys that a block has at once."""
        return self.keys * self.warps

    @property
    def is_narrow(self) -> bool:
        """Whether an element of keys and values is one byte."""
        return self.cache == "e4m3"

    @property
    def multiplied(self) -> str:
        """The type that is multiplied: one that every e4m3 is exactly representable in is f16."""
        return "f16" if self.is_narrow else self.type

    @property
    def row_bytes(self) -> int:
        """Bytes of a key."""
        return self.size * (1 if self.is_narrow else 2)

    @property
    def swizzle(self) -> Swizzle:
        """What puts eight rows of a column into different banks."""
        return Swizzle(3, shift=int(math.log2(self.row_bytes)) - 4)

    @property
    def ring(self) -> int:
        """Bytes of shared memory for the keys of all stages; values take as many."""
        return self.warps * self.stages * self.keys * self.row_bytes

    @property
    def results(self) -> int:
        """Bytes of shared memory for results of warps."""
        return self.warps * self.rows * (self.size + PAD) * 4

    @property
    def apart(self) -> bool:
        """Whether there is room for them beside the keys; else they go where keys were, once all warps have read."""
        return (2 * self.ring + self.results + 2048) * self.blocks <= SHARED

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block, besides a few."""
        return 2 * self.ring + self.results if self.apart else max(2 * self.ring, self.results)

    @property
    def part(self) -> int:
        """Numbers of a part of a result: its rows, and for each the maximum and the sum of its weights."""
        return self.rows * (self.size + 2)
