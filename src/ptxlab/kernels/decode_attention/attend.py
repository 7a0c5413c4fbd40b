"""What a warp does with keys and values: two MMAs, and between them the softmax.

The rows are the heads of queries that share a head of keys. Each warp has its own maxima and sums, until the end.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import Pointer, Scalar, b16, b32, f32, ptx, s32, u32
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.stream import Stream
from ptxlab.kernels.mma_attention.softmax import Softmax

LOWEST = -(2.0**100)  # a maximum that another can be subtracted from


class Warp:
    """The registers of a warp: queries, maxima, totals and sums."""

    def __init__(self, plan: Plan, stream: Stream, scale: f32) -> None:
        self.plan, self.stream = plan, stream
        type = plan.multiplied
        self.multiply = ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32"]
        self.pack = ptx[f"cvt.rn.{type}x2.f32"]
        _, right, _, _ = ptx.fragments(self.multiply)
        self.some_keys, self.some_values = right.stacked(2), right.transposed.stacked(2)
        self.k_rows = stream.tiles[0].matrices(self.some_keys, stream.lane)
        self.v_rows = stream.tiles[1].matrices(self.some_values, stream.lane)
        self.row, self.quad = stream.lane >> 2, stream.lane & 3
        self.queries = [[b32(0) for _ in range(4)] for _ in range(plan.size // 16)]
        self.softmax = Softmax(1, scale, plan.rows // 8, LOWEST)
        self.sums = [[f32() for _ in range(4)] for _ in range(plan.size // 8)]

    def begin(self, q: Pointer, rows: u32) -> None:
        """Read the queries, `rows` heads from `q` on, in the order in which the elements of keys are multiplied."""
        plan = self.plan
        self.softmax.reset()
        for half in self.softmax.halves:
            row = self.row + 8 * half
            start = q + ptx.mad.lo.u32(row, plan.size, self.quad * (4 if plan.is_narrow else 2))
            for depth, registers in enumerate(self.queries):
                for part in range(2):
                    word = b32(0)
                    further = 16 * depth + (2 if plan.is_narrow else 8) * part
                    ptx.ld.global_.b32(start + further, out=word, when=row < rows)
                    if plan.type != plan.multiplied:  # from bf16
                        low, high = ptx.shl.b32(word, 16, out=f32()), ptx.and_.b32(word, 0xFFFF0000, out=f32())
                        word = self.pack(high, low, out=b32())
                    registers[2 * part + half].set(word)
        for sum in (sum for block in self.sums for sum in block):
            sum.set(f32(0.0))

    def attend(self) -> None:
        """Take in the keys of a stage, if there are any: the last tile may have none for this warp."""
        plan, stream = self.plan, self.stream
        left = stream.remaining + plan.tile * plan.stages  # keys from this warp's first on
        with ptx.when(left > 0):
            scores = self._score()
            with ptx.when(left < plan.keys):
                self.softmax.mask([scores], left - 1 - (2 * self.quad).view(s32), causal=False)
            self.softmax.grow([scores], [self.sums])
            (offsets,) = self.softmax.offsets()
            for key in range(0, plan.keys, 16):
                self._add(self.softmax.compute_p(0, scores[key // 8 :][:2], offsets, self.pack), key)

    def _score(self) -> list[list[f32]]:
        """Q Kᵀ, for 8 keys in each list of registers. Two words of keys are 16 elements of the depth, or 32."""
        plan = self.plan
        scores = [[f32(0.0) for _ in range(4)] for _ in range(plan.keys // 8)]
        rows = self.k_rows.move(copy=self.stream.reading)
        for column in range(0, plan.row_bytes // 2, 16):
            for key in range(0, plan.keys, 16):
                words: Any = self.some_keys.load(rows.move(rows=key, columns=column))
                for half in range(2):
                    pairs, out = [words[2 * half :][:2]], scores[key // 8 + half]
                    if plan.is_narrow:
                        pairs = [[_as_f16(one) for one in _split(word)] for word in pairs[0]]
                    for number, pair in enumerate(pairs):
                        self.multiply(self.queries[column // 16 * len(pairs) + number], pair, out, out=out)
        return scores

    def _add(self, p: list[Scalar], key: int) -> None:
        """O += P V, for 16 keys. Of two e4m3, the first is in one operand and the second in the next."""
        rows = self.v_rows.move(copy=self.stream.reading, rows=key)
        for column in range(0, self.plan.row_bytes // 2, 16):
            words: Any = self.some_values.load(rows.move(columns=column))
            pairs = [words[:2], words[2:]]
            if self.plan.is_narrow:
                halves = [[_split(ptx.prmt.b32(word, 0, 0x3120)) for word in pair] for pair in pairs]
                pairs = [[_as_f16(one[second]) for one in pair] for pair in halves for second in range(2)]
            for number, pair in enumerate(pairs):
                out = self.sums[column // 16 * len(pairs) + number]
                self.multiply(p, pair, out, out=out)

    def columns(self, half: int) -> Any:
        """What a lane has of a row: its first column and the registers, in the order of columns."""
        blocks = [block[2 * half :][:2] for block in self.sums]
        if self.plan.is_narrow:
            blocks = [[even[0], odd[0], even[1], odd[1]] for even, odd in zip(blocks[::2], blocks[1::2], strict=True)]
        for number, block in enumerate(blocks):
            yield (4 * number + self.quad) * len(block), tuple(block)


def _split(word: b32) -> tuple[b16, b16]:
    return ptx.mov.b32(word, out=(b16(), b16()))


def _as_f16(pair: b16) -> b32:
    """Two e4m3 as two f16."""
    return ptx.cvt.rn.f16x2.e4m3x2(pair).view(b32)
