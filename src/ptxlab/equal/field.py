"""Expressions in place of numbers in finite fields: what is equal there for random inputs is equal up to rounding.

A value has an element `p` of one field and an element `q` of another; inputs are random in both, sums, products and
quotients are taken in both. The power 2^x is an element of `p` whose exponent is the `q` of x: so 2^a · 2^b = 2^(a+b).
It has no `q`; a logarithm has no `p`. What there is no rule for is a random function of its operands: then nothing is
known of it but that equal operands give equal results, and the answer "same" is still right.

- `max` and `min` do not depend on the order of operands, nor on how they are grouped; -inf changes no maximum.
- A choice `c ? a : b` is c·a + (1 - c)·b for some element c that depends on the condition; where the condition compares
  a with b it is their maximum or minimum.
- A power is positive, and so are sums and products of positive numbers.
- Values are finite and not NaN unless they are constants: -inf + x is -inf, 2^-inf is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.constants import elements, floats_of
from ptxlab.equal.nodes import Ids, Nodes, Words
from ptxlab.equal.primes import Primes, inverse
from ptxlab.equal.rules import EXPONENT, Rule, format_of, is_exponent, reads_as, rule_of
from ptxlab.equal.schedule import groups, needed

FINITE, PLUS, MINUS, WRONG, TRUE, FALSE = range(6)
UNKNOWN = 2  # in place of a sign
_CHUNK = 1 << 20
Flags = npt.NDArray[np.bool_]


class Field:
    """The values of nodes for one choice of random inputs."""

    def __init__(self, nodes: Nodes, roots: Ids, seed: int) -> None:
        self.nodes = nodes
        generator = np.random.default_rng(seed)
        self.primes = Primes.near(int(generator.integers(1 << 30, (1 << 31) - 1)))
        self.moduli = self.primes.p, self.primes.q
        self._salt = int(generator.integers(1, 1 << 63))
        self._log2e = [int(generator.integers(2, prime)) for prime in self.moduli]
        count = nodes.count
        self.elements = np.zeros((2, count), np.uint64)
        self.known = np.zeros((2, count), bool)
        self.state = np.zeros(count, np.int8)
        self.sign = np.zeros(count, np.int8)
        """The sign of numbers that are never zero, where it is known: constants, powers, sums of positive numbers."""
        self.tags = np.zeros((2, count), np.uint64)
        """Of a maximum or minimum, what its operands are."""
        self.is_opaque = np.zeros(count, bool)
        """Whether it depends on anything that there is no rule for."""
        self.degree = np.zeros((2, count), np.float32)
        """Of the numerator and the denominator."""
        self.compared = np.full(count, -1, np.int64)
        """The comparison that a condition is; the other way round if negative, counted from -2 down."""
        self.root = np.zeros(count, np.int32)
        """Of a multiple of a square root: which root, counted from 1, so that its square is known."""
        self.factor = np.zeros((2, count), np.uint64)
        """Of which multiple."""
        self._roots: dict[tuple[int, ...], int] = {}
        self._under = np.zeros((2, 1), np.uint64)
        """What the roots are of."""
        self._formats = [""]
        self._format = np.zeros(count, np.int8)
        for operation, ids in groups(nodes, needed(nodes, roots)):
            rule = rule_of(nodes.operations[operation])
            for start in range(0, len(ids), _CHUNK):
                self._evaluate(rule, operation, ids[start : start + _CHUNK])

    # Questions.

    def same(self, a: Ids, b: Ids) -> Flags:
        """Where two nodes have the same value."""
        both = self.known[:, a] & self.known[:, b]  # where one of them has only one element, that one counts
        equal = ((self.elements[:, a] == self.elements[:, b]) | ~both).all(0) & both.any(0)
        states = self.state[a], self.state[b]
        infinite = np.isin(states[0], (PLUS, MINUS))
        found: Flags = (states[0] == states[1]) & (infinite | equal & (states[0] != WRONG))
        return found

    def bound(self, ids: Ids) -> float:
        """The probability that nodes are equal here which are not the same function, at most."""
        return float(np.minimum((self.degree[0, ids] + self.degree[1, ids]).max(initial=0) / self.primes.q, 1.0))

    # Evaluation.

    def _evaluate(self, rule: Rule, operation: int, ids: Ids) -> None:
        word, nodes = rule.word, self.nodes
        if word == "row":
            return
        given = [nodes.operands[n, ids] for n in range(3) if len(ids) and nodes.operands[n, ids[0]] >= 0]
        if word in ("input", "constant"):
            self._leaf(word, operation, ids)
            return
        kinds = [nodes.kind(int(one[0])).kind for one in given]
        if "row" in kinds and word not in ("mma", "bytes"):
            self._opaque(operation, ids, [nodes.table(given[0])[:, n] for n in range(nodes.operands[1, given[0][0]])])
            return
        self._inherit(rule, ids, given)
        wrong = np.zeros(len(ids), bool)
        for one, read in zip(given, rule.reads, strict=False):
            if word != "mma":
                wrong |= ~self._fits(one, read)
        if word == "opaque":
            self._opaque(operation, ids, given)
            return
        getattr(self, "_" + _NAMES.get(word, word))(ids, *given, rule)
        if wrong.any():
            self._opaque(operation, ids[wrong], [one[wrong] for one in given])
        if rule.relu or rule.saturates:
            self._clamp(rule, ids)

    def _fits(self, ids: Ids, read: str) -> Flags:
        table = np.array([reads_as(own, read) for own in self._formats])
        return table[self._format[ids]]

    def _inherit(self, rule: Rule, ids: Ids, given: list[Ids]) -> None:
        if rule.word != "mma" and rule.word != "bytes":
            for one in given:
                self.is_opaque[ids] |= self.is_opaque[one]
        self._format[ids] = self._number(format_of(rule.format, 0)) if rule.format else 0
        if rule.word in ("select", "copy") and not format_of(rule.format, 0):
            self._format[ids] = self._format[given[-1]]

    def _number(self, format: str) -> int:
        if format not in self._formats:
            self._formats.append(format)
        return self._formats.index(format)

    def _leaf(self, word: str, operation: int, ids: Ids) -> None:
        nodes, kind = self.nodes, self.nodes.operations[operation]
        self.root[ids], self.tags[:, ids], self.compared[ids], self.is_opaque[ids] = 0, 0, -1, False
        if word == "input":
            at = nodes.operands[0, ids].view(np.uint64)
            seed = self._salt ^ hash_text(kind.text)
            self._random(ids, [at], seed)
            self.known[:, ids] = True
            self.degree[0, ids] = 1
            self._format[ids] = self._number(format_of(kind.type, kind.width))
            return
        bits = nodes.operands[0, ids].view(np.uint64)
        if kind.type == "pred":
            self.state[ids] = np.where(bits & np.uint64(1), TRUE, FALSE)
            self.known[:, ids] = True
            self.elements[:, ids] = bits & np.uint64(1)
            return
        format = format_of(kind.type, kind.width)
        if not format:
            self._random(ids, [bits], self._salt)
            self.known[:, ids] = True
            return
        numbers = floats_of(bits, format)
        finite = np.isfinite(numbers)
        for half, prime in enumerate(self.moduli):
            self.elements[half, ids] = elements(np.where(finite, numbers, 0.0), prime, self._log2e[half], format)
        self.known[:, ids] = True
        self.sign[ids] = np.sign(np.where(np.isnan(numbers), 0.0, numbers))
        self.state[ids] = np.where(
            finite, FINITE, np.where(np.isnan(numbers), WRONG, np.where(numbers > 0, PLUS, MINUS))
        )
        self._format[ids] = np.where(bits == 0, 0, self._number(format))

    def _random(self, ids: Ids, words: list[Words], seed: int) -> None:
        for half, prime in enumerate(self.moduli):
            self.elements[half, ids] = scattered(words, seed + half) % np.uint64(prime)

    def _content(self, ids: Ids) -> list[Words]:
        """All that a value is, as words."""
        parts = np.where(self.known[:, ids], self.elements[:, ids], np.uint64(0))
        flags = self.known[0, ids] | self.known[1, ids] << 1 | self.state[ids].astype(np.int64) << 2
        return [parts[0], parts[1], flags.astype(np.uint64)]

    def _opaque(self, operation: int, ids: Ids, given: list[Ids]) -> None:
        kind = self.nodes.operations[operation]
        self._function(ids, given, hash_text(f"{kind.kind} {kind.text} {kind.type}"))
        self.is_opaque[ids] = True

    def _function(self, ids: Ids, given: list[Ids], seed: int) -> None:
        """A random function of operands."""
        words = [word for one in given for word in self._content(one)]
        self._random(ids, words, self._salt ^ seed)
        self.known[:, ids] = True
        self.state[ids] = FINITE
        self.tags[:, ids] = 0
        self.compared[ids] = -1
        self.root[ids], self.sign[ids] = 0, 0
        self.degree[0, ids] = np.maximum.reduce([self.degree[0, one] + self.degree[1, one] for one in given])
        self.degree[0, ids] = np.maximum(self.degree[0, ids], 1)
        self.degree[1, ids] = 0

    def _set(self, ids: Ids, half: int, values: Words, known: Flags) -> None:
        self.elements[half, ids] = np.where(known, values, np.uint64(0))
        self.known[half, ids] = known

    # Sums and products.

    def _add(self, ids: Ids, a: Ids, b: Ids, rule: Rule) -> None:
        self._sum(ids, a, b, minus=rule.word == "sub")

    _sub = _add

    def _is_zero(self, ids: Ids) -> Flags:
        """Which are zero, whatever the inputs are."""
        found: Flags = ((self.elements[:, ids] == 0) & self.known[:, ids]).any(0) & (self.state[ids] == FINITE)
        return found

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

    def _mma(self, ids: Ids, a: Ids, b: Ids, *rest: Any) -> None:
        rule = rest[-1]
        c = rest[0] if len(rest) > 1 else None
        nodes = self.nodes
        rows, columns = nodes.table(a[:1]).shape[1], len(ids)
        for start in range(0, columns, max(1, _CHUNK // rows)):
            part = slice(start, start + max(1, _CHUNK // rows))
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

    def _space(self, count: int) -> int:
        """Where there is space for values that are not of nodes."""
        first = self.nodes.count
        if len(self.state) < first + count:
            self._grow(first + count)
        return first

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

    def _copy(self, ids: Ids, a: Ids, rule: Rule | None = None) -> None:
        for array in (self.elements, self.known, self.tags, self.degree, self.factor):
            array[:, ids] = array[:, a]
        for flat in (self.state, self.sign, self.is_opaque, self.compared, self.root):
            flat[ids] = flat[a]

    # Functions.

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
        """The bits of a number as the exponent of another, as in `expf`; otherwise it is opaque."""
        usual = is_exponent(self.nodes, a, b) & self.known[1, a]
        own = a[usual]
        exponent = (self.elements[1, own] + np.uint64(self.primes.q - int(EXPONENT))) % np.uint64(self.primes.q)
        self._set(ids[usual], 0, self.primes.power(exponent), np.ones(len(own), bool))
        self._set(ids[usual], 1, np.zeros(len(own), np.uint64), np.zeros(len(own), bool))
        self.sign[ids[usual]] = 1
        self.degree[0, ids[usual]] = np.maximum(self.degree[:, own].sum(0), 1)
        if not usual.all():
            left = ~usual
            self._opaque(int(self.nodes.operation_of[ids[0]]), ids[left], [a[left], b[left]])

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

    def _rsqrt(self, ids: Ids, a: Ids, rule: Rule) -> None:
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
        tag = tags[0] + tags[1]
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
        for chosen, value in (
            (self.state[b] == least, values[0]), (self.state[a] == least, values[1]),
            (self.state[b] == most, values[1]), (self.state[a] == most, values[0]), (same, values[0]),
        ):  # fmt: skip
            if chosen.any():
                self._restore(ids[chosen], value, chosen)

    def _values(self, ids: Ids) -> list[Any]:
        return [self.elements[:, ids], self.known[:, ids], self.tags[:, ids], self.state[ids], self.sign[ids]]

    def _restore(self, ids: Ids, values: list[Any], chosen: Flags) -> None:
        self.elements[:, ids], self.known[:, ids] = values[0][:, chosen], values[1][:, chosen]
        self.tags[:, ids], self.state[ids], self.sign[ids] = values[2][:, chosen], values[3][chosen], values[4][chosen]

    def _clamp(self, rule: Rule, ids: Ids) -> None:
        """`.relu` and `.sat`: a maximum with 0, a minimum with 1."""
        nodes = self.nodes
        limits = nodes.constants(np.array([0, 0x3F800000], np.uint64), "f32", 4)
        self._grow()
        self._leaf("constant", int(nodes.operation_of[limits[0]]), limits)
        self._extremum(ids, ids.copy(), np.full(len(ids), limits[0]), 0)
        if rule.saturates:
            self._extremum(ids, ids.copy(), np.full(len(ids), limits[1]), 1)

    def _grow(self, count: int = 0) -> None:
        """Have space for nodes that were added, or for more values."""
        more = max(count, self.nodes.count) - len(self.state)
        if more <= 0:
            return
        for name in (
            "elements",
            "known",
            "state",
            "sign",
            "tags",
            "is_opaque",
            "degree",
            "compared",
            "_format",
            "root",
            "factor",
        ):
            old = getattr(self, name)
            pad = np.zeros((*old.shape[:-1], more), old.dtype)
            setattr(self, name, np.concatenate([old, pad], axis=-1))

    # Conditions.

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
        for at in ends:
            state[at == WRONG] = FALSE
        self.state[ids] = state
        self.compared[ids] = ids
        if word == "<=":
            self._not(ids, ids.copy(), rule)
        self._settle(ids)

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
            constant = np.array([self.nodes.kind(int(n)).kind == "constant" for n in other])
            bits = self.nodes.operands[0, other].view(np.uint64)
            top = np.uint64(1 << (width - 1))
            is_float = self._format[one] != 0
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
        turns = np.array([self.nodes.kind(int(n)).detail.operation if n >= 0 and c != -1 else "" for n, c in
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

    # Bytes.

    def _bytes(self, ids: Ids, row: Ids, rule: Rule) -> None:
        """bf16 is the upper half of f32: with zeros below it is the same number; cut off, it is rounded."""
        table = self.nodes.table(row)
        text, operation = rule.detail, int(self.nodes.operation_of[ids[0]])
        count = table.shape[1]
        left = np.ones(len(ids), bool)
        brain, single = self._number("bf16"), self._number("f32")
        source = np.maximum(table[:, -1], 0)
        if text == "# # 0 1":
            chosen = (table[:, 0] == -1) & (table[:, 1] == -1) & (table[:, 2] == table[:, 3])
            chosen &= self._format[source] == brain
            result = single
        elif text == "2 3":
            chosen = (table[:, 0] == table[:, 1]) & (self._format[source] == single)
            result = brain
        else:
            chosen = np.zeros(len(ids), bool)
            result = 0
        self._copy(ids[chosen], source[chosen])
        self._format[ids[chosen]] = result
        left &= ~chosen
        if left.any():
            plain = self.nodes.constants(np.arange(256, dtype=np.uint64), "b8", 1)
            self._grow()
            self._leaf("constant", int(self.nodes.operation_of[plain[0]]), plain)
            own = np.where(table[left] >= 0, table[left], plain[0] + (-1 - np.minimum(table[left], -1)))
            self.is_opaque[ids[left]] = True
            self._opaque(operation, ids[left], [own[:, n] for n in range(count)])

    def _part(self, ids: Ids, a: Ids, rule: Rule) -> None:
        """A number of less than a byte: another for each byte, and each place in it."""
        self._function(ids, [a], hash_text(f"part {rule.detail} {rule.format}"))


_NAMES = {
    "<": "compare", "<=": "compare", "==": "compare", "logic &": "logic", "logic |": "logic", "logic ^": "logic",
}  # fmt: skip


def _joined(a: npt.NDArray[np.int8], b: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The state of a sum."""
    if not a.any() and not b.any():
        return a
    opposite = (a != FINITE) & (b != FINITE) & (a != b)
    found = np.where(a != FINITE, a, b)
    return np.where(opposite | (a == WRONG) | (b == WRONG), WRONG, found).astype(np.int8)


def scattered(words: list[Words], seed: int) -> Words:
    """Words of which each is a random function of others in its line."""
    found = np.full(len(words[0]), seed & (1 << 64) - 1, np.uint64)
    for word in words:
        found = (found ^ word) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(32)
    found *= np.uint64(0x94D049BB133111EB)
    return found ^ found >> np.uint64(31)


def hash_text(text: str) -> int:
    """A number for a text, the same in all processes."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
