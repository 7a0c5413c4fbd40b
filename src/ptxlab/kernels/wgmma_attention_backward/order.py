"""Which keys a block has, and which queries attend to them."""

from __future__ import annotations

from typing import Any

from ptxlab.author import ptx, u32
from ptxlab.kernels.wgmma_attention_backward.plan import KEYS, Plan


class Work:
    """A tile of keys, the head and batch it is of, and the tiles of queries that attend to it.

    Blocks have `together` heads at a time, whose queries and gradients fit into L2, and in each of them the first keys
    first: under a causal mask most queries attend to these. Where there are more SMs than tiles of keys, `shares`
    blocks have a part of these queries each.
    """

    def __init__(
        self,
        plan: Plan,
        sizes: tuple[u32, ...],
        shared_by: u32,
        together: u32,
        window: u32,
        shares: u32 | int | None = None,
    ) -> None:
        self.plan, self.shared_by, self.window = plan, shared_by, window
        self.queries, self.keys, heads, all_heads = sizes
        self.tiles, down = self.count_tiles()
        size = together * down
        number, share = ptx.ctaid.x // plan.parts, u32(0)
        if shares is not None:
            number, share = number // shares, number % shares
        self.part = ptx.ctaid.x % plan.parts  # the columns whose gradients this block has
        section, within = number // size, number % size
        first = section * together
        several = ptx.min.u32(all_heads - first, together)
        head = first + within % several
        self.head, self.batch = head % heads, head // heads
        self.target = self.head if shares is None else self.head * shares + share  # where dK and dV are stored
        self.first_query_head = head * shared_by  # counted over the batch
        self.first_tile, self.first_query, self.first_key = u32(0), u32(0), u32(0)  # of a sequence
        self.key = self.find(within // several)
        start, end = u32(0), (self.queries + (plan.rows - 1)) // plan.rows
        if plan.causal:
            start = ptx.min.u32(self.key // plan.rows, end)
        if plan.window:
            last = self.key + window + (KEYS - 2)
            end = ptx.max.u32(ptx.min.u32(end, last // plan.rows + 1), start)
        self.start, self.end = start, end
        self.first = u32(0)
        self.count = (end - start) * shared_by
        if shares is not None:
            self.first, after = (self.count * number // shares for number in (share, share + 1))
            self.count = after - self.first

    def count_tiles(self) -> tuple[u32, u32]:
        """How many tiles of queries a head has, and how many of keys."""
        return (self.queries + (self.plan.rows - 1)) // self.plan.rows, (self.keys + (KEYS - 1)) // KEYS

    def find(self, tile: u32) -> u32:
        """The first key of a tile of keys."""
        return tile * KEYS

    def map_of(self, name: str, whole: Any) -> Any:
        """The address of the tensor map of an array."""
        return whole.generic

    def each(self) -> Any:
        """The tiles of queries, of each head that shares these keys: a loop on the GPU."""
        step = QueryStep(self)
        with ptx.loop():
            ptx.leave_when(step.left == 0)
            yield step
            step.advance()


class QueryStep:
    """A tile of queries in a loop over all of them: its number, that of its head, and how many are left."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.left, self.tile, self.head = u32(), u32(), u32()
        self.left.set(work.count)
        each = ptx.max.u32(work.end - work.start, 1)
        self.tile.set(work.start + work.first % each)
        self.head.set(work.first // each)

    def advance(self) -> None:
        """Continue with the next tile."""
        self.left -= 1
        self.tile += 1
        is_over = self.tile == self.work.end
        ptx.add.u32(self.head, 1, out=self.head, when=is_over)
        ptx.mov.u32(self.work.start, out=self.tile, when=is_over)

    @property
    def number(self) -> u32:
        """The tile among those of all heads."""
        work = self.work
        return (work.first_query_head + self.head) * work.tiles + work.first_tile + self.tile
