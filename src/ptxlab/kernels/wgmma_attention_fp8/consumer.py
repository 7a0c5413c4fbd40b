"""The consumers for e4m3: weights of 8 bits are the left operand in registers, too; the tensor cores add them up."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b32, f32, pred, ptx, s32
from ptxlab.kernels.parts.elements import narrowed
from ptxlab.kernels.parts.promotion import PromotedSums
from ptxlab.kernels.parts.warpgroups import GROUP, pack
from ptxlab.kernels.wgmma_attention.consumer import Consumer, Current
from ptxlab.kernels.wgmma_attention.order import Order
from ptxlab.kernels.wgmma_attention.plan import STEP
from ptxlab.kernels.wgmma_attention.softmax import ROWS, Softmax
from ptxlab.kernels.wgmma_attention_fp8.plan import Fp8Plan, Fp8Tiles
from ptxlab.kernels.wgmma_attention_fp8.turns import WeightTurns

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side

PARABOLA = 0.23734996, 0.70128029, 1.00035157  # 2^x within 0.2 %, from -1/2 to 1/2
WHOLE = 1.5 * 2.0**23 + 127  # a number that this is added to is rounded, with its f32 exponent in the lowest bits
POWER = 8.0  # weights are up to 2^8, where e4m3 ends at 448: the smallest that is not 0 is then 2^-18 of the largest


class Fp8Softmax(Softmax):
    """Scores are multiplied by the scales of queries and keys. Totals are counted by the consumer."""

    def __init__(
        self, plan: Fp8Plan, scale_q: Pointer, scale_k: Pointer, tiles: Fp8Tiles, turns: WeightTurns | None
    ) -> None:
        super().__init__(plan.size)
        self.least = -(2.0**60)  # less than any score, and finite when it is scaled
        self.computed, self.tiles, self.turns = plan.computed, tiles, turns
        self.power: f32 | float = POWER
        self.scale = ptx.ld["global"].f32(scale_q) * ptx.ld["global"].f32(scale_k) * self.scale

    def reset(self, sink: f32 | None = None) -> None:
        """Begin with other rows."""
        for maximum in self.maxima:
            maximum.set(self.least)

    def offset(self, maximum: f32) -> f32:
        """What is added to a scaled score: the weight of the maximum is 2^POWER."""
        return ptx.fma.rn.f32(maximum, -self.scale, self.power)

    def compute_p_of_rows(self, rows: list[list[Any]], grown: list[Any]) -> list[f32]:
        """In turn: no weight is computed before it, as all need a number that is read after the wait."""
        if not self.turns:
            return super().compute_p_of_rows(rows, grown)
        factors = []
        for new, maximum in zip(grown, self.maxima, strict=True):
            factors.append(ptx.ex2.approx.ftz.f32((maximum - new) * self.scale))
            maximum.set(new)
        self.turns.wait()
        self.power = ptx.ld.volatile.shared.f32(self.tiles.power)
        for own, new in zip(rows, grown, strict=True):
            self.raise_two(own, self.offset(new))
        return factors

    def raise_two(self, own: list[f32], offset: f32) -> None:
        """Some by a polynomial: `ex2` has few units, and e4m3 three bits after the first."""
        for number, score in enumerate(own, 1):
            power = ptx.fma.rn.f32(score, self.scale, offset)
            if self.computed and number % self.computed == 0:
                ptx.mul.rn.f32(*parabola(power), out=score)
            else:
                ptx.ex2.approx.ftz.f32(power, out=score)

    def count(self, total: f32, factor: f32, own: list[f32]) -> None:
        """Nothing: the tensor cores add weights up."""

    def inverses(self) -> list[f32]:
        """Nothing yet: the last weights are not added up."""
        return []


def parabola(power: f32) -> tuple[object, object]:
    """2 to the power of a fraction, and to that of a whole number: together 2^power, for those that e4m3 has."""
    power = ptx.max.NaN.f32(power, -24.0)  # which becomes 0
    rounded = ptx.add.rn.f32(power, WHOLE)
    rest = ptx.sub.rn.f32(power, ptx.sub.rn.f32(rounded, WHOLE))
    part = reduce(lambda above, factor: ptx.fma.rn.f32(above, rest, factor), PARABOLA[1:], f32(PARABOLA[0]))
    return part, ptx.shl.b32(rounded.view(b32), 23, out=f32())


class Fp8Consumer(Consumer):
    """A warpgroup with 64 queries of e4m3."""

    plan: Fp8Plan
    tiles: Fp8Tiles

    def __init__(
        self,
        plan: Fp8Plan,
        stages: list[Side],
        tiles: Fp8Tiles,
        o: Pointer,
        lse: Pointer,
        scales: tuple[Pointer, Pointer, Pointer],
    ) -> None:
        super().__init__(plan, stages, tiles, o, lse)
        self.turns = WeightTurns(self.group, plan.groups) if plan.turns else None
        self.softmax = Fp8Softmax(plan, *scales[:2], tiles, self.turns)
        self.factor = ptx.ld["global"].f32(scales[2])
        for sum in self.accumulators:
            sum.set(0.0)
        self.held = [[b32() for _ in range(4)] for _ in plan.steps]
        self.counted = [f32() for _ in ptx.warpgroup_fragments(plan.mma(8)).d.offsets]
        self.tops = [f32() for _ in range(ROWS)]
        self.promoted = PromotedSums(self.accumulators, tiles.accumulators, self.group, plan.chunk)

    def run(self, order: Order) -> None:
        """Compute the tiles."""
        if self.turns:
            self.turns.start()
        super().run(order)
        if self.turns:
            self.turns.end()

    def begin(self, order: Order, tile: Current) -> None:
        """P of the first keys."""
        self.start_sums()
        super().begin(order, tile)

    def start_sums(self) -> None:
        """Begin with other rows: nothing is summed, and nothing is promoted."""
        for total in self.softmax.totals:
            total.set(0.0)
        self.promoted.start()

    def take_queries(self) -> None:
        """Wait for the queries of a tile, and load them: their memory is free then."""
        plan = self.plan
        super().take_queries()
        fragment = ptx.warpgroup_fragments(plan.scores).a
        row = (ptx.tid.x >> 5 & 3) * 16
        for (box, column), registers in zip(plan.steps, self.held, strict=True):
            at = self.tiles.q.matrices(fragment, ptx.laneid, row, column, self.group * plan.boxes + box)
            fragment.load(at, registers)
        ptx.bar.warp.sync(-1)
        self.queries.release()

    def release_queries(self) -> None:
        """They were released when they were loaded."""

    def left_operands(self) -> list[list[b32]]:
        """The queries of each MMA, in registers."""
        return self.held

    def multiply_values(self) -> None:
        """O: P times the values of the tile before, and times ones."""
        plan, transposed = self.plan, self.tiles.transposed
        if not plan.causal:  # while the tensor cores multiply keys; under a mask there are no registers for that
            self.promote_in_time()
        self.values.wait()
        right = ptx.descriptor(transposed, copy=self.values.index * (plan.keys // plan.transposed_box))
        ones = ptx.descriptor(self.tiles.ones)
        left = [self.p[first:][:4] for first in range(0, len(self.p), 4)]
        when = {"first": 0, "last": 2}.get(plan.ones, 1)
        products = [(which, step) for step in range(len(left)) for which in ("values", "ones")]
        products.sort(key=lambda one: 1 if one[0] == "values" else when)
        ptx.wgmma.fence.sync.aligned()
        for which, step in products:
            if which == "ones":
                plan.mma(8)(self.counted, left[step], ones, step > 0, 1, 1)
                continue
            box, column = divmod(step * STEP, plan.transposed_box)
            there = right + (box * transposed.copy_bytes + column >> 4)
            plan.output(self.accumulators, left[step], there, self.adds, 1, 1)
            if step == 0:
                ptx.setp.eq.u32(plan.keys, plan.keys, out=self.adds)
        ptx.wgmma.commit_group.sync.aligned()

    def await_sums(self, grows: pred, factors: list[f32] | None = None) -> None:
        """Wait for O, rescale it where a maximum has grown, and add P to the totals."""
        super().await_sums(grows, factors)
        if factors is None:
            return
        for row, total in enumerate(self.softmax.totals):
            total.set((total + self.counted[ROWS * row]) * factors[row])
        self.promoted.step(factors)
        if self.plan.causal:
            self.promote_in_time()

    def promote_in_time(self) -> None:
        """Promote sums after so many tiles of keys."""
        if self.plan.chunk:
            with ptx.when(self.promoted.is_due):
                ptx.cp.async_.bulk.wait_group.read(0, when=ptx.tid.x % GROUP == 0)  # the last answer was there
                self.synchronize()
                self.promoted.promote()
                ptx.setp.ne.u32(self.group, self.group, out=self.adds)

    def compute_p(self, order: Order, tile: Current, *, masked: bool) -> tuple[pred, list[f32]]:
        """Turn scores into P, and let the next warpgroup do that."""
        found = super().compute_p(order, tile, masked=masked)
        if self.turns:
            self.narrow = self.narrowed()
            self.hold(self.narrow)
            self.turns.give()
        return found

    def packed(self) -> list[b32]:
        """P as the left operand has them."""
        return self.narrow if self.turns else self.narrowed()

    def narrowed(self) -> list[b32]:
        """Four weights of a row in a register, which are two and two of 8 keys in the accumulators."""
        firsts = [number + half for number in range(0, len(self.scores), 8) for half in (0, 2)]
        fours = [self.scores[first:][:2] + self.scores[first + 4 :][:2] for first in firsts]
        return [word for four in fours for word in narrowed(four, "e4m3")]

    def finish_p(self, packed: list[b32] | None) -> None:
        """Some weights, before O is there.

        ptxas moves nearly all `ex2` after the wait for the sums, where the tensor cores have nothing to do meanwhile.
        """
        if packed and self.plan.early and not self.turns:
            self.hold(packed)

    def hold(self, packed: list[b32]) -> None:
        """Have some weights computed here: a store needs them, which is never done, as no weight is negative."""
        either = reduce(ptx.or_.b32, [*packed[:: self.plan.early], packed[-1]])
        ptx.st.shared.b32(self.tiles.ones.memory.view(b32), either, when=either.view(s32) < 0)

    def store_logs(self, order: Order, tile: Current, logs: list[f32] | None = None) -> None:
        """Log-sum-exps have to wait for the totals; the maxima will be those of other rows then."""
        if self.plan.logs:
            for top, maximum in zip(self.tops, self.softmax.maxima, strict=True):
                top.set(maximum)

    def store(self, work: Current, inverses: list[f32]) -> None:
        """The answer, and log-sum-exps."""
        totals = [total + self.counted[ROWS * row] for row, total in enumerate(self.softmax.totals)]
        if self.plan.logs:
            powers = [ptx.lg2.approx.f32(total) - POWER for total in totals]
            both = zip(self.tops, powers, strict=True)
            logs = [ptx.fma.rn.f32(top, self.softmax.scale, power) * math.log(2) for top, power in both]
            super().store_logs(work.order, work, logs)
        if self.plan.chunk:
            self.promoted.add()
        super().store(work, [invert(total) * self.factor for total in totals])
        self.start_sums()

    def rounded(self, pair: int, inverse: f32) -> Any:
        """Two neighbours of the answer; of every other 8 columns, values have neighbours exchanged."""
        values = [value * inverse for value in self.accumulators[pair : pair + 2]]
        low, high = values[::-1] if pair // 4 % 2 else values
        return pack("bf16", low, high)


def invert(total: f32) -> f32:
    """What sums are to be multiplied with; 0 for a row that attends to no key."""
    return ptx.selp.f32(0.0, ptx.rcp.approx.ftz.f32(total), total == 0.0)
