"""Sums, products and quotients in finite fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Ids
from ptxlab.equal.primes import inverse
from ptxlab.equal.rules import Rule
from ptxlab.equal.values import FINITE, MINUS, PLUS, WRONG, Values

CHUNK = 1 << 20  # elements that are computed at once


class Sums(Values):
    """What arithmetic makes of values."""

    def _add(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        self._sum(ids, a, b, minus=rule.word == "sub")

    _sub = _add

    def _sum(self, ids: Ids, a: Ids, b: Ids, *, minus: bool) -> None:
        signs = self.sign[a], -self.sign[b] if minus else self.sign[b]
        zeros = self._is_zero(a), self._is_zero(b)
        sign = np.where(zeros[0], signs[1], np.where(zeros[1] | (signs[0] == signs[1]), signs[0], 0))
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            other = p - self.elements[half, b] if minus else self.elements[half, b]
            self._set(ids, half, (self.elements[half, a] + other) % p, self.known[half, a] & self.known[half, b])
        self._root_of_sum(ids, a, b, minus=minus)
        self.sign[ids] = sign
        state = self.state[b]
        if minus:
            state = np.where(state == PLUS, MINUS, np.where(state == MINUS, PLUS, state))
        self.state[ids] = _joined(self.state[a], state)
        self._degree_of_sum(ids, a, b)

    def _root_of_sum(self, ids: Ids, a: Ids, b: Ids, *, minus: bool) -> None:
        roots = self.root[a], self.root[b]
        if not roots[0].any() and not roots[1].any():
            self.root[ids] = 0
            return
        zero = [((self.elements[:, one] == 0) & self.known[:, one]).all(0) for one in (a, b)]
        is_kept = (roots[0] == roots[1]) | (roots[0] == 0) & zero[0] | (roots[1] == 0) & zero[1]
        factors = []
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            second = self.factor[half, b]
            second = (p - second) % p if minus else second
            factors.append((np.where(roots[0] > 0, self.factor[half, a], 0) + np.where(roots[1] > 0, second, 0)) % p)
        self.factor[:, ids] = np.stack(factors)
        self.root[ids] = np.where(is_kept, np.maximum(*roots), 0)

    def _root_of_product(self, ids: Ids, a: Ids, b: Ids) -> None:
        """The square of a root is known; a multiple of one is one."""
        roots = self.root[a], self.root[b]
        if not roots[0].any() and not roots[1].any():
            self.root[ids] = 0
            return
        squares = (roots[0] == roots[1]) & (roots[0] > 0)
        found = np.where(roots[1] == 0, roots[0], np.where(roots[0] == 0, roots[1], 0))
        factors = []
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            one, other = (np.where(self.root[x] > 0, self.factor[half, x], self.elements[half, x]) for x in (a, b))
            product = one * other % p
            factors.append(product)
            square = product * self._under[half, roots[0]] % p
            self.elements[half, ids] = np.where(squares & self.known[half, ids], square, self.elements[half, ids])
        self.factor[:, ids] = np.stack(factors)
        self.root[ids] = found

    def _degree_of_sum(self, ids: Ids, a: Ids, b: Ids) -> None:
        top, bottom = self.degree
        top[ids] = np.maximum(top[a] + bottom[b], top[b] + bottom[a])
        bottom[ids] = bottom[a] + bottom[b]

    def _mul(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        for half, prime in enumerate(self.moduli):
            product = self.elements[half, a] * self.elements[half, b] % np.uint64(prime)
            self._set(ids, half, product, self.known[half, a] & self.known[half, b])
        self._root_of_product(ids, a, b)
        self._state_of_product(ids, a, b)
        self.degree[:, ids] = self.degree[:, a] + self.degree[:, b]

    def _state_of_product(self, ids: Ids, a: Ids, b: Ids) -> None:
        signs = [np.where(self.state[one] == PLUS, 1, np.where(self.state[one] == MINUS, -1, self.sign[one]))
                 for one in (a, b)]  # fmt: skip
        sign = signs[0] * signs[1]
        self.sign[ids] = sign
        infinite = (self.state[a] != FINITE) | (self.state[b] != FINITE)
        if infinite.any():
            is_wrong = (self.state[a] == WRONG) | (self.state[b] == WRONG) | (sign == 0)
            found = np.where(is_wrong, WRONG, np.where(sign > 0, PLUS, MINUS))
            self.state[ids] = np.where(infinite, found, FINITE)

    def _fma(self, ids: Ids, a: Ids, b: Ids, c: Ids, rule: Rule) -> None:
        self._mul(ids, a, b, rule)
        self._sum(ids, ids, c, minus=False)

    def _matmul(self, ids: Ids, a: Ids, b: Ids, *rest: Any) -> None:
        rule = rest[-1]
        c = rest[0] if len(rest) > 1 else None
        nodes = self.nodes
        rows, columns = nodes.table(a[:1]).shape[1], len(ids)
        for start in range(0, columns, max(1, CHUNK // rows)):
            part = slice(start, start + max(1, CHUNK // rows))
            one, other, own = nodes.table(a[part]), nodes.table(b[part]), ids[part]
            for half, prime in enumerate(self.moduli):
                p = np.uint64(prime)
                total = (self.elements[half][one] * self.elements[half][other] % p).sum(-1) % p
                if rule.detail == -1:
                    total = (p - total) % p
                known = self.known[half][one].all(-1) & self.known[half][other].all(-1)
                self._set(own, half, total, known)
            state = (self.state[one] != FINITE).any(-1) | (self.state[other] != FINITE).any(-1)
            self.state[own] = np.where(state, WRONG, FINITE)
            self.is_opaque[own] = self.is_opaque[one].any(-1) | self.is_opaque[other].any(-1)
            top, bottom = self.degree
            self.degree[0, own] = (top[one] + top[other]).max(-1) + (bottom[one] + bottom[other]).sum(-1)
            self.degree[1, own] = (bottom[one] + bottom[other]).sum(-1)
            unlike = ~self._fits(one, rule.reads[0]).all(-1) | ~self._fits(other, rule.reads[1]).all(-1)
            if unlike.any():
                wrong = own[unlike]
                given = [table[unlike][:, k] for table in (one, other) for k in range(rows)]
                self._opaque(int(nodes.operation_of[wrong[0]]), wrong, given)
        if c is not None:
            self.is_opaque[ids] |= self.is_opaque[c]
            self._sum(ids, ids, c, minus=False)

    def _div(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        turned = np.arange(len(ids)) + self._space(len(ids))
        self._reciprocal(turned, b, rule)
        self._mul(ids, a, turned, rule)
        self.state[ids] = np.where(self.state[turned] == WRONG, WRONG, self.state[ids])

    def _reciprocal(self, ids: Ids, a: Ids, rule: Rule) -> None:
        rooted, which = self.root[a] > 0, self.root[a]
        factors = []
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            found = inverse(self.elements[half, a], prime)
            factor = self.factor[half, a]
            if rooted.any():  # 1 / (c √x) = √x / (c x)
                factor = inverse(self.factor[half, a] * self._under[half, which] % p, prime)
                root = self.elements[half, a] * inverse(self.factor[half, a], prime) % p
                found = np.where(rooted, factor * root % p, found)
            factors.append(factor)
            self._set(ids, half, found, self.known[half, a])
        self.root[ids], self.factor[:, ids] = which, np.stack(factors)
        is_zero = ((self.elements[:, a] == 0) & self.known[:, a]).any(0)
        self.state[ids] = np.where(is_zero, WRONG, self.state[a])
        self.sign[ids] = self.sign[a]
        self.degree[:, ids] = self.degree[::-1, a]

    def _neg(self, ids: Ids, a: Ids) -> None:
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            self._set(ids, half, (p - self.elements[half, a]) % p, self.known[half, a])
            self.factor[half, ids] = (p - self.factor[half, a]) % p
        state = self.state[a]
        self.state[ids] = np.where(state == PLUS, MINUS, np.where(state == MINUS, PLUS, state))
        self.root[ids] = self.root[a]
        self.sign[ids] = -self.sign[a]
        self.degree[:, ids] = self.degree[:, a]
        self._format[ids] = self._format[a]


def _joined(a: npt.NDArray[np.int8], b: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The state of a sum."""
    if not a.any() and not b.any():
        return a
    opposite = (a != FINITE) & (b != FINITE) & (a != b)
    found = np.where(a != FINITE, a, b)
    return np.where(opposite | (a == WRONG) | (b == WRONG), WRONG, found).astype(np.int8)
