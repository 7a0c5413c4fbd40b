"""The kernels before and after: what each row needs, and the gradient of the queries, rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ptxlab.author import Kernel, Pointer, b16, b32, f16, f32, kernel, pointer, pred, ptx, s32, tensor_map, u32, u64
from ptxlab.kernels.mma_attention.softmax import combine
from ptxlab.kernels.parts.reductions import add, over_lanes, over_warp
from ptxlab.kernels.parts.warpgroups import GROUP, pack
from ptxlab.kernels.wgmma_attention_backward.packed import Sequences
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, Plan

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile

ROW_THREADS = 256
LANES = 32
VECTOR = 8  # elements that a thread reads at a time
COPY_BACK = ptx.cp.async_.bulk.tensor["4d"]["global"]["shared::cta"].bulk_group


class Rows(NamedTuple):
    """A tile of queries: its number, the head among all, its first row in memory, the row that ends its sequence."""

    number: u32
    head: u32
    first: u32
    end: u32 | None
    sequence: u32 | None = None

    @classmethod
    def of(cls, plan: Plan, queries: u32 | None, sequences: Sequences | None = None) -> Rows:
        """The tile that this block has."""
        tile, head = ptx.ctaid.x, ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
        number = head * ptx.nctaid.x + tile
        if sequences is None:
            return cls(number, head, tile * plan.rows, queries)
        sequence = ptx.ld["global"].u32(sequences.owners + tile)
        own = sequences.range(0, sequence)
        first = own.start + (tile - sequences.first(0, sequence, plan.rows)) * plan.rows
        return cls(number, head, first, own.end, sequence)


@cache
def prepare(plan: Plan) -> Kernel:
    """A block has a tile of queries: the sums of answer × its gradient over each row, offsets of scores, zeros."""

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def prepare_attention_backward(
        o: pointer[b16],
        do: pointer[b16],
        lse: pointer[f32],
        offsets: pointer[f32],
        d: pointer[f32],
        dq: pointer[f32],
        turns: pointer[u32],
        queries: u32,
        o_row: u64,
        o_head: u64,
        o_batch: u64,
        do_row: u64,
        do_head: u64,
        do_batch: u64,
    ) -> None:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        steps = (o_row, o_head, o_batch), (do_row, do_head, do_batch)
        prepare_rows(plan, Rows.of(plan, queries), (o, do), steps, (lse, queries), (offsets, d, dq, turns))

    return prepare_attention_backward


def prepare_rows(
    plan: Plan,
    tile: Rows,
    arrays: tuple[Pointer, Pointer],
    steps: tuple[tuple[u64, u64, u64], tuple[u64, u64, u64]],
    logs: tuple[Pointer, u32],
    written: tuple[Pointer, ...],
) -> None:
    """The body of both."""
    thread, (offsets, d, dq, turns) = ptx.tid.x, written
    zeros = dq + tile.number * (plan.rows * plan.width) + thread * 4
    for start in range(0, plan.rows * plan.width, ROW_THREADS * 4):
        ptx.st["global"].v4.f32(zeros + start, tuple(f32(0.0) for _ in range(4)))
    for part in range(plan.parts):
        ptx.st["global"].u32(turns + tile.number * plan.parts + part, 0, when=thread == 0)
    sides = [
        array + (wide(ptx.ctaid.z) * batch + wide(ptx.ctaid.y) * head)
        for array, (_, head, batch) in zip(arrays, steps, strict=True)
    ]
    first = tile.number * plan.rows
    sum_rows(plan, tile, thread, sides, (steps[0][0], steps[1][0]), logs, (offsets + first, d + first))


def sum_rows(
    plan: Plan,
    tile: Rows,
    thread: u32,
    sides: list[Pointer],
    steps: tuple[u64, u64],
    logs: tuple[Pointer, u32],
    written: tuple[Pointer, Pointer],
) -> None:
    """For each row of a tile the offset of its scores, and the sum of answer × its gradient, by `ROW_THREADS`.

    Rows after the last get offsets that make their weights 0, as rows that attend to no key.
    """
    lanes, columns = plan.width // VECTOR, plan.values or plan.size  # those that share a row, and what it has
    at_a_time = ROW_THREADS // lanes
    (lse, queries), (offsets, d) = logs, written
    within = ptx.cvt.u64.u32(thread % lanes * VECTOR).view(u64)
    first, is_first = thread // lanes, thread % lanes == 0
    loaded = []  # all at once, so that they wait for memory together
    for start in range(0, plan.rows, at_a_time):
        row = tile.first + first + start
        inside = row < tile.end
        places = [side + (wide(row) * step + within) for side, step in zip(sides, steps, strict=True)]
        is_read = inside if columns == plan.width else inside & (thread % lanes < columns // VECTOR)
        found = f32(-math.inf)
        ptx.ld["global"].f32(lse + tile.head * queries + row, out=found, when=inside & is_first)
        loaded.append((start, load_both(places, is_read), found))
    for start, words, found in loaded:
        total = over_lanes(dot(plan.type, words), add, lanes)
        offset = ptx.selp.f32(found, found * -math.log2(math.e), found == -math.inf)
        with ptx.when(is_first):
            offsets[first + start] = offset
            d[first + start] = total


def wide(value: u32) -> u64:
    """A number as 64 bits."""
    return ptx.cvt.u64.u32(value).view(u64)


def load_both(pointers: list[Pointer], inside: pred) -> list[list[b32]]:
    """Two vectors, or zeros outside."""
    words = [[b32(0) for _ in range(VECTOR // 2)] for _ in pointers]
    for source, own in zip(pointers, words, strict=True):
        ptx.ld["global"].nc.v4.b32(source, out=tuple(own), when=inside)
    return words


def dot(type: str, words: list[list[b32]]) -> f32:
    """The sum of the products of two vectors."""
    left, right = ([value for word in own for value in widened(type, word)] for own in words)
    return combine(ptx.add.rn.f32, [one * other for one, other in zip(left, right, strict=True)])


def widened(type: str, word: b32) -> list[f32]:
    """Two elements as f32."""
    if type == "bf16":  # the upper half of an f32
        return [ptx.shl.b32(word, 16, out=f32()), ptx.and_.b32(word, 0xFFFF0000, out=f32())]
    return [ptx.cvt.f32.f16(half) for half in ptx.mov.b32(word, out=(f16(), f16()))]


@cache
def convert(plan: Plan) -> Kernel:
    """A block has a tile of the gradient of the queries: sums in f32 as the consumers hold them, scaled and rounded."""

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def convert_attention_backward(sums: pointer[f32], dq: tensor_map) -> None:
        rows = Rows.of(plan, None)
        convert_rows(plan, rows, sums, lambda: dq.generic)

    return convert_attention_backward


def convert_rows(plan: Plan, rows: Rows, sums: Pointer, map_of: Callable[[], object]) -> None:
    """The body of both."""
    tile = ptx.tile(b16, plan.rows, BOX, swizzle="128B", copies=plan.boxes)
    first = sums + rows.number * (plan.rows * plan.width)
    ptx.griddepcontrol.wait()

    def load(source: Pointer) -> list[tuple[f32, f32, f32, f32]]:
        return [ptx.ld["global"].v4.f32(source + vector * 4 * GROUP) for vector in range(plan.vectors)]

    round_rows(plan, ptx.tid.x, first, tile, load)
    ptx.bar.sync(0)
    with ptx.when(ptx.tid.x == 0):
        copy_rows(plan, map_of(), tile, (rows.first, ptx.ctaid.y, ptx.ctaid.z))
        ptx.cp.async_.bulk.wait_group(0)


def round_rows(
    plan: Plan, thread: u32, sums: Pointer, tile: Tile, load: Callable[[Pointer], list[tuple[f32, f32, f32, f32]]]
) -> None:
    """Scale and round a tile of the gradient of the queries, to shared memory, by `ROW_THREADS`.

    `load` gives the vectors of 4 numbers of this thread, which are from an address on in steps of 4 × `GROUP`.
    """
    part = ptx.warpgroup_fragments(plan.mma(16)).d.packed(f16).transposed
    group, thread, warp = thread // GROUP, thread % GROUP, thread >> 5 & 3
    own = sums + group * (plan.rows * plan.own // 2) + thread * 4
    down, right = part.row_of(ptx.laneid)
    if plan.split > 1:
        down = down + group * (plan.rows // plan.split)
    at = tile.at(down, right + warp * 16, group if plan.boxes > 1 else 0)
    scale = 1 / math.sqrt(plan.size)
    for number in range(plan.parts):
        loaded = load(own + number * (plan.rows * plan.own))
        for start in range(0, plan.vectors, 2):
            values = [value * scale for vector in loaded[start:][:2] for value in vector]
            written = at.move(rows=8 * start, copy=2 * number)
            part.store(written, [pack(plan.type, *values[pair:][:2]) for pair in range(0, 8, 2)])
    ptx.fence.proxy.async_["shared::cta"]()


def copy_rows(plan: Plan, map: object, tile: Tile, where: tuple[u32, u32, u32]) -> None:
    """Start to copy a tile of the gradient of the queries from shared memory: to a row, of a head, of the batch."""
    row, head, batch = (one.view(s32) for one in where)
    for box in range(plan.boxes):
        COPY_BACK((map, (s32(box * BOX), row, head, batch)), tile.at(0, 0, box))
    ptx.cp.async_.bulk.commit_group()


@cache
def differentiate_sinks() -> Kernel:
    """A block has a head: the gradient of its sink, −Σ weight of the sink × sum of answer × its gradient, over rows.

    `rows` are those of a head in memory; those after the last query have a weight of 0. They are added in one order.
    """

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def differentiate_attention_sinks(
        offsets: pointer[f32], totals: pointer[f32], sinks: pointer[f32], dsinks: pointer[f32], rows: u32, batch: u32
    ) -> None:
        head, lane, warp = ptx.ctaid.x, ptx.laneid, ptx.tid.x >> 5
        parts = ptx.shared(f32, ROW_THREADS // LANES)
        sink, sum = ptx.ld["global"].nc.f32(sinks + head) * math.log2(math.e), f32(0.0)
        ptx.griddepcontrol.wait()
        for number in ptx.range(u32(0), batch, 1):
            first = (number * ptx.nctaid.x + head) * rows
            for row in ptx.range(ptx.tid.x, rows, ROW_THREADS):
                offset, total = (ptx.ld["global"].f32(array + first + row) for array in (offsets, totals))
                ptx.fma.rn.f32(ptx.ex2.approx.ftz.f32(sink + offset), -total, sum, out=sum)
        ptx.st.shared.f32(parts.at(warp), over_warp(sum, add), when=lane == 0)
        ptx.bar.sync(0)
        with ptx.when(warp == 0):
            rest = f32(0.0)
            ptx.ld.shared.f32(parts.at(lane), out=rest, when=lane < ROW_THREADS // LANES)
            ptx.st["global"].f32(dsinks + head, over_warp(rest, add), when=lane == 0)

    return differentiate_attention_sinks


@cache
def add_shares(type: str, sizes: tuple[int, int], shares: int) -> Kernel:
    """A thread has 8 elements of a row of dK and of dV: it adds what the blocks that shared the queries have stored."""

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def add_shares_of_attention_backward(
        dk_parts: pointer[b16],
        dv_parts: pointer[b16],
        dk: pointer[b16],
        dv: pointer[b16],
        keys: u32,
        dk_row: u64,
        dk_head: u64,
        dk_batch: u64,
        dv_row: u64,
        dv_head: u64,
        dv_batch: u64,
    ) -> None:
        lanes = sizes[0] // VECTOR
        thread = ptx.ctaid.x * ROW_THREADS + ptx.tid.x
        head, batch = ptx.ctaid.y, ptx.ctaid.z
        ptx.griddepcontrol.wait()
        steps = (dk_row, dk_head, dk_batch), (dv_row, dv_head, dv_batch)
        for parts, target, step, size in zip((dk_parts, dv_parts), (dk, dv), steps, sizes, strict=True):
            at = thread // lanes, thread % lanes * VECTOR, head, batch
            add_parts(type, size, shares, (keys, ptx.nctaid.y), parts, (target, step), at)

    return add_shares_of_attention_backward


def add_parts(
    type: str,
    size: int,
    shares: int,
    extents: tuple[u32, u32],
    parts: Pointer,
    target: tuple[Pointer, tuple[u64, u64, u64]],
    at: tuple[u32, u32, u32, u32],
) -> None:
    """Add what blocks have stored of 8 elements of a row of dK or dV, if there are such elements.

    `extents` are keys and heads; `at` is the row, the first element, the head and the number in the batch.
    """
    (keys, heads), (array, (down, over, beside)), (row, within, head, batch) = extents, target, at
    with ptx.when((row < keys) & (within < size)):  # a row of values has no more elements than one of keys
        first = wide((batch * heads + head) * shares) * wide(keys) + wide(row)
        source = parts + (first * size + wide(within))
        loaded = [ptx.ld["global"].v4.b32(source + wide(keys) * (number * size)) for number in range(shares)]
        words = []
        for place in range(VECTOR // 2):
            halves = [widened(type, vector[place]) for vector in loaded]
            sums = [combine(ptx.add.rn.f32, list(side)) for side in zip(*halves, strict=True)]
            words.append(pack(type, *sums))
        to = array + (wide(row) * down + wide(head) * over + wide(batch) * beside + wide(within))
        ptx.st["global"].v4.b32(to, tuple(words))
