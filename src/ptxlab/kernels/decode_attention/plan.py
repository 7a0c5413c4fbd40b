"""The parameters of the kernel, fixed when it is built, and which of them are best for a cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ptxlab.author import Swizzle

KEYS = 16  # that a product takes at least
ROWS = 16  # heads of queries that a product takes
CHUNK = 16  # bytes that one copy moves
SHARED = 227 << 10  # bytes of an SM
SMALLEST = 4096  # bytes of keys that a warp copies at a time
PAD = 8  # numbers between rows of results in shared memory, which puts rows into different banks
FEW_KEYS = 1 << 13  # of all heads
MANY_HEADS = 512  # of keys, in all sequences


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
    rows: int = ROWS // 2
    """Rows of a product that count: if at most 8 heads of queries have the same keys, half of it is left out."""
    warps: int = 4
    keys: int = KEYS
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
    def pitch(self) -> int:
        """Numbers from a row of results in shared memory to the next."""
        return self.size + PAD

    @property
    def results(self) -> int:
        """Bytes of shared memory for results of warps."""
        return 4 * self.warps * self.rows * self.pitch

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


def choose(
    size: int, type: str, cache: str, page: int, shared_by: int, heads: int = 64, keys_of_all: int = 1 << 20
) -> Plan:
    """The plan that was fastest on an H200: a warp copies 4 KiB of keys at a time, within a page.

    It is for so many heads of queries with the same keys, and of all heads and keys. Where heads are many, two blocks
    share an SM, and one reads while the other puts its warps' results together.
    """
    is_narrow = cache == "e4m3"
    row = size * (1 if is_narrow else 2)
    keys = max(KEYS, SMALLEST // row)
    while page % keys:
        keys //= 2
    if row > 256 or keys_of_all <= FEW_KEYS:  # of longer rows, two stages of eight warps do not fit
        warps, stages, blocks = 4, 3, 1
    elif heads >= MANY_HEADS:
        warps, stages, blocks = 4, 2 if is_narrow else 3, 2
    else:
        warps, stages, blocks = 8, 2 if keys * row == SMALLEST else 3, 1
    rows = ROWS // 2 if shared_by <= ROWS // 2 and size < 256 else ROWS  # half of a product takes more registers
    return Plan(size, type, cache, page > 0, rows, warps, keys, stages, blocks, 8 if size == 256 else 16)
