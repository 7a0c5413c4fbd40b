"""Powers, logarithms, roots, maxima and other functions in finite fields."""

from __future__ import annotations

import numpy as np

from ptxlab.equal.nodes import Ids
from ptxlab.equal.rules import BIAS, EXPONENT, Rule, is_constant, is_exponent
from ptxlab.equal.sums import Sums
from ptxlab.equal.values import FINITE, INTEGER, MINUS, PLUS, Flags, hash_text, scattered

MOST_OPERANDS = 4096  # of a maximum, of which it is known which they are


class Functions(Sums):
    """What functions make of values."""

    def _exp2(self, ids: Ids, a: Ids, rule: Rule) -> None:
        exponent = self.elements[1, a]
        lacking = ~self.known[1, a]
        if lacking.any():  # the power of a power, or of a maximum of some: some exponent that depends on it
            own = scattered(self._content(a), self._salt ^ hash_text("exponent"))
            exponent = np.where(lacking, own % np.uint64(self.primes.q), exponent)
            self.is_opaque[ids] |= lacking
        state = self.state[a]
        is_zero = state == MINUS
        self._set(ids, 0, np.where(is_zero, np.uint64(0), self.primes.power(exponent)), np.ones(len(ids), bool))
        self._set(ids, 1, np.zeros(len(ids), np.uint64), is_zero)
        self.state[ids] = np.where(is_zero, FINITE, state)
        self.sign[ids] = np.where(is_zero, 0, 1)
        self.degree[0, ids] = np.maximum(self.degree[0, a] + self.degree[1, a], 1)
        self.degree[1, ids] = 0

    def _shift(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        """Bits of a number as the exponent of another, as in `expf`, or its exponent; otherwise it is opaque."""
        by_23 = is_constant(self.nodes, b, 23)
        if rule.detail == ">>":
            usual = by_23 & (self.sign[a] > 0) & self._fits(a, "f32") & (self._format[a] != 0)
            self._function(ids[usual], [a[usual]], hash_text("exponent"))
            self._format[ids[usual]] = self._number(INTEGER)
        else:
            is_integer = self._format[a] == self._number(INTEGER)
            usual = (is_exponent(self.nodes, a, b) | is_integer & by_23) & self.known[1, a]
            own = a[usual]
            bias = np.where(is_integer[usual], BIAS, int(EXPONENT)).astype(np.uint64)
            exponent = (self.elements[1, own] + np.uint64(self.primes.q) - bias) % np.uint64(self.primes.q)
            self._set(ids[usual], 0, self.primes.power(exponent), np.ones(len(own), bool))
            self._set(ids[usual], 1, np.zeros(len(own), np.uint64), np.zeros(len(own), bool))
            self.sign[ids[usual]] = 1
            self.degree[0, ids[usual]] = np.maximum(self.degree[:, own].sum(0), 1)
        if not usual.all():
            left = ~usual
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[left], [a[left], b[left]])

    def _whole(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        """Sums and differences of exponents and plain integers; of others, they are opaque."""
        integer = self._number(INTEGER)
        usual = np.ones(len(ids), bool)
        parts = []
        for one in (a, b):
            constant = is_constant(self.nodes, one)
            usual &= constant | (self._format[one] == integer)
            bits = self.nodes.operands[0, one].astype(np.int64) << 32 >> 32
            parts.append([np.where(constant, (bits % prime).astype(np.uint64), self.elements[half, one])
                          for half, prime in enumerate(self.moduli)])  # fmt: skip
        for half, prime in enumerate(self.moduli):
            p = np.uint64(prime)
            other = p - parts[1][half] if rule.detail == "-" else parts[1][half]
            self._set(ids, half, (parts[0][half] + other) % p, np.ones(len(ids), bool))
        self._format[ids] = integer
        self.degree[0, ids] = 1
        if not usual.all():
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[~usual], [a[~usual], b[~usual]])

    def _from_integer(self, ids: Ids, a: Ids, rule: Rule) -> None:
        usual = self._format[a] == self._number(INTEGER)
        self._copy(ids[usual], a[usual])
        if not usual.all():
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[~usual], [a[~usual]])

    def _log2(self, ids: Ids, a: Ids, rule: Rule) -> None:
        usable = self.known[0, a] & (self.elements[0, a] != 0) & (self.state[a] == FINITE)
        if not usable.all():
            left = ~usable
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[left], [a[left]])
        own = ids[usable]
        self._set(own, 1, self.primes.logarithm(self.elements[0, a[usable]]), np.ones(len(own), bool))
        self._set(own, 0, np.zeros(len(own), np.uint64), np.zeros(len(own), bool))
        self.degree[0, own] = np.maximum(self.degree[0, a[usable]] + self.degree[1, a[usable]], 1)

    def _sqrt(self, ids: Ids, a: Ids, rule: Rule) -> None:
        """Some number whose square is known."""
        self._function(ids, [a], hash_text("sqrt"))
        self.known[:, ids] = self.known[:, a]
        content = np.stack(self._content(a), axis=1)
        unique, back = np.unique(content, axis=0, return_inverse=True)
        numbers = [self._roots.setdefault(tuple(line), len(self._roots) + 1) for line in unique.tolist()]
        found = np.array(numbers, np.int32)[back.ravel()]
        if len(self._roots) >= self._under.shape[1]:
            more = len(self._roots) + 1 - self._under.shape[1]
            self._under = np.concatenate([self._under, np.zeros((2, more), np.uint64)], axis=1)
        self._under[:, found] = self.elements[:, a]
        self.root[ids] = found
        self.factor[:, ids] = 1

    def _inverse_root(self, ids: Ids, a: Ids, rule: Rule) -> None:
        root = np.arange(len(ids)) + self._space(len(ids))
        self._sqrt(root, a, rule)
        self._reciprocal(ids, root, rule)

    def _word(self, ids: Ids, a: Ids, rule: Rule) -> None:
        self._function(ids, [a], hash_text(rule.word))

    _sin = _cos = _tanh = _word

    def _abs(self, ids: Ids, a: Ids, rule: Rule) -> None:
        self._magnitude(ids, a)

    def _magnitude(self, ids: Ids, a: Ids) -> None:
        words = []
        for half, prime in enumerate(self.moduli):
            own = np.where(self.known[half, a], self.elements[half, a], np.uint64(0))
            words.append(np.minimum(own, (np.uint64(prime) - own) % np.uint64(prime)))
        # |x| is |-x| in both fields at once: the sign that makes `p` small says which `q` is meant.
        flips = words[0] != np.where(self.known[0, a], self.elements[0, a], np.uint64(0))
        q = np.where(self.known[1, a], self.elements[1, a], np.uint64(0))
        words[1] = np.where(flips, (np.uint64(self.primes.q) - q) % np.uint64(self.primes.q), q)
        self._random(ids, words, self._salt ^ hash_text("abs"))
        self.known[:, ids] = True
        infinite = (self.state[a] == PLUS) | (self.state[a] == MINUS)
        self.state[ids] = np.where(infinite, PLUS, self.state[a])
        self.degree[:, ids] = np.maximum(self.degree[:, a], [[1], [0]])
        self._format[ids] = self._format[a]

    def _max(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        self._extremum(ids, a, b, 0 if rule.word == "max" else 1)

    _min = _max

    def _extremum(self, ids: Ids, a: Ids, b: Ids, which: int) -> None:
        least, most = (MINUS, PLUS) if which == 0 else (PLUS, MINUS)
        tags = []
        for one in (a, b):
            own = scattered(self._content(one), self._salt ^ hash_text("operand"))
            tags.append(np.where(self.tags[which, one] != 0, self.tags[which, one], own))
        pairs, back = np.unique(np.stack(tags, axis=1), axis=0, return_inverse=True)
        unions = [self._union(one, other) for one, other in pairs.tolist()]
        tag = np.array(unions, np.uint64)[back.ravel()]
        opaque = self.is_opaque[a] | self.is_opaque[b]
        degree = np.maximum(self.degree[:, a], self.degree[:, b])
        values = [self._values(one) for one in (a, b)]
        self._random(ids, [tag], self._salt ^ hash_text(f"extremum {which}"))
        self.known[:, ids] = True
        self.state[ids], self.sign[ids], self.is_opaque[ids] = FINITE, 0, opaque
        self.tags[:, ids] = 0
        self.tags[which, ids] = tag
        self.degree[:, ids] = np.maximum(degree, [[1], [0]])
        same = self.same(a, b)
        if which == 0:
            for chosen, value in ((self._is_above(a, b), values[0]), (self._is_above(b, a), values[1])):
                if chosen.any():
                    self._restore(ids[chosen], value, chosen)
        for chosen, value in (
            (self.state[b] == least, values[0]), (self.state[a] == least, values[1]),
            (self.state[b] == most, values[1]), (self.state[a] == most, values[0]), (same, values[0]),
        ):  # fmt: skip
            if chosen.any():
                self._restore(ids[chosen], value, chosen)

    def _union(self, a: int, b: int) -> int:
        """The tag of the operands of two maxima; one that both have counts once."""
        one, other = (self._operands.get(tag, frozenset((tag,))) for tag in (a, b))
        found = (a + b - sum(one & other)) % (1 << 64)
        if len(one) + len(other) <= MOST_OPERANDS:
            self._operands[found] = one | other
        return found

    def _is_above(self, a: Ids, b: Ids) -> Flags:
        """Where b is 0, and a is known not to be negative, whatever the inputs are."""
        chosen = self._is_zero(b) & (self.degree[0, a] == 2) & (self.degree[1, a] == 0) & ~self.is_opaque[a]
        found = np.zeros(len(a), bool)
        for index in np.flatnonzero(chosen).tolist():
            origin = self.nodes.origin(int(a[index]))
            if origin not in self._negative:
                found[index] = self._forms.is_never_negative(int(a[index]))
                if not found[index]:
                    self._negative.add(origin)
        return found

    def _clamp(self, rule: Rule, ids: Ids) -> None:
        """`.relu` and `.sat`: a maximum with 0, a minimum with 1."""
        nodes = self.nodes
        limits = nodes.constants(np.array([0, 0x3F800000], np.uint64), "f32", 4)
        self._grow()
        self._leaf("constant", int(nodes.operation_of[limits[0]]), limits)
        self._extremum(ids, ids.copy(), np.full(len(ids), limits[0]), 0)
        if rule.saturates:
            self._extremum(ids, ids.copy(), np.full(len(ids), limits[1]), 1)
