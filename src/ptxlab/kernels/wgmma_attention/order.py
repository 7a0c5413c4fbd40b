"""The order in which blocks compute tiles: few heads at a time, the longest rows of tiles first."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxlab.author import ptx, s32, u32
from ptxlab.kernels.parts.warpgroups import GROUP
from ptxlab.kernels.wgmma_attention.plan import Plan


class Work(NamedTuple):
    """A tile: its first query, its head and batch, and its tiles of keys: the first, and the one after the last."""

    row: Any
    head: Any
    batch: Any
    start: Any
    end: Any


class Order:
    """Tiles by number: `together` heads, whose keys and values fit into L2, one row of tiles after the other.

    Under a causal mask the last rows attend to most keys and come first, and a block takes the next tile when it has
    issued the copies of one: its producer counts in global memory, and hands the number to the consumers.
    """

    def __init__(self, plan: Plan, counter: Any, sizes: tuple[Any, ...], together: Any, window: Any) -> None:
        self.plan, self.counter, self.together, self.window = plan, counter, together, window
        self.queries, self.keys, self.heads, self.all_heads = sizes
        self.down = (self.queries + (plan.rows - 1)) // plan.rows
        self.most = (self.keys + (plan.keys - 1)) // plan.keys
        self.count = self.down * self.all_heads
        if plan.is_counted:
            self.numbers = ptx.shared(u32, 2, name="numbers")
            self.pipeline = ptx.barrier_pipeline(2, fills=1, reads=plan.groups * GROUP, when=ptx.tid.x == 0)

    def produced(self) -> Any:
        """Each tile of this block, for its producer."""
        return self._counted() if self.plan.is_counted else self._each(Strided())

    def consumed(self) -> Any:
        """Each tile of this block, for its consumers."""
        return self._each(self.numbers_received())

    def numbers_received(self) -> Received | Strided:
        """The numbers of the tiles, for consumers; after the last comes `count` or more."""
        return Received(self) if self.plan.is_counted else Strided()

    def _each(self, numbers: Received | Strided) -> Any:
        with ptx.loop():
            number = numbers.next()
            ptx.leave_when(number >= self.count)
            yield self.work(number)

    def _counted(self) -> Any:
        """The block that counts last sets the counter back."""
        side = self.pipeline.producer()
        number = u32()
        number.set(ptx.ctaid.x)
        with ptx.loop():
            side.wait()
            self.numbers[side.index] = number
            side.arrive()
            side.advance()
            ptx.leave_when(number >= self.count)
            counted = ptx.atom.relaxed.gpu["global"].add.u32(self.counter, 1)
            ptx.st.relaxed.gpu["global"].u32(self.counter, 0, when=counted == self.count - 1)
            yield self.work(number)
            number.set(counted + ptx.nctaid.x)

    def work(self, number: Any) -> Work:
        """The tile of a number."""
        size = self.together * self.down
        section, within = number // size, number % size
        first = section * self.together
        heads = ptx.min.u32(self.all_heads - first, self.together)
        down, head = within // heads, first + within % heads
        if self.plan.causal:
            down = (self.down - 1) - down
        row = down * self.plan.rows
        start, end = u32(0), self.most
        if self.plan.causal:
            end = ptx.min.u32(end, (row + (self.plan.rows + self.plan.keys - 1)) // self.plan.keys)
        if self.plan.window:
            start = ptx.min.u32(self.above(row + 1) // self.plan.keys, end - 1)
        return Work(row.view(s32), head % self.heads, head // self.heads, start, end)

    def above(self, row: Any) -> Any:
        """The key a window before a row, or the first."""
        return ptx.max.u32(row, self.window) - self.window


class Upcoming:
    """The tile that a consumer computes next; where tiles are not counted, it is found while products run."""

    def __init__(self, order: Order) -> None:
        self.order, self.numbers = order, order.numbers_received()
        self.number, self.row, self.head, self.batch = u32(), s32(), u32(), u32()
        self.find()

    def find(self) -> None:
        """Find the next one: divisions, for which there is time now."""
        if not self.order.plan.is_counted:
            self._set()

    def take(self) -> Work:
        """What was found, or is known only now; the numbers of tiles end with `count` or more."""
        order = self.order
        if order.plan.is_counted:
            self.number.set(self.numbers.next())
            return order.work(self.number)
        return Work(self.row, self.head, self.batch, u32(0), order.most)

    def _set(self) -> None:
        self.number.set(self.numbers.next())
        work = self.order.work(self.number)
        for register, value in zip((self.row, self.head, self.batch), work[:3], strict=True):
            register.set(value)


class Strided:
    """Every so many tiles as there are blocks."""

    def __init__(self) -> None:
        self.number = u32()
        self.number.set(ptx.ctaid.x - ptx.nctaid.x)

    def next(self) -> Any:
        """The number of the next tile."""
        self.number += ptx.nctaid.x
        return self.number


class Received:
    """What the producer hands over."""

    def __init__(self, order: Order) -> None:
        self.numbers, self.side = order.numbers, order.pipeline.consumer()

    def next(self) -> Any:
        """The number of the next tile."""
        self.side.wait()
        number = self.numbers[self.side.index]
        self.side.arrive()
        self.side.advance()
        return number
