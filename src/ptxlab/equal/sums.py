"""Sums, products and quotients in finite fields."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Ids
from ptxlab.equal.primes import inverse
from ptxlab.equal.rules import Rule
from ptxlab.equal.values import FINITE, MINUS, PLUS, WRONG, Values

CHUNK = 1 << 20  # elements that are computed at once
States = npt.NDArray[np.int8]


class Sums(Values):
    """What arithmetic makes of values."""

    def _add(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        self._sum(ids, a, b)

    def _sub(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        opposite = self._spare(len(ids))
        self._neg(opposite, b)
        self._sum(ids, a, opposite)

    def _sum(self, ids: Ids, a: Ids, b: Ids) -> None:
        signs, zeros = (self.sign[a], self.sign[b]), (self._is_zero(a), self._is_zero(b))
        self._root_of_sum(ids, a, b)
        self._set(ids, (self.elements[:, a] + self.elements[:, b]) % self.moduli, self.known[:, a] & self.known[:, b])
        self.sign[ids] = np.where(zeros[0], signs[1], np.where(zeros[1] | (signs[0] == signs[1]), signs[0], 0))
        self.state[ids] = _joined(self.state[a], self.state[b])
        top, bottom = self.degree[:, a], self.degree[:, b]
        self.degree[0, ids] = np.maximum(top[0] + bottom[1], bottom[0] + top[1])
        self.degree[1, ids] = top[1] + bottom[1]

    def _root_of_sum(self, ids: Ids, a: Ids, b: Ids) -> None:
        """A sum of multiples of one root is one."""
        roots = self.root[a], self.root[b]
        if not (roots[0].any() or roots[1].any()):
            self.root[ids] = 0
            return
        zero = [((self.elements[:, one] == 0) & self.known[:, one]).all(0) for one in (a, b)]
        is_kept = (roots[0] == roots[1]) | (roots[0] == 0) & zero[0] | (roots[1] == 0) & zero[1]
        factors = [np.where(root > 0, self.factor[:, one], 0) for root, one in zip(roots, (a, b), strict=True)]
        self.factor[:, ids] = (factors[0] + factors[1]) % self.moduli
        self.root[ids] = np.where(is_kept, np.maximum(*roots), 0)

    def _mul(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        roots = self.root[a], self.root[b]
        product = self.elements[:, a] * self.elements[:, b] % self.moduli
        if roots[0].any() or roots[1].any():  # a multiple of a root is one, and the square of a root is known
            one, other = (np.where(self.root[x] > 0, self.factor[:, x], self.elements[:, x]) for x in (a, b))
            self.factor[:, ids] = factor = one * other % self.moduli
            is_square = (roots[0] == roots[1]) & (roots[0] > 0)
            product = np.where(is_square, factor * self._under[:, roots[0]] % self.moduli, product)
        self.root[ids] = np.where(roots[1] == 0, roots[0], np.where(roots[0] == 0, roots[1], 0))
        self._set(ids, product, self.known[:, a] & self.known[:, b])
        self._state_of_product(ids, a, b)
        self.degree[:, ids] = self.degree[:, a] + self.degree[:, b]

    def _state_of_product(self, ids: Ids, a: Ids, b: Ids) -> None:
        ends = self.state[a], self.state[b]
        signs = [np.where(end == PLUS, 1, np.where(end == MINUS, -1, self.sign[one]))
                 for end, one in zip(ends, (a, b), strict=True)]  # fmt: skip
        sign = signs[0] * signs[1]
        is_wrong = (ends[0] == WRONG) | (ends[1] == WRONG) | (sign == 0)
        infinite = np.where(is_wrong, WRONG, np.where(sign > 0, PLUS, MINUS))
        self.state[ids] = np.where((ends[0] != FINITE) | (ends[1] != FINITE), infinite, FINITE)
        self.sign[ids] = sign

    def _fma(self, ids: Ids, a: Ids, b: Ids, c: Ids, rule: Rule) -> None:
        self._mul(ids, a, b, rule)
        self._sum(ids, ids, c)

    def _matmul(self, ids: Ids, a: Ids, b: Ids, *rest: Ids | Rule) -> None:
        """A row by a column, and what is added; `rest` is that, if there is anything, and the rule."""
        (*added, rule), nodes = rest, self.nodes
        assert isinstance(rule, Rule)
        depth = nodes.table(a[:1]).shape[1]
        for start in range(0, len(ids), max(1, CHUNK // depth)):
            part = slice(start, start + max(1, CHUNK // depth))
            one, other, own = nodes.table(a[part]), nodes.table(b[part]), ids[part]
            products = self.elements[:, one] * self.elements[:, other] % self.moduli[:, :, None]
            total = products.sum(-1) % self.moduli
            total = (self.moduli - total) % self.moduli if rule.detail == -1 else total
            self._set(own, total, (self.known[:, one] & self.known[:, other]).all(-1))
            infinite = ((self.state[one] != FINITE) | (self.state[other] != FINITE)).any(-1)
            self.state[own] = np.where(infinite, WRONG, FINITE)
            self.is_opaque[own] = (self.is_opaque[one] | self.is_opaque[other]).any(-1)
            top, bottom = self.degree[:, one] + self.degree[:, other]
            self.degree[:, own] = top.max(-1) + bottom.sum(-1), bottom.sum(-1)
            fits = (self._fits(one, rule.reads[0]) & self._fits(other, rule.reads[1])).all(axis=-1)
            self._opaque(own, *one.T, *other.T, chosen=np.logical_not(fits))
        for c in added:
            assert not isinstance(c, Rule)
            self.is_opaque[ids] |= self.is_opaque[c]
            self._sum(ids, ids, c)

    def _div(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        turned = self._spare(len(ids))
        self._reciprocal(turned, b, rule)
        self._mul(ids, a, turned, rule)
        self.state[ids] = np.where(self.state[turned] == WRONG, WRONG, self.state[ids])

    def _reciprocal(self, ids: Ids, a: Ids, rule: Rule) -> None:
        which, factor, elements = self.root[a], self.factor[:, a], self.elements[:, a]
        found = inverse(elements, self.moduli)
        if which.any():  # 1 / (c √x) = √x / (c x)
            turned = inverse(factor * self._under[:, which] % self.moduli, self.moduli)
            root = elements * inverse(factor, self.moduli) % self.moduli
            found, factor = np.where(which > 0, turned * root % self.moduli, found), turned
        is_zero = ((elements == 0) & self.known[:, a]).any(0)
        self._set(ids, found, self.known[:, a])
        self.root[ids], self.factor[:, ids] = which, factor
        self.state[ids] = np.where(is_zero, WRONG, self.state[a])
        self.sign[ids] = self.sign[a]
        self.degree[:, ids] = self.degree[::-1, a]

    def _neg(self, ids: Ids, a: Ids) -> None:
        self._set(ids, (self.moduli - self.elements[:, a]) % self.moduli, self.known[:, a])
        self.factor[:, ids] = (self.moduli - self.factor[:, a]) % self.moduli
        self.state[ids] = turned_round(self.state[a], PLUS, MINUS)
        self.root[ids], self.sign[ids], self.format[ids] = self.root[a], -self.sign[a], self.format[a]
        self.degree[:, ids] = self.degree[:, a]


def turned_round(states: States, one: int, other: int) -> States:
    """States with two of them exchanged."""
    return np.where(states == one, other, np.where(states == other, one, states)).astype(np.int8)


def _joined(a: States, b: States) -> States:
    """The state of a sum."""
    opposite = (a != FINITE) & (b != FINITE) & (a != b)
    found = np.where(a != FINITE, a, b)
    return np.where(opposite | (a == WRONG) | (b == WRONG), WRONG, found).astype(np.int8)
