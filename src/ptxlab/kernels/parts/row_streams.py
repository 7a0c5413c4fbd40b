"""Long rows that stream through a cluster: blocks stay, and one row after the other comes to them.

Each block of a cluster has the same columns of every row. What all rows share, as weights, comes to its shared memory
once, and is read there for each row: with a block for each row, the L2 cache would have to deliver it as often as
there are rows. Pieces of rows come by bulk copies into a ring of stages. A row moves to registers as soon as it is
there, and its stages are filled again while threads agree on its sums, compute, and store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ptxlab.author import b8, b64, ptx, u32, u64
from ptxlab.author.pipelines import Ring
from ptxlab.kernels.parts.elements import SIZES, element_pointer, keep_what_is_read, load_bits
from ptxlab.kernels.parts.reductions import STORE, WARP, Combine, of_warps, over_lanes, over_warp, there
from ptxlab.kernels.parts.row_stages import Stage
from ptxlab.kernels.parts.rows import Piece, Row, Vector, agree, kept, own_rows
from ptxlab.kernels.parts.spreads import Spread

TURNS = 8  # batches for which there is memory: as often all blocks of a cluster wait for each other
COPY = ptx.cp.async_.bulk["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]["L2::cache_hint"]

FETCH = ptx.cp.async_.bulk.prefetch.L2["global"]
Measure = Callable[[Row], Any]
Finish = Callable[[list[Row], list[Any]], None]


@dataclass(frozen=True)
class Rows:
    """The rows of a matrix, with `neutral` beyond their end, and vectors of columns that all of them share."""

    matrix: Any
    count: Any
    columns: Any
    spread: Spread
    neutral: float = 0.0
    of_columns: Sequence[Any] = ()
    like: Any = None
    """The matrix in whose memory vectors are aligned, if not this one."""


def go_over(rows: Rows, measure: Measure, combine: Combine, finish: Finish) -> None:
    """Measure what each thread has of its rows, have all threads agree on that, and finish the rows."""
    if rows.spread.where == "stream":
        Stream(rows).run(measure, combine, finish)
        return
    mine = own_rows(rows.matrix, rows.count, rows.columns, rows.spread, rows.neutral, rows.of_columns, rows.like)
    stage = Stage(rows.like, rows.count, rows.columns, rows.spread) if rows.spread.is_staged else None
    for row in mine:
        row.stage = stage
    finish(mine, agree(mine, [measure(row) for row in mine], combine))
    if stage is not None:
        stage.write()


class Stream:
    """The ring of a block, and what it exchanges with the other blocks of its cluster."""

    def __init__(self, given: Rows) -> None:
        spread, columns = given.spread, given.columns
        self.matrix, self.rows, self.columns, self.spread = given.matrix, given.count, columns, spread
        self.neutral = given.neutral
        self.thread, self.lane, self.warp = ptx.tid.x, ptx.tid.x & (WARP - 1), ptx.tid.x >> 5
        self.warps = spread.block // WARP
        self.width = columns // spread.cluster
        self.first = ptx.cluster_ctarank * self.width
        self.is_filler = self.thread == spread.block - WARP
        self.policy = keep_what_is_read()
        self.full = ptx.shared(b64, spread.stages, name="full")
        self.shared = ptx.shared(b64, 1, name="weights").at(0)
        self.arrived = ptx.shared(b64, TURNS, name="arrived")
        self.filling, self.reading = Ring(spread.stages), Ring(spread.stages, parity=0)
        self.sent, self.received = u32(0), u32(0)
        self.memories: list[Any] = []
        self.start(given.of_columns[: spread.early])

    def start(self, of_columns: Sequence[Any]) -> None:
        """Fill the ring for the first time."""
        spread = self.spread
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        with ptx.when(self.is_filler):
            for number in range(spread.stages):
                ptx.mbarrier.init.shared.b64(self.full.at(number), 1)
            ptx.mbarrier.init.shared.b64(self.shared, 1)
            for number in range(TURNS):
                ptx.mbarrier.init.shared.b64(self.arrived.at(number), 1)
            ptx.fence.mbarrier_init.release.cluster()
        with ptx.when(self.is_filler):
            for sequence in range(spread.stages):
                self.fetch(sequence)
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read
        self.early = {}
        with ptx.when(self.is_filler):
            for sequence in range(spread.stages):
                self.fill(ptx.clusterid.x, 0, sequence)
            bytes = self.width * SIZES[spread.type]
            ptx.mbarrier.arrive.expect_tx.shared.b64(self.shared, bytes * len(of_columns))
            for number, array in enumerate(of_columns):
                source = element_pointer(array, spread.type, spread.vector, self.first)
                COPY(self.place(number * spread.part), source, bytes, self.shared, self.policy)
        for number, array in enumerate(of_columns):
            self.early[id(array)] = kept() + number * spread.held * spread.block
        ptx.bar.sync(0)
        if of_columns:
            self.wait(self.shared, 0)

    def place(self, offset: Any) -> Any:
        """Shared memory from so many bytes on."""
        return ptx.dynamic_shared(b8) + offset

    def wait(self, barrier: Any, parity: Any) -> None:
        """Wait for the end of a phase; what other blocks have written then can be read."""
        with ptx.loop():
            done = ptx.mbarrier.try_wait.parity.acquire.cluster["shared::cta"].b64(barrier, parity)
            ptx.repeat_when(~done)

    def run(self, measure: Measure, combine: Combine, finish: Finish) -> None:
        """Go over the rows of this cluster, `spread.rows` at a time; if these are not there, the last several times.

        While blocks exchange what they have measured of some rows, the rows before those are finished.
        """
        batch = u32()
        batch.set(ptx.clusterid.x)
        current = self.take(batch)
        self.send([measure(row) for row in current], combine)
        with ptx.loop():
            following = batch + ptx.nclusterid.x
            ptx.leave_when(following * self.spread.rows >= self.rows)
            batch.set(following)
            others = self.take(batch)
            self.send([measure(row) for row in others], combine)
            finish(current, self.receive(combine))
            for row, other in zip(current, others, strict=True):
                row.become(other)
        finish(current, self.receive(combine))

    def take(self, batch: Any) -> list[Row]:
        """Rows in registers; their stages are filled again."""
        found = []
        for place in range(self.spread.rows):
            row = self.row(self.number_of(batch, place))
            row.whole = self.read(row)
            self.refill(batch, place)
            found.append(row)
        return found

    def number_of(self, batch: Any, place: int) -> Any:
        """The number of a row."""
        return ptx.min.u32(batch * self.spread.rows + place, self.rows - 1) if self.spread.rows > 1 else batch

    def row(self, number: Any) -> Row:
        """One row, of which nothing is in registers yet."""
        own, start = u32(), u64()
        own.set(number)
        start.set(ptx.mul.wide.u32(number, self.columns))
        first = self.first + self.thread * self.spread.vector
        given = self.matrix, self.columns, self.spread, self.neutral, own, start, first, None
        return Row(*given, ptx.cluster_ctarank * self.spread.block + self.thread, early=self.early)

    def read(self, row: Row) -> Piece:
        """What this thread has of a row, from the ring."""
        spread = self.spread
        last = self.thread * spread.vector + (spread.held - 1) * spread.step < self.width
        inside = [None] * (spread.held - 1) + [last]
        vectors: list[Vector] = []
        for start in range(0, spread.held, spread.piece):
            self.wait(self.full.at(self.reading.index), self.reading.parity)
            source = kept() + spread.early * spread.held * spread.block
            source = source + self.reading.index * (spread.piece * spread.block)
            some = inside[start : start + spread.piece]
            for number, one in enumerate(some):
                place = source + number * spread.block
                bits = load_bits(ptx.ld.shared, place, spread.type, spread.vector, self.neutral, one)
                vectors.append(Vector(row, row.first, one, bits, start + number, spread.vector))
            self.reading.advance()
        return Piece(vectors)

    def refill(self, batch: Any, place: int) -> None:
        """When all threads have a row in registers, its stages are free for pieces that are needed later."""
        spread = self.spread
        ptx.bar.sync(0)
        with ptx.when(self.is_filler):
            for number in range(spread.pieces):
                self.fill(batch, place, number + spread.stages)

    def fetch(self, sequence: int) -> None:
        """Have a piece brought to the L2 cache: there it would change, if an earlier kernel still wrote it."""
        with self.piece(ptx.clusterid.x, 0, sequence) as (source, bytes):
            FETCH(source, bytes)

    def fill(self, batch: Any, place: int, sequence: int) -> None:
        """Copy a piece of a row to the next stage."""
        with self.piece(batch, place, sequence) as (source, bytes):
            barrier = self.full.at(self.filling.index)
            ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, bytes)
            stage = self.filling.index * self.spread.stage + self.spread.early * self.spread.part
            COPY(self.place(stage), source, bytes, barrier, self.policy)
        self.filling.advance()

    @contextmanager
    def piece(self, batch: Any, place: int, sequence: int) -> Iterator[tuple[Any, Any]]:
        """So many pieces after the first of the row at this place in the batch, if there is that: where, and bytes."""
        spread = self.spread
        row, piece = divmod(sequence, spread.pieces)
        later, place = divmod(place + row, spread.rows)
        batch = batch + ptx.nclusterid.x * later if later else batch
        with ptx.when(batch * spread.rows < self.rows):
            start = ptx.mul.wide.u32(self.number_of(batch, place), self.columns)
            first = self.first + piece * spread.piece * spread.step
            source = element_pointer(self.matrix, spread.type, spread.vector, start, first)
            yield source, ptx.min.u32(self.width * SIZES[spread.type] - piece * spread.stage, spread.stage)

    def send(self, values: Sequence[Any], combine: Combine) -> None:
        """Have a value from those of all threads of the block, and several at once, stored in every block.

        Warps leave theirs in shared memory; for each value one warp puts them together and stores that in every block,
        where an mbarrier counts it. Each of some batches has its own memory for that. When all was used, blocks wait
        for each other, so that they write to no memory that another has not read; they do so before the first batch,
        too, since nothing may be written to a block before it runs.
        """
        blocks, place = self.spread.cluster, self.sent % TURNS
        if not self.memories:
            self.memories = [(of_warps(one, self.warps), of_warps(one, TURNS * blocks)) for one in values]
        values = [over_warp(value, combine) for value in values]
        with ptx.when(self.lane == 0):
            for (own, _), value in zip(self.memories, values, strict=True):
                own.at(self.warp).store(value)
        arrived = self.arrived.at(place)
        with ptx.when(self.thread == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(arrived, sum(all.size for _, all in self.memories) * blocks)
        ptx.bar.sync(0)
        with ptx.when(place == 0):
            ptx.barrier.cluster.arrive.release()
            ptx.barrier.cluster.wait.acquire()
        for number, (own, all) in enumerate(self.memories):
            with ptx.when(self.warp == number % self.warps):
                value = over_lanes(own.at(self.lane & (self.warps - 1)).load(), combine, self.warps)
                with ptx.when(self.lane < blocks):
                    store = STORE[f"v{len(value)}"].b32 if isinstance(value, tuple) else STORE.b32
                    target = all.at(place * blocks + ptx.cluster_ctarank)
                    store(there(target, self.lane), value, there(arrived, self.lane))
        self.sent += 1

    def receive(self, combine: Combine) -> list[Any]:
        """One value from those of all blocks of the cluster, in every thread; and the same for several at once."""
        blocks, place = self.spread.cluster, self.received % TURNS
        self.wait(self.arrived.at(place), self.received // TURNS & 1)
        self.received += 1
        mine = place * blocks + (self.lane & (blocks - 1))
        return [over_lanes(all.at(mine).load(), combine, blocks) for _, all in self.memories]
