"""Powers, logarithms, roots, maxima and other functions in finite fields."""

from __future__ import annotations

import numpy as np

from ptxlab.equal.nodes import Ids, Words
from ptxlab.equal.rules import BIAS, EXPONENT, Rule, is_constant, is_exponent
from ptxlab.equal.sums import Sums
from ptxlab.equal.values import FINITE, INTEGER, MINUS, PLUS, Flags, hash_text, scattered

MOST_OPERANDS = 4096  # of a maximum, of which it is known which they are


class Functions(Sums):
    """What functions make of values."""

    def _exp2(self, ids: Ids, a: Ids, rule: Rule) -> None:
        exponent, lacking, state = self.elements[1, a], ~self.known[1, a], self.state[a]
        if lacking.any():  # the power of a power, or of a maximum of some: some exponent that depends on it
            own = scattered(self._content(a), self._salt ^ hash_text("exponent"))
            exponent = np.where(lacking, own % np.uint64(self.primes.q), exponent)
            self.is_opaque[ids] |= lacking
        self._power(ids, a, exponent)
        self.state[ids] = state
        zero = ids[state == MINUS]
        self._set(zero, np.zeros((2, len(zero)), np.uint64))
        self.state[zero], self.sign[zero] = FINITE, 0

    def _power(self, ids: Ids, a: Ids, exponent: Words) -> None:
        """The power of two of something that depends on `a`: it is positive."""
        self._set_one(ids, 0, self.primes.power(exponent))
        self.sign[ids] = 1
        self.degree[:, ids] = np.maximum(self.degree[:, a].sum(0), 1), np.zeros(len(ids))

    def _shift(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        """Bits of a number as the exponent of another, as in `expf`, or its exponent; otherwise it is opaque."""
        by_23 = is_constant(self.nodes, b, 23)
        if rule.detail == ">>":
            usual = by_23 & (self.sign[a] > 0) & self._fits(a, "f32") & (self.format[a] != 0)
            self._function(ids[usual], [a[usual]], "exponent")
            self.format[ids[usual]] = self._number(INTEGER)
        else:
            usual = (is_exponent(self.nodes, a, b) | self._is_integer(a) & by_23) & self.known[1, a]
            q, bias = np.uint64(self.primes.q), np.where(self._is_integer(a), BIAS, int(EXPONENT)).astype(np.uint64)
            self._power(ids[usual], a[usual], ((self.elements[1, a] + q - bias) % q)[usual])
        self._opaque(ids, a, b, chosen=~usual)

    def _whole(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        """Sums and differences of exponents and plain integers; of others, they are opaque."""
        constant = [is_constant(self.nodes, one) for one in (a, b)]
        usual = (constant[0] | self._is_integer(a)) & (constant[1] | self._is_integer(b))
        parts = [self._whole_numbers(one, chosen) for one, chosen in zip((a, b), constant, strict=True)]
        other = self.moduli - parts[1] if rule.detail == "-" else parts[1]
        self._set(ids, (parts[0] + other) % self.moduli)
        self.format[ids] = self._number(INTEGER)
        self.degree[0, ids] = 1
        self._opaque(ids, a, b, chosen=~usual)

    def _whole_numbers(self, ids: Ids, constant: Flags) -> Words:
        """Exponents, and constants as the integers that they are."""
        bits = self.nodes.operands[0, ids] << 32 >> 32
        return np.where(constant, (bits % self.moduli.astype(np.int64)).astype(np.uint64), self.elements[:, ids])

    def _from_integer(self, ids: Ids, a: Ids, rule: Rule) -> None:
        usual = self._is_integer(a)
        self._copy(ids[usual], a[usual])
        self._opaque(ids, a, chosen=~usual)

    def _log2(self, ids: Ids, a: Ids, rule: Rule) -> None:
        usual = self.known[0, a] & (self.elements[0, a] != 0) & (self.state[a] == FINITE)
        own, of = ids[usual], a[usual]
        self._set_one(own, 1, self.primes.logarithm(self.elements[0, of]))
        self.degree[0, own] = np.maximum(self.degree[:, of].sum(0), 1)
        self._opaque(ids, a, chosen=~usual)

    def _sqrt(self, ids: Ids, a: Ids, rule: Rule) -> None:
        """Some number whose square is known."""
        self._function(ids, [a], "sqrt")
        self.known[:, ids] = self.known[:, a]
        unique, back = np.unique(np.stack(self._content(a), axis=1), axis=0, return_inverse=True)
        numbers = [self._roots.setdefault(tuple(line), len(self._roots) + 1) for line in unique.tolist()]
        self.root[ids] = found = np.array(numbers, np.int32)[back.ravel()]
        self.factor[:, ids] = 1
        more = len(self._roots) + 1 - self._under.shape[1]
        self._under = np.concatenate([self._under, np.zeros((2, more), np.uint64)], axis=1)
        self._under[:, found] = self.elements[:, a]

    def _inverse_root(self, ids: Ids, a: Ids, rule: Rule) -> None:
        root = self._spare(len(ids))
        self._sqrt(root, a, rule)
        self._reciprocal(ids, root, rule)

    def _word(self, ids: Ids, a: Ids, rule: Rule) -> None:
        self._function(ids, [a], rule.word)

    _sin = _cos = _tanh = _word

    def _abs(self, ids: Ids, a: Ids, rule: Rule | None = None) -> None:
        """A random function of x or -x: in both fields the one whose first element is the smaller one."""
        own, state = self._parts(a), self.state[a]
        opposite = (self.moduli - own) % self.moduli
        self._set_random(ids, list(np.where(opposite[0] < own[0], opposite, own)), "abs")
        self.state[ids] = np.where(state == MINUS, PLUS, state)
        self.degree[:, ids] = np.maximum(self.degree[:, a], [[1], [0]])
        self.format[ids] = self.format[a]

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
        tag = np.array([self._union(one, other) for one, other in pairs.tolist()], np.uint64)[back.ravel()]
        opaque, degree = self.is_opaque[a] | self.is_opaque[b], np.maximum(self.degree[:, a], self.degree[:, b])
        # Where it is known which of them it is.
        known = [] if which else [(self._is_above(a, b), a), (self._is_above(b, a), b)]
        known += [(self.state[b] == least, a), (self.state[a] == least, b), (self.state[b] == most, b),
                  (self.state[a] == most, a), (self.same(a, b), a)]  # fmt: skip
        saved = [(chosen, self._saved(one[chosen])) for chosen, one in known if chosen.any()]
        format = self.format[ids]
        self._set_random(ids, [tag], f"extremum {which}")
        self.tags[which, ids] = tag
        for chosen, values in saved:
            self._restore(ids[chosen], values)
        self.is_opaque[ids], self.format[ids] = opaque, format
        self.degree[:, ids] = np.maximum(degree, [[1], [0]])

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
        zero, one = self._constants([0, 0x3F800000], "f32", 4)
        self._extremum(ids, ids.copy(), np.full(len(ids), zero), 0)
        if rule.saturates:
            self._extremum(ids, ids.copy(), np.full(len(ids), one), 1)
