"""The launches of the gradients: what kernels are specialized for, their tensor maps, their grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapreplace
from typing import TYPE_CHECKING, Any, NamedTuple

import ptxlab
from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.mma_attention import half_of
from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.parts.strided import flat, strides
from ptxlab.kernels.wgmma_attention.launches import scoring_of
from ptxlab.kernels.wgmma_attention.packed import LANES
from ptxlab.kernels.wgmma_attention_backward.at_once import specialize_at_once
from ptxlab.kernels.wgmma_attention_backward.kernel import specialize
from ptxlab.kernels.wgmma_attention_backward.packed import LISTING_THREADS, MAPS, capacity
from ptxlab.kernels.wgmma_attention_backward.packed_kernels import KERNELS, specialize_packed
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, GROUP_KEYS, KEYS, MOST_ROWS, THREADS, Plan, width_of
from ptxlab.kernels.wgmma_attention_backward.rows import (
    ROW_THREADS,
    VECTOR,
    add_shares,
    convert,
    differentiate_sinks,
    prepare,
)
from ptxlab.launch.launches import Launch, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

MOST_PARTS = 2  # blocks that share the columns of a tile of keys
L2 = 32 << 20  # bytes that blocks read and add to together; an H200 has 50 MiB of L2
LONG = 4096  # from so many queries on, 80 at a time are faster than 64 for heads of 128 elements
SMS = 132  # of an H200
MOST_SHARES = 16
WAVES = 32  # of blocks: with more of them, all SMs have work until the end
FIXED = 2  # what a block takes besides its tiles of queries, in their time
SHARES = (1, 2, 3, 4, 6, 8)  # blocks of a cluster that share the queries of a tile of keys, where one kernel does all
IN_CLUSTERS = 117  # SMs that have clusters at a time
ADDED = 0.05  # what adding the parts of each of them takes, in the time of a tile of queries
LONGEST = 3.5  # the time, in the same, from which on one kernel takes longer than several
MOST_COUNTERS, MOST_KEY_TILES = 1024, 8


class Backward(NamedTuple):
    """The arrays of a backward pass: what went into attention and came out, the gradient of that, and what it gives.

    `dk_parts` and `dv_parts` have as many heads as `dk` times the blocks that share a tile of keys, where several do.
    """

    q: Array
    k: Array
    v: Array
    o: Array
    lse: Array | int
    do: Array
    dq: Array
    dk: Array
    dv: Array
    dk_parts: Array | None = None
    dv_parts: Array | None = None
    softcap: float = 0.0
    slopes: Array | None = None
    sinks: Array | None = None
    dsinks: Array | None = None

    def plan(self, plan: Plan, **how: Any) -> Plan:
        """A plan for these heads and scores."""
        return replace(plan, values=self.v.shape[3], scoring=scoring_of(self.softcap, self.slopes), **how)

    @property
    def stored(self) -> tuple[Array, Array]:
        """Where blocks store the gradients of keys and values, or their parts of them."""
        is_whole = self.dk_parts is None or self.dv_parts is None
        return (self.dk, self.dv) if is_whole else (self.dk_parts, self.dv_parts)  # type: ignore[return-value]

    def maps(self, plan: Plan) -> list[TensorMap]:
        """The tensor maps of queries, keys, values, the gradient of the answer, and those of keys and values."""
        boxes = plan.rows, GROUP_KEYS, GROUP_KEYS, plan.rows, GROUP_KEYS, GROUP_KEYS
        return list(map(map_of, (self.q, self.k, self.v, self.do, *self.stored), boxes))

    def of_sinks(self, offsets: object, totals: object, rows: int, batch: int) -> list[Launch]:
        """The launch for the gradients of sinks, where there are some, from what each row has."""
        args = [offsets, totals, self.sinks, self.dsinks, rows, batch]
        launch = Launch(differentiate_sinks(), self.q.shape[1], ROW_THREADS, args, overlap=True)
        return [] if self.sinks is None else [launch]


def differentiate(
    arrays: Backward,
    memory: Sequence[object],
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
    plan: Plan | None = None,
) -> list[Launch]:
    """The three launches; `memory` is for as many numbers as `workspace` says.

    With `ordered`, blocks add to the gradient of the queries in one order: two runs give the same bits. Where blocks
    share a tile of keys (`share`), a fourth launch adds their parts, and where there are sinks, a last one computes
    their gradients.
    """
    (q, k, v, o, lse, do, dq, dk, dv, *_), (sums, offsets, totals, turns) = arrays, memory
    check(q, k, v, o, causal, window)
    (batch, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    chosen = arrays.plan(plan or choose(size, half_of(q), causal, bool(window), queries), ordered=ordered)
    tiles = ceil_div(queries, chosen.rows)
    grid = tiles, heads, batch
    steps = [step for array in (o, do) for step in strides(array)[2::-1]]
    args = [flat(o), flat(do), lse, offsets, totals, sums, turns, queries, *steps]
    first = Launch(prepare(chosen), grid, ROW_THREADS, args)
    shares = arrays.stored[0].shape[1] // key_heads
    maps = arrays.maps(chosen)
    shared_by = heads // key_heads
    together = at_a_time(queries, size, shared_by)
    sizes = [queries, keys, key_heads, batch * key_heads, shared_by, together, window]
    args = [*maps, sums, offsets, totals, *sizes, turns, shares, 0 if arrays.slopes is None else arrays.slopes]
    blocks = batch * key_heads * ceil_div(keys, KEYS) * chosen.parts * shares
    second = Launch(specialize(chosen), blocks, THREADS, args, shared=chosen.shared, overlap=True)
    map = ptxlab.tensor_map(dq, box=(1, 1, chosen.rows, BOX), swizzle="128B")
    launches = [first, second, Launch(convert(chosen), grid, ROW_THREADS, [sums, map], overlap=True)]
    if shares > 1:
        steps = [step for array in (dk, dv) for step in strides(array)[2::-1]]
        args = [*arrays.stored, flat(dk), flat(dv), keys, *steps]
        grid = ceil_div(keys * (size // VECTOR), ROW_THREADS), key_heads, batch
        launches.append(
            Launch(add_shares(chosen.type, (size, v.shape[3]), shares), grid, ROW_THREADS, args, overlap=True)
        )
    return launches + arrays.of_sinks(offsets, totals, tiles * chosen.rows, batch)


def differentiate_at_once(arrays: Backward, dq_parts: object, counters: object, plan: Plan) -> Launch:
    """The launch of one kernel that does all, by a plan whose `shares` is what `share_at_once` found.

    `dq_parts` is memory for as many numbers as `parts_at_once` says; each tile of queries has one of the `counters`,
    which are 0 before and after. There are parts of dK and dV where blocks share queries.
    """
    q, k, v, o, lse, do, dq, dk, dv, *_ = arrays
    check(q, k, v, o, plan.causal, 0)
    (batch, heads, queries, _), (_, key_heads, keys, _) = q.shape, k.shape
    chosen = arrays.plan(plan)
    maps = arrays.maps(chosen)
    map = ptxlab.tensor_map(dq, box=(1, 1, chosen.rows, BOX), swizzle="128B")
    memory = [dq_parts, counters, 0 if arrays.slopes is None else arrays.slopes]
    added = [0, 0, 0, 0] if chosen.shares == 1 else [*arrays.stored, flat(dk), flat(dv)]
    sizes = [queries, keys, key_heads, batch * key_heads, heads // key_heads]
    steps = [step for array in (o, do, dk, dv) for step in strides(array)[2::-1]]
    args = [*maps, map, flat(o), flat(do), lse, *memory, *added, *sizes, *steps]
    together = chosen.shares * chosen.parts
    blocks = batch * key_heads * ceil_div(keys, KEYS) * together
    cluster = together if chosen.shares > 1 else None
    return Launch(specialize_at_once(chosen), blocks, THREADS, args, shared=chosen.shared, cluster=cluster)


def differentiate_packed(
    arrays: Backward,
    starts: tuple[object, object],
    sequences: int,
    memory: Sequence[object],
    causal: bool = False,
    window: int = 0,
    ordered: bool = False,
    plan: Plan | None = None,
) -> list[Launch]:
    """The four launches for sequences of unequal lengths: batch is 1, and each head has all of them.

    `starts` are two arrays of s32, of where sequences start among the queries and among the keys, and where the last
    one ends. `memory` is for as many numbers as `packed_workspace` says. Where there are sinks, a last launch computes
    their gradients.
    """
    q, k, v, o, lse, do, dq, dk, dv, *_ = arrays
    check(q, k, v, o, causal, window)
    (_, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    mean = ceil_div(queries, sequences)
    chosen = arrays.plan(plan or choose(size, half_of(q), causal, bool(window), mean), ordered=ordered)
    boxes = [(array, chosen.rows) for array in (q, do, dq)] + [(array, GROUP_KEYS) for array in (k, v, dk, dv)]
    steps = [step for array in (o, do) for step in strides(array)[2:0:-1]]
    shared_by = heads // key_heads
    together = at_a_time(queries, size, shared_by)
    sizes = [queries, keys, key_heads, shared_by, together, window]
    maps = [map_of(array, count) for array, count in boxes]
    slopes = 0 if arrays.slopes is None else arrays.slopes
    args = [*maps, flat(o), flat(do), lse, *steps, *sizes, *starts, sequences, *memory, slopes]
    tiles = capacity(queries, sequences, chosen.rows), heads
    grids: dict[str, Any] = {
        "list": ceil_div(sequences, LISTING_THREADS // LANES),
        "prepare": tiles,
        "compute": key_heads * capacity(keys, sequences, KEYS) * chosen.parts,
        "convert": tiles,
    }
    launches = [
        Launch(
            specialize_packed(chosen, step),
            grids[step],
            threads,
            args,
            shared=chosen.shared if step == "compute" else 0,
            overlap=step != "list",
        )
        for step, threads in KERNELS.items()
    ]
    return launches + arrays.of_sinks(memory[3], memory[4], tiles[0] * chosen.rows, 1)


def packed_workspace(queries: tuple[int, ...], keys: tuple[int, ...], sequences: int, rows: int) -> list[int]:
    """How many numbers of 4 bytes packed sequences need memory for, in its parts: the first begins at 128 bytes.

    `queries` and `keys` are the extents of arrays: 1 × heads × length × head size.
    """
    tiles = capacity(queries[2], sequences, rows)
    owners = ceil_div(tiles + capacity(keys[2], sequences, KEYS), LANES) * LANES
    number = queries[1] * tiles
    return [
        MAPS // 4 * sequences,
        owners,
        number * rows * width_of(queries[3]),
        number * rows,
        number * rows,
        number * MOST_PARTS,
    ]


def map_of(array: Array, rows: int) -> TensorMap:
    """The tensor map of an array, for copies of so many rows."""
    return ptxlab.tensor_map(array, box=(1, 1, rows, BOX), swizzle="128B", l2_promotion="256B")


def check(q: Array, k: Array, v: Array, o: Array, causal: bool, window: int) -> None:
    """Refuse what the kernels do not do."""
    wgmma_attention.check(q, k, v, o, causal, window)


def _chosen(size: int, type: str, causal: bool, window: bool, queries: int) -> Plan:
    """The plan that was fastest on an H200 for such a problem."""
    rows = {64: 128, 256: 32}.get(width_of(size), 80 if queries >= LONG else 64)
    return Plan(size, type, causal, window, rows)


def _candidates(*given: Any) -> list[Plan]:
    """The same with other numbers of rows."""
    chosen = _chosen(*given)
    return [replace(chosen, rows=rows) for rows in (64, 80)] if chosen.size == 128 else [chosen]


choose = Choice("attention_backward", _chosen, _candidates)


def share(queries: tuple[int, ...], keys: tuple[int, ...], plan: Plan, window: int = 0) -> int:
    """How many blocks are to share a tile of keys so that all SMs have work, for arrays of these extents.

    The time of each number is that of the SM which is done last, in tiles of queries, where blocks start in their order
    as SMs become free.
    """
    (batch, heads, length, size), (_, key_heads, key_length, _) = queries, keys
    tiles = ceil_div(length, plan.rows)
    counts = []
    for key in range(0, key_length, KEYS):
        first = min(key // plan.rows, tiles) if plan.causal else 0
        last = ceil_div(min(length, key + KEYS + window), plan.rows) if plan.window else tiles
        counts.append(max(last - first, 0) * heads // key_heads)
    blocks = batch * key_heads * plan.parts * len(counts)
    most = max(1, min(MOST_SHARES, max(counts), WAVES * SMS // blocks))
    together = at_a_time(length, size, heads // key_heads)
    sections = [min(together, batch * key_heads - first) for first in range(0, batch * key_heads, together)]

    def time(shares: int) -> float:
        free = [0] * SMS
        for several in sections:
            for count in counts:
                for part in range(shares):
                    each = count * (part + 1) // shares - count * part // shares + FIXED
                    for _ in range(several * plan.parts):
                        heapreplace(free, free[0] + each)
        return max(free)

    return min(range(1, most + 1), key=time) if most > 1 else 1


def share_at_once(queries: tuple[int, ...], keys: tuple[int, ...], plan: Plan) -> int:
    """How many blocks are to share a tile of keys where one kernel does all; 0: more kernels take less time."""
    (batch, heads, length, _), (_, key_heads, key_length, _) = queries, keys
    tiles, key_tiles = ceil_div(length, plan.rows), ceil_div(key_length, KEYS)
    blocks, count = batch * key_heads * key_tiles * plan.parts, tiles * heads // key_heads
    most = MOST_ROWS // plan.rows
    if plan.window or key_tiles > MOST_KEY_TILES or batch * heads * tiles > MOST_COUNTERS:
        return 0

    def time(shares: int) -> float:
        waves = ceil_div(blocks * shares, SMS if shares == 1 else IN_CLUSTERS)
        return waves * ceil_div(count, shares) * plan.parts + ADDED * (shares - 1)

    fitting = [shares for shares in SHARES if shares * plan.parts <= max(SHARES) and count <= most * shares]
    best = min(fitting, key=time, default=0)
    return best if best and time(best) <= LONGEST else 0


def parts_at_once(queries: tuple[int, ...], keys: tuple[int, ...], plan: Plan) -> tuple[int, int]:
    """How many numbers that kernel needs memory for, of parts of the gradient of the queries, and counters."""
    batch, heads, length, _ = queries
    tiles = batch * heads * ceil_div(length, plan.rows)
    return ceil_div(keys[2], KEYS) * tiles * plan.rows * plan.width, tiles


def at_a_time(queries: int, size: int, shared_by: int) -> int:
    """Heads of keys whose queries and gradients fit into L2."""
    return max(1, L2 // (8 * queries * size * shared_by))


def workspace(shape: tuple[int, ...], rows: int) -> list[int]:
    """How many numbers the kernels need memory for, for queries of a shape in tiles of so many rows."""
    batch, heads, queries, size = shape
    tiles = batch * heads * ceil_div(queries, rows)
    return [tiles * rows * width_of(size), tiles * rows, tiles * rows, tiles * MOST_PARTS]
