"""The order in which blocks compute tiles: few heads at a time, the longest rows of tiles first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlab.author import Pointer, ptx, s32, u32
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.plan import Plan

if TYPE_CHECKING:
    from ptxlab.kernels.wgmma_attention.consumer import Current


class Work(NamedTuple):
    """A tile: its first query, its head and batch, and how many keys the sequence has."""

    row: s32
    head: u32
    batch: u32
    keys: u32


class Order:
    """Tiles by number: `together` heads, whose keys and values fit into L2, one row of tiles after the other.

    Under a causal mask the last rows attend to most keys and come first, and a block takes the next tile when it has
    issued the copies of one: its producer counts in global memory, and hands the number to the consumers.
    """

    def __init__(self, plan: Plan, counter: Pointer, sizes: tuple[u32, ...], together: u32, window: u32) -> None:
        self.plan, self.counter, self.together, self.window = plan, counter, together, window
        self.queries, self.keys, self.heads, self.all_heads = sizes
        self.down = (self.queries + (plan.rows - 1)) // plan.rows
        self.count = self.down * self.all_heads
        if plan.is_counted:
            self.numbers = ptx.shared(u32, 2, name="numbers")
            self.pipeline = ptx.barrier_pipeline(2, fills=1, reads=plan.groups * GROUP, when=ptx.tid.x == 0)

    def begin(self) -> None:
        """Nothing: all is known."""

    def work(self, number: u32) -> Work:
        """The tile of a number."""
        down, head = self.divide(number)
        if self.plan.causal:
            down = (self.down - 1) - down
        return Work((down * self.plan.rows).view(s32), head % self.heads, head // self.heads, self.keys)

    def divide(self, number: u32) -> tuple[u32, u32]:
        """The row of tiles of a number, and its head among all."""
        size = self.together * self.down
        section, within = number // size, number % size
        first = section * self.together
        heads = ptx.min.u32(self.all_heads - first, self.together)
        return within // heads, first + within % heads

    def span(self, tile: Found) -> tuple[u32, u32]:
        """The tiles of keys that a tile attends to: the first, and the one after the last."""
        return self.plan.span(tile.row, tile.keys, self.window)

    def queries_at(self, tile: Current | Found) -> tuple[s32, u32, u32]:
        """Row, head and batch of the queries in memory."""
        return tile.row, tile.head, tile.batch

    def keys_at(self, tile: Found) -> tuple[u32, u32]:
        """The row of the first key of the sequence, and its batch."""
        return u32(0), tile.batch

    def logs_at(self, tile: Current, row: u32) -> tuple[object, object]:
        """Where the log-sum-exp of a row is, and how many rows there are."""
        return (tile.batch * self.heads + tile.head) * self.queries + row, self.queries

    def values_map(self, tile: Found, whole: Pointer) -> Pointer:
        """The map of the values of the sequence."""
        return whole

    def output_map(self, tile: Current, whole: Pointer) -> Pointer:
        """The map of the answer of the sequence."""
        return whole


class Found:
    """A tile by its number, in registers: finding it takes divisions, for which there is time while products run."""

    def __init__(self, order: Order, number: u32) -> None:
        self.order = order
        self.number, self.row, self.head, self.batch = u32(), s32(), u32(), u32()
        self.keys = u32() if order.plan.packed else order.keys
        self.find(number)

    def find(self, number: u32) -> None:
        """Find the tile of a number; one of `count` or more is not a tile."""
        self.number.set(number)
        self.set(self.order.work(self.number))

    def set(self, other: Work | Found) -> None:
        """Continue with another tile."""
        for name in ("row", "head", "batch", *(("keys",) if self.order.plan.packed else ())):
            getattr(self, name).set(getattr(other, name))


class Dealt:
    """The numbers of the tiles of a block after its first, for its producer, which hands them to the consumers."""

    def __init__(self, order: Order) -> None:
        self.order, self.number = order, u32()
        self.side = order.pipeline.producer() if order.plan.is_counted else None
        self.number.set(ptx.ctaid.x)

    def draw(self) -> u32:
        """The next number; the block that counts last sets the counter back."""
        if self.side is None:
            self.number += ptx.nctaid.x
            return self.number
        counted = ptx.atom.relaxed.gpu["global"].add.u32(self.order.counter, 1)
        ptx.st.relaxed.gpu["global"].u32(self.order.counter, 0, when=counted == self.order.count - 1)
        return counted + ptx.nctaid.x

    def hand(self, number: u32) -> None:
        """Hand a number to the consumers."""
        if self.side is not None:
            self.side.wait()
            self.order.numbers[self.side.index] = number
            self.side.arrive()
            self.side.advance()


class Received:
    """The same numbers, for a consumer."""

    def __init__(self, order: Order) -> None:
        self.order, self.number = order, u32()
        self.side = order.pipeline.consumer() if order.plan.is_counted else None
        self.number.set(ptx.ctaid.x)

    def next(self) -> Any:
        """The next number."""
        if self.side is None:
            self.number += ptx.nctaid.x
            return self.number
        self.side.wait()
        number = self.order.numbers[self.side.index]
        self.side.arrive()
        self.side.advance()
        return number
