"""Comparisons and choices in finite fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxlab.equal.functions import Functions
from ptxlab.equal.nodes import Ids
from ptxlab.equal.rules import Rule, is_constant, rule_of
from ptxlab.equal.values import FALSE, FINITE, INTEGER, MINUS, PLUS, TRUE, UNKNOWN, WRONG, hash_text


class Conditions(Functions):
    """What comparisons and choices make of values."""

    def _compare(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        word = rule.word
        differences = []
        if word == "<=":  # a <= b unless b < a
            a, b = b, a
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            known = self.known[half, a] & self.known[half, b]
            difference = (self.elements[half, a] + p - self.elements[half, b]) % p
            differences.append(np.where(known, difference, np.uint64(0)))
        if word == "==":
            flips = differences[0] > np.uint64(self.primes.p // 2)
            for half, prime in enumerate(self.moduli):
                p = np.uint64(prime)
                differences[half] = np.where(flips, (p - differences[half]) % p, differences[half])
        opaque = self.is_opaque[a] | self.is_opaque[b]
        self._random(ids, differences, self._salt ^ hash_text("less" if word != "==" else "equal"))
        self.known[:, ids] = True
        self.is_opaque[ids] = opaque
        self.degree[0, ids] = np.maximum(self.degree[:, a].sum(0) + self.degree[:, b].sum(0), 1)
        state = np.full(len(ids), FINITE, np.int8)
        ends = (self.state[a], self.state[b])
        same = self.same(a, b)
        if word == "==":
            state[(ends[0] != ends[1])] = FALSE
            state[same] = TRUE
        else:
            state[(ends[0] == MINUS) & (ends[1] != MINUS) | (ends[1] == PLUS) & (ends[0] != PLUS)] = TRUE
            state[(ends[1] == MINUS) | (ends[0] == PLUS) | same] = FALSE
        signs = [
            np.where(self._is_zero(one), 0, np.where(self.sign[one] != 0, self.sign[one], UNKNOWN)) for one in (a, b)
        ]
        is_known = (signs[0] != UNKNOWN) & (signs[1] != UNKNOWN) & (signs[0] != signs[1]) & (state == FINITE)
        decided = np.where((signs[0] < signs[1]) & (word != "=="), TRUE, FALSE)
        state = np.where(is_known, decided, state).astype(np.int8)
        if self._assumed:
            said = [self._assumed.get(key, FINITE) for key in zip(*self.elements[:, ids].tolist(), strict=True)]
            state = np.where(state == FINITE, np.array(said, np.int8), state)
        for at in ends:
            state[at == WRONG] = FALSE
        self.state[ids] = state
        self.compared[ids] = ids
        if word == "<=":
            self._not(ids, ids.copy(), rule)
        self._settle(ids)

    def assume(self, known: Conditions, assumed: Mapping[int, bool]) -> None:
        """Take comparisons, which have values in the same field, to come out as it is said."""
        for node, holds in assumed.items():
            if known.state[node] == FINITE:
                is_turned = rule_of(self.nodes.kind(node)).word == "<="  # that is 1 - (b < a)
                key = [(1 - int(one)) % p if is_turned else int(one)
                       for one, p in zip(known.elements[:, node], self.moduli, strict=True)]  # fmt: skip
                self._assumed[key[0], key[1]] = TRUE if holds != is_turned else FALSE

    def _settle(self, ids: Ids) -> None:
        """Conditions that are known are 0 or 1."""
        for state, value in ((TRUE, 1), (FALSE, 0)):
            chosen = ids[self.state[ids] == state]
            self.elements[:, chosen] = value
            self.known[:, chosen] = True

    def _not(self, ids: Ids, a: Ids, rule: Rule) -> None:
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            self._set(ids, half, (p + np.uint64(1) - self.elements[half, a]) % p, self.known[half, a])
        state = self.state[a]
        self.state[ids] = np.where(state == TRUE, FALSE, np.where(state == FALSE, TRUE, state))
        self.compared[ids] = np.where(self.compared[a] == -1, -1, -2 - self.compared[a])
        self.degree[:, ids] = self.degree[:, a]

    def _logic(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        sign = rule.word[-1]
        if rule.detail == 1:
            self._conditions(ids, a, b, sign)
            return
        self._signs(ids, a, b, sign, rule)

    def _conditions(self, ids: Ids, a: Ids, b: Ids, sign: str) -> None:
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            x, y = self.elements[half, a], self.elements[half, b]
            product = x * y % p
            times = {"&": 0, "|": 1, "^": 2}[sign]
            value = product if times == 0 else (x + y + np.uint64(times) * (p - product)) % p
            self._set(ids, half, value, self.known[half, a] & self.known[half, b])
        self.degree[:, ids] = self.degree[:, a] + self.degree[:, b]
        neutral = TRUE if sign == "&" else FALSE
        self.state[ids] = FINITE
        for one, other in ((a, b), (b, a)):
            chosen = self.state[one] == neutral
            self._copy(ids[chosen], other[chosen])
            if sign == "^":
                chosen = self.state[one] == TRUE
                self._not(ids[chosen], other[chosen], Rule("not"))
            else:
                chosen = self.state[one] == (FALSE if sign == "&" else TRUE)
                self.state[ids[chosen]] = FALSE if sign == "&" else TRUE
        self._settle(ids)

    def _signs(self, ids: Ids, a: Ids, b: Ids, sign: str, rule: Rule) -> None:
        """The sign bit of a number, changed or taken away; all else on bits is opaque."""
        width = rule.detail
        left = np.ones(len(ids), bool)
        for one, other in ((a, b), (b, a)):
            constant = is_constant(self.nodes, other)
            bits = self.nodes.operands[0, other].view(np.uint64)
            top = np.uint64(1 << (width - 1))
            is_float = (self._format[one] != 0) & (self._format[one] != self._number(INTEGER))
            if sign == "^":
                chosen = left & constant & (bits == top) & is_float
                self._neg(ids[chosen], one[chosen])
            elif sign == "&":
                chosen = left & constant & (bits == top - np.uint64(1)) & is_float
                self._magnitude(ids[chosen], one[chosen])
            else:
                continue
            left &= ~chosen
        if left.any():
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[left], [a[left], b[left]])

    def _select(self, ids: Ids, condition: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        state = self.state[condition]
        compared = self.compared[condition]
        is_turned = compared < -1
        named = np.where(is_turned, -2 - compared, np.maximum(compared, 0))
        yes, no = np.where(is_turned, b, a), np.where(is_turned, a, b)
        less, more = self.nodes.operands[0, named], self.nodes.operands[1, named]
        turns = np.array([rule_of(self.nodes.kind(n)).word if c != -1 else "" for n, c in
                          zip(named.tolist(), compared.tolist(), strict=True)])  # fmt: skip
        less, more = np.where(turns == "<=", more, less), np.where(turns == "<=", less, more)
        orders = np.isin(turns, ("<", "<="))
        less, more = np.maximum(less, 0), np.maximum(more, 0)
        is_max = orders & self.same(yes, more) & self.same(no, less)
        is_min = orders & self.same(yes, less) & self.same(no, more)
        for chosen, which in ((is_max, 0), (is_min & ~is_max, 1)):
            if chosen.any():
                self._extremum(ids[chosen], a[chosen], b[chosen], which)
        mixed = ~is_max & ~is_min
        if mixed.any():
            self._mix(ids[mixed], condition[mixed], a[mixed], b[mixed])
        for known, source in ((TRUE, a), (FALSE, b)):
            chosen = state == known
            if chosen.any():
                self._copy(ids[chosen], source[chosen])
                self._format[ids[chosen]] = self._format[source[chosen]]

    def _mix(self, ids: Ids, condition: Ids, a: Ids, b: Ids) -> None:
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            c = self.elements[half, condition]
            value = (c * self.elements[half, a] % p + (p + np.uint64(1) - c) % p * self.elements[half, b] % p) % p
            known = self.known[half, a] & self.known[half, b] & self.known[half, condition]
            self._set(ids, half, value, known)
        self.state[ids] = np.where((self.state[a] == FINITE) & (self.state[b] == FINITE), FINITE, WRONG)
        self.degree[:, ids] = self.degree[:, condition] + self.degree[:, a] + self.degree[:, b]
