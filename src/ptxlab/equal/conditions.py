"""Comparisons and choices in finite fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxlab.equal.functions import Functions
from ptxlab.equal.nodes import Ids
from ptxlab.equal.rules import Rule, is_constant, rule_of
from ptxlab.equal.sums import States, turned_round
from ptxlab.equal.values import FALSE, FINITE, MINUS, PLUS, TRUE, UNKNOWN, WRONG

ONE = np.uint64(1)


class Conditions(Functions):
    """What comparisons and choices make of values."""

    def _compare(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        is_equality = rule.word == "=="
        if rule.word == "<=":  # a <= b unless b < a
            a, b = b, a
        known = self.known[:, a] & self.known[:, b]
        difference = np.where(known, (self.elements[:, a] + self.moduli - self.elements[:, b]) % self.moduli, 0)
        if is_equality:  # of a and b, or of b and a
            flips = difference[0] > np.uint64(self.primes.p // 2)
            difference = np.where(flips, (self.moduli - difference) % self.moduli, difference)
        self._set_random(ids, list(difference.astype(np.uint64)), "equal" if is_equality else "less")
        self.degree[0, ids] = np.maximum(self.degree[:, a].sum(0) + self.degree[:, b].sum(0), 1)
        state = self._compared(a, b, is_equality)
        if self._assumed:
            said = [self._assumed.get(key, FINITE) for key in zip(*self.elements[:, ids].tolist(), strict=True)]
            state = np.where(state == FINITE, np.array(said, np.int8), state)
        self.state[ids] = np.where((self.state[a] == WRONG) | (self.state[b] == WRONG), FALSE, state)
        self.compared[ids] = ids
        if rule.word == "<=":
            self._not(ids, ids.copy(), rule)
        self._settle(ids)

    def _compared(self, a: Ids, b: Ids, is_equality: bool) -> States:
        """How comparisons come out, where that is known: of infinities, of what is the same, by signs."""
        ends, same = (self.state[a], self.state[b]), self.same(a, b)
        signs = [
            np.where(self._is_zero(one), 0, np.where(self.sign[one] != 0, self.sign[one], UNKNOWN)) for one in (a, b)
        ]
        by_signs = (signs[0] != UNKNOWN) & (signs[1] != UNKNOWN) & (signs[0] != signs[1])
        if is_equality:
            return np.select([same, ends[0] != ends[1], by_signs], [TRUE, FALSE, FALSE], FINITE)
        below = (ends[0] == MINUS) & (ends[1] != MINUS) | (ends[1] == PLUS) & (ends[0] != PLUS)
        above = (ends[1] == MINUS) | (ends[0] == PLUS) | same
        return np.select([above, below, by_signs], [FALSE, TRUE, np.where(signs[0] < signs[1], TRUE, FALSE)], FINITE)

    def assume(self, known: Conditions, assumed: Mapping[int, bool]) -> None:
        """Take comparisons, which have values in the same field, to come out as it is said."""
        for node, holds in assumed.items():
            if known.state[node] == FINITE:
                is_turned = rule_of(self.nodes.kind(node)).word == "<="  # that is 1 - (b < a)
                own, primes = known.elements[:, node].tolist(), self.moduli[:, 0].tolist()
                key = [(1 - one) % p if is_turned else one for one, p in zip(own, primes, strict=True)]
                self._assumed[key[0], key[1]] = TRUE if holds != is_turned else FALSE

    def _settle(self, ids: Ids) -> None:
        """Conditions that are known are 0 or 1."""
        for state, value in ((TRUE, 1), (FALSE, 0)):
            chosen = ids[self.state[ids] == state]
            self.elements[:, chosen] = value
            self.known[:, chosen] = True

    def _not(self, ids: Ids, a: Ids, rule: Rule) -> None:
        self._set(ids, (self.moduli + ONE - self.elements[:, a]) % self.moduli, self.known[:, a])
        self.state[ids] = turned_round(self.state[a], TRUE, FALSE)
        self.compared[ids] = np.where(self.compared[a] == -1, -1, -2 - self.compared[a])
        self.degree[:, ids] = self.degree[:, a]

    def _logic(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        if rule.detail == 1:
            self._conditions(ids, a, b, rule.word[-1])
        else:
            self._signs(ids, a, b, rule.word[-1], rule.detail)

    def _conditions(self, ids: Ids, a: Ids, b: Ids, sign: str) -> None:
        """Of two conditions: x y, x + y - x y, x + y - 2 x y."""
        x, y = self.elements[:, a], self.elements[:, b]
        product = x * y % self.moduli
        less = product if sign == "|" else (product + product) % self.moduli
        value = product if sign == "&" else (x + y + self.moduli - less) % self.moduli
        self._set(ids, value, self.known[:, a] & self.known[:, b])
        self.degree[:, ids] = self.degree[:, a] + self.degree[:, b]
        self.state[ids] = FINITE
        neutral, other_end = (TRUE, FALSE) if sign == "&" else (FALSE, TRUE)
        for one, other in ((a, b), (b, a)):
            chosen, ends = self.state[one] == neutral, self.state[one] == other_end
            self._copy(ids[chosen], other[chosen])
            if sign == "^":
                self._not(ids[ends], other[ends], Rule("not"))
            else:
                self.state[ids[ends]] = other_end
        self._settle(ids)

    def _signs(self, ids: Ids, a: Ids, b: Ids, sign: str, width: int) -> None:
        """The sign bit of a number, changed or taken away; all else on bits is opaque."""
        left = np.ones(len(ids), bool)
        made, mask = (self._neg, 1 << width - 1) if sign == "^" else (self._abs, (1 << width - 1) - 1)
        for one, other in ((a, b), (b, a)) if sign != "|" else ():
            is_float = (self.format[one] != 0) & ~self._is_integer(one)
            is_mask = self.nodes.operands[0, other].view(np.uint64) == np.uint64(mask)
            chosen = left & is_float & is_constant(self.nodes, other) & is_mask
            made(ids[chosen], one[chosen])
            left &= ~chosen
        self._opaque(ids, a, b, chosen=left)

    def _select(self, ids: Ids, condition: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        state, compared = self.state[condition], self.compared[condition]
        is_turned = compared < -1
        named = np.where(is_turned, -2 - compared, np.maximum(compared, 0))
        yes, no = np.where(is_turned, b, a), np.where(is_turned, a, b)
        words = np.array([rule_of(self.nodes.kind(n)).word for n in named.tolist()])
        less, more = np.maximum(self.nodes.operands[:2, named], 0)
        less, more = np.where(words == "<=", (more, less), (less, more))
        orders = (compared != -1) & np.isin(words, ("<", "<="))
        is_max = orders & self.same(yes, more) & self.same(no, less)
        is_min = orders & self.same(yes, less) & self.same(no, more) & ~is_max
        for chosen, which in ((is_max, 0), (is_min, 1)):
            if chosen.any():
                self._extremum(ids[chosen], a[chosen], b[chosen], which)
        mixed = ~is_max & ~is_min
        self._mix(ids[mixed], condition[mixed], a[mixed], b[mixed])
        for known, source in ((TRUE, a), (FALSE, b)):
            chosen = state == known
            self._copy(ids[chosen], source[chosen])
            self.format[ids[chosen]] = self.format[source[chosen]]

    def _mix(self, ids: Ids, condition: Ids, a: Ids, b: Ids) -> None:
        """c a + (1 - c) b"""
        c = self.elements[:, condition]
        parts = c * self.elements[:, a] % self.moduli, (self.moduli + ONE - c) % self.moduli * self.elements[:, b]
        known = self.known[:, a] & self.known[:, b] & self.known[:, condition]
        self._set(ids, (parts[0] + parts[1] % self.moduli) % self.moduli, known)
        self.state[ids] = np.where((self.state[a] == FINITE) & (self.state[b] == FINITE), FINITE, WRONG)
        self.degree[:, ids] = self.degree[:, condition] + self.degree[:, a] + self.degree[:, b]
