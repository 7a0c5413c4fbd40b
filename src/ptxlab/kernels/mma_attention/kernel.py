"""The kernel: Q stays in shared memory, K and V are streamed, and the output accumulates in registers.

A block has some rows of Q and iterates over the keys, a few at a time. `cp.async` brings the next keys and values while
these are multiplied. What the first MMA leaves in a lane's registers is, packed to 16 bits, the left operand of the
second one, so that P never leaves the registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ptxlab.author import Kernel, Pointer, Swizzle, b8, b16, f32, kernel, pointer, ptx, s32, u32
from ptxlab.kernels.mma_attention.softmax import ALL, Softmax

if TYPE_CHECKING:
    from ptxlab.author.tiles import TilePointer

CHUNK = 8  # elements that are copied at once: 16 bytes


@dataclass(frozen=True)
class Plan:
    """The parameters of the kernel, fixed when it is built."""

    size: int
    """The size of a head: 64 or 128."""
    type: str
    """The type of the elements: bf16 or f16."""
    causal: bool
    """Whether a row attends only to keys up to its own position."""
    keys: int
    """How many keys are multiplied at once."""
    warps: int = 4
    tiles: int = 2
    """A warp has 16 rows for each of these tiles."""
    stages: int = 2
    """Stages of keys and values in shared memory."""
    blocks: int = 2
    """Blocks on an SM at once, which bounds the registers of a thread."""
    score: Callable[[f32], f32] | None = None
    """Writes what becomes of a score, q·kᵀ/√d in a register of f32, before the softmax: a cap, for example."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def rows(self) -> int:
        """Rows of Q that a block has."""
        return 16 * self.tiles * self.warps

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a block needs."""
        return 2 * self.size * (self.rows + 2 * self.stages * self.keys)


@cache
def attention(plan: Plan) -> Kernel:
    """The kernel that takes q, k, v, o, their length, and how many blocks share a head."""

    @kernel(target="sm_80", maxntid=plan.threads, minnctapersm=plan.blocks)
    def attention(q: pointer[b16], k: pointer[b16], v: pointer[b16], o: pointer[b16], length: u32, blocks: u32) -> None:
        write(plan, q, k, v, o, length, blocks)

    return attention


def write(plan: Plan, q: Pointer, k: Pointer, v: Pointer, o: Pointer, length: u32, blocks: u32) -> None:
    """The body, from top to bottom."""
    multiply = ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{plan.type}.{plan.type}.f32"]
    pack = ptx[f"cvt.rn.{plan.type}x2.f32"]
    left, right, _, result = ptx.fragments(multiply)
    some_keys, some_values = right.stacked(2), right.transposed.stacked(2)  # 16 of them: a product's two operands
    tiles = range(plan.tiles)

    # Which rows. Of a head, the last come first: under a causal mask they have the most keys.
    thread = ptx.tid.x
    lane, warp = thread & 31, thread >> 5
    head = ptx.ctaid.x // blocks
    first = (blocks - 1 - ptx.ctaid.x % blocks) * plan.rows
    end = ptx.min.u32(length, first + plan.rows) if plan.causal else length  # the keys that any row attends to

    # Shared memory. The swizzle puts eight rows of a column into different banks.
    swizzle = Swizzle(3, shift=int(math.log2(2 * plan.size)) - 4)
    memory = ptx.dynamic_shared(b8, align=swizzle.period)
    q_tile = ptx.tile(b16, plan.rows, plan.size, swizzle=swizzle, at=memory)
    k_tile = ptx.tile(b16, plan.keys, plan.size, swizzle=swizzle, copies=plan.stages, at=memory + q_tile.bytes)
    used = q_tile.bytes + k_tile.bytes
    v_tile = ptx.tile(b16, plan.keys, plan.size, swizzle=swizzle, copies=plan.stages, at=memory + used)

    # Copies. A thread has the chunks of one column, in every `step`-th row.
    across = plan.size // CHUNK
    step = plan.threads // across
    row, column = thread // across, thread % across * CHUNK

    def row_of(matrix: Pointer, number: u32) -> Pointer:
        element = ptx.mad.wide.u32(head * length + number, 2 * plan.size, matrix.address)
        return ptx.pointer_to(b16, "global", element)

    def copy(element: TilePointer, source: Pointer, rows: int, remaining: s32) -> None:
        """Copy rows to shared memory; those that do not remain become zeros."""
        for start in range(0, rows, step):
            given = ptx.selp.b32(16, 0, remaining > start)
            ptx.cp["async"].cg.shared.global_(
                element.move(rows=start), ptx.address(source, 2 * plan.size * start), 16, given
            )

    k_target, v_target = k_tile.at(row, column), v_tile.at(row, column)
    k_source, v_source = (row_of(matrix, row) + column for matrix in (k, v))
    k_source, v_source = k_source.copy(), v_source.copy()
    remaining = (end - row).view(s32)
    pipeline = ptx.copy_pipeline(plan.stages)

    def fetch(stage: int | u32) -> None:
        copy(k_target.move(copy=stage), k_source, plan.keys, remaining)
        copy(v_target.move(copy=stage), v_source, plan.keys, remaining)
        pipeline.commit()
        for moving in (k_source, v_source):
            moving += plan.keys * plan.size
        ptx.sub.s32(remaining, plan.keys, out=remaining)

    copy(q_tile.at(row, column), row_of(q, first + row) + column, plan.rows, (length - first - row).view(s32))
    for stage in pipeline.ahead:
        fetch(stage)

    # What a lane holds.
    own = warp * (16 * plan.tiles)
    held_row, held_column = result.first(lane)
    q_rows, k_rows, v_rows = (
        q_tile.matrices(left, lane, own),
        k_tile.matrices(some_keys, lane),
        v_tile.matrices(some_values, lane),
    )
    accumulators = [[[f32(0.0) for _ in range(4)] for _ in range(plan.size // 8)] for _ in tiles]
    scale = 1 / math.sqrt(plan.size)
    softmax = Softmax(plan.tiles, math.log2(math.e) * (scale if plan.score is None else 1.0))
    last = first + own + held_row - held_column if plan.causal else length - 1 - held_column
    limit = last.view(s32)  # the last key that the lane's first row attends to, counted from the lane's first key
    zeros = [f32(0.0)] * 4

    def multiply_keys(stage: u32) -> list[list[list[f32]]]:
        """Q Kᵀ: the scores of some keys."""
        scores = [[f32.several(4) for _ in range(plan.keys // 8)] for _ in tiles]
        element = k_rows.move(copy=stage)
        for depth in range(0, plan.size, 16):
            lefts = [left.load(q_rows.move(rows=16 * tile, columns=depth)) for tile in tiles]
            for key in range(0, plan.keys, 16):
                rights = some_keys.load(element.move(rows=key, columns=depth))
                for tile in tiles:
                    for half in range(2):
                        out = scores[tile][key // 8 + half]
                        multiply(lefts[tile], rights[2 * half :][:2], out if depth else zeros, out=out)
        return scores

    def multiply_values(scores: list[list[list[f32]]], stage: u32) -> None:
        """O += P V, for 16 keys at a time."""
        element = v_rows.move(copy=stage)
        columns = [element.move(columns=at) for at in range(0, plan.size, 16)]
        offsets = softmax.offsets()
        for key in range(0, plan.keys, 16):
            lefts = [softmax.compute_p(tile, scores[tile][key // 8 :][:2], offsets[tile], pack) for tile in tiles]
            for at in range(0, plan.size, 16):
                rights = some_values.load(columns[at // 16].move(rows=key))
                for tile in tiles:
                    for half in range(2):
                        out = accumulators[tile][at // 8 + half]
                        multiply(lefts[tile], rights[2 * half :][:2], out, out=out)

    def attend(masked: bool, is_last: bool = False) -> None:
        """Process some keys."""
        pipeline.wait()
        if not is_last:
            fetch(pipeline.filling.index)
        scores = multiply_keys(pipeline.reading.index)
        if plan.score is not None:
            for value in (one for tile in scores for block in tile for one in block):
                value.set(plan.score(value * scale))
        if masked:
            softmax.mask(scores, limit, plan.causal)
        softmax.grow(scores, accumulators)
        multiply_values(scores, pipeline.reading.index)
        pipeline.advance()
        ptx.sub.s32(limit, plan.keys, out=limit)

    # Only keys on the diagonal, or beyond the end, need a mask; they are the last ones.
    before = (end - 1) // plan.keys
    free = ptx.min.u32(before, first // plan.keys) if plan.causal else before
    for _ in ptx.range(free):
        attend(masked=False)
    if plan.causal and plan.rows > plan.keys:
        for _ in ptx.range(free, before):
            attend(masked=True)
    attend(masked=True, is_last=True)

    # A warp puts its rows where its own of Q were, once all lanes have read those, and stores them by whole chunks.
    ptx.bar.warp.sync(ALL)
    for tile in tiles:
        for half, inverse in enumerate(softmax.inverses(tile)):
            for number, block in enumerate(accumulators[tile]):
                low, high = (sum * inverse for sum in block[2 * half :][:2])
                element = q_tile.at(own + held_row + (16 * tile + 8 * half), held_column + 8 * number)
                ptx.st.shared.b32(element, pack(high, low))
    ptx.bar.warp.sync(ALL)
    for start in range(0, 16 * plan.tiles, 32 // across):
        row, column = own + lane // across + start, lane % across * CHUNK
        chunk = ptx.ld.shared.v4.b32(q_tile.at(row, column))
        with ptx.when(first + row < length):
            ptx.st.global_.v4.b32(row_of(o, first + row) + column, chunk)
