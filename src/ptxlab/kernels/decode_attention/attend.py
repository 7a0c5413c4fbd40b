"""What a warp does with keys and values: two products by `mma.sync`, and between them the weights.

The rows of the products are the heads of queries that share a head of keys, so that keys and values are read once for
all of them. Each warp has its own maximum and its own sums; they are put together at the end.
"""

from __future__ import annotations

from typing import Any

from ptxlab.author import b16, b32, f32, ptx, s32
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.kernels.decode_attention.stream import Stream
from ptxlab.kernels.mma_attention.softmax import ALL, GROWTH, combine, exchange

LOWEST = -(2.0**127)  # a maximum below which another can be subtracted


class Warp:
    """The registers of a warp: queries, maxima, totals and sums."""

    def __init__(self, plan: Plan, stream: Stream, scale: Any) -> None:
        self.plan, self.stream, self.scale = plan, stream, scale
        type = plan.multiplied
        self.multiply = ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32"]
        self.pack = ptx[f"cvt.rn.{type}x2.f32"]
        _, right, _, _ = ptx.fragments(self.multiply)
        self.some_keys, self.some_values = right.stacked(2), right.transposed.stacked(2)
        self.k_rows = stream.tiles[0].matrices(self.some_keys, stream.lane)
        self.v_rows = stream.tiles[1].matrices(self.some_values, stream.lane)
        self.row, self.quad = stream.lane >> 2, stream.lane & 3
        self.halves = range(plan.rows // 8)
        self.queries = [[b32(0) for _ in range(4)] for _ in range(plan.size // 16)]
        self.maxima = [f32() for _ in self.halves]
        self.totals = [f32() for _ in self.halves]
        self.sums = [[f32() for _ in range(4)] for _ in range(plan.size // 8)]

    def begin(self, q: Any, rows: Any) -> None:
        """Read the queries, `rows` heads from `q` on, and forget what was summed."""
        plan = self.plan
        for half in self.halves:
            self.maxima[half].set(f32(LOWEST))
            self.totals[half].set(f32(0.0))
            row = self.row + 8 * half
            start = q + ptx.mad.lo.u32(row, plan.size, self.quad * (4 if plan.is_narrow else 2))
            for depth, registers in enumerate(self.queries):
                for part in range(2):
                    further = 16 * depth + (2 * part if plan.is_narrow else 8 * part)
                    word = b32(0)
                    ptx.ld.global_.b32(start + further, out=word, when=row < rows)
                    registers[2 * part + half].set(self._as_multiplied(word))
        for block in self.sums:
            for sum in block:
                sum.set(f32(0.0))

    def _as_multiplied(self, word: Any) -> Any:
        if self.plan.type == self.plan.multiplied:
            return word
        low, high = ptx.shl.b32(word, 16, out=f32()), ptx.and_.b32(word, 0xFFFF0000, out=f32())
        return self.pack(high, low, out=b32())

    def attend(self) -> None:
        """Take in the keys of a stage, if there are any: the last tile may have none for this warp."""
        plan, stream = self.plan, self.stream
        left = stream.remaining + plan.tile * plan.stages  # keys from this warp's first on
        with ptx.when(left > 0):
            scores = self._score()
            with ptx.when(left < plan.keys):
                self._mask(scores, left - (2 * self.quad).view(s32))
            self._grow(scores)
            for key in range(0, plan.keys, 16):
                self._add(self._weigh(scores[key // 8 :][:2]), key)

    def _score(self) -> list[Any]:
        """Q Kᵀ, for 8 keys in each list of registers."""
        plan = self.plan
        scores = [[f32(0.0) for _ in range(4)] for _ in range(plan.keys // 8)]
        rows = self.k_rows.move(copy=self.stream.reading)
        for column in range(0, plan.row_bytes // 2, 16):
            for key in range(0, plan.keys, 16):
                words = self.some_keys.load(rows.move(rows=key, columns=column))
                for half in range(2):
                    out = scores[key // 8 + half]
                    for depth, pair in self._depths(column, words[2 * half :][:2]):
                        self.multiply(self.queries[depth], pair, out, out=out)
        return scores

    def _depths(self, column: int, words: Any) -> Any:
        """Operands of the product, each with its 16 elements of the depth: in two words are 16 of 16 bits, or 32."""
        if not self.plan.is_narrow:
            yield column // 16, words
            return
        for number, word in enumerate(words):
            yield column // 8 + number, [b32_of(ptx.cvt.rn.f16x2.e4m3x2(half)) for half in split(word)]

    def _mask(self, scores: list[Any], left: Any) -> None:
        for number, block in enumerate(scores):
            for element, score in enumerate(block):
                ptx.mov.f32(float("-inf"), out=score, when=left <= 8 * number + element % 2)

    def _grow(self, scores: list[Any]) -> None:
        """Take new scores into the maxima; if one grows by much, scale what was summed before."""
        grown = []
        for half in self.halves:
            most = combine(ptx.max.f32, [score for block in scores for score in block[2 * half :][:2]])
            for distance in (1, 2):
                most = ptx.max.f32(most, exchange(most, distance))
            grown.append(ptx.max.f32(most, self.maxima[half]))
        growths = [(new - old) * self.scale for new, old in zip(grown, self.maxima, strict=True)]
        with ptx.when(ptx.vote.sync.any.pred(combine(ptx.max.f32, growths) > GROWTH, ALL)):
            for half in self.halves:
                factor = ptx.ex2.approx.ftz.f32((self.maxima[half] - grown[half]) * self.scale)
                self.maxima[half].set(grown[half])
                self.totals[half] *= factor
                for block in self.sums:
                    for sum in block[2 * half :][:2]:
                        sum *= factor

    def _weigh(self, blocks: list[Any]) -> list[Any]:
        """The weights of 16 keys, packed as the left operand of a product; they count into the totals."""
        packed = []
        for block in blocks:
            for half in range(2):
                if half not in self.halves:
                    packed.append(b32(0))
                    continue
                low, high = (
                    ptx.ex2.approx.ftz.f32((score - self.maxima[half]) * self.scale) for score in block[2 * half :][:2]
                )
                self.totals[half] += low + high
                packed.append(self.pack(high, low, out=b32()))
        return packed

    def _add(self, weights: list[Any], key: int) -> None:
        """Sums += weights V, for 16 keys."""
        rows = self.v_rows.move(copy=self.stream.reading, rows=key)
        for column in range(0, self.plan.row_bytes // 2, 16):
            words = self.some_values.load(rows.move(columns=column))
            for number, pair in self._columns(column, words):
                out = self.sums[number]
                self.multiply(weights, pair, out, out=out)

    def _columns(self, column: int, words: Any) -> Any:
        """Operands of the product, each with the number of its 8 columns.

        Of two elements of 8 bits that are beside each other, the first is in one operand and the second in the next.
        """
        for half in range(2):
            pair = words[2 * half :][:2]
            if not self.plan.is_narrow:
                yield column // 8 + half, pair
                continue
            sorted_ = [split(ptx.prmt.b32(word, 0, 0x3120)) for word in pair]
            for second in range(2):
                operands = [b32_of(ptx.cvt.rn.f16x2.e4m3x2(parts[second])) for parts in sorted_]
                yield column // 4 + 2 * half + second, operands

    def columns(self) -> Any:
        """What a lane has of a row: its first column and the registers, in the order of columns."""
        if not self.plan.is_narrow:
            for number, block in enumerate(self.sums):
                yield 8 * number + self.quad * 2, block
            return
        for number in range(0, len(self.sums), 2):
            even, odd = self.sums[number : number + 2]
            order = [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
            yield 8 * number + self.quad * 4, order


def split(word: Any) -> Any:
    """The two halves of a word."""
    return ptx.mov.b32(word, out=(b16(), b16()))


def b32_of(pair: Any) -> Any:
    """A pair of f16 as a word."""
    return pair.view(b32) if hasattr(pair, "view") else pair
