"""Values of expressions in finite fields: elements, and what else is known of them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.constants import elements, floats_of
from ptxlab.equal.forms import Forms
from ptxlab.equal.nodes import Ids, Nodes, Origin, Words
from ptxlab.equal.primes import Primes
from ptxlab.equal.rules import Rule, format_of, reads_as

FINITE, PLUS, MINUS, WRONG, TRUE, FALSE = range(6)
INTEGER = "integer"
"""In place of a format: of exponents, and of sums of them and plain integers."""
UNKNOWN = 2  # in place of a sign
Flags = npt.NDArray[np.bool_]


class Values:
    """The values of nodes for one choice of random inputs."""

    def __init__(self, nodes: Nodes, seed: int) -> None:
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
        """Of a maximum or minimum, the sum of the words of its operands."""
        self._operands: dict[int, frozenset[int]] = {}
        """Which words these are."""
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
        self._forms = Forms(nodes)
        self._negative: set[Origin | None] = set()
        """Where there are numbers that may be negative."""
        self._assumed: dict[tuple[int, int], int] = {}
        """The states of comparisons that are assumed, by their elements."""
        self._format = np.zeros(count, np.int8)

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

    def _is_zero(self, ids: Ids) -> Flags:
        """Which are zero, whatever the inputs are."""
        found: Flags = ((self.elements[:, ids] == 0) & self.known[:, ids]).any(0) & (self.state[ids] == FINITE)
        return found

    def _fits(self, ids: Ids, read: str) -> Flags:
        table = np.array([reads_as(own, read) for own in self._formats])
        return table[self._format[ids]]

    def _number(self, format: str) -> int:
        if format not in self._formats:
            self._formats.append(format)
        return self._formats.index(format)

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

    def _copy(self, ids: Ids, a: Ids, rule: Rule | None = None) -> None:
        for array in (self.elements, self.known, self.tags, self.degree, self.factor):
            array[:, ids] = array[:, a]
        for flat in (self.state, self.sign, self.is_opaque, self.compared, self.root):
            flat[ids] = flat[a]

    def _values(self, ids: Ids) -> list[Any]:
        return [self.elements[:, ids], self.known[:, ids], self.tags[:, ids], self.state[ids], self.sign[ids]]

    def _restore(self, ids: Ids, values: list[Any], chosen: Flags) -> None:
        self.elements[:, ids], self.known[:, ids] = values[0][:, chosen], values[1][:, chosen]
        self.tags[:, ids], self.state[ids], self.sign[ids] = values[2][:, chosen], values[3][chosen], values[4][chosen]

    def _space(self, count: int) -> int:
        """Where there is space for values that are not of nodes."""
        first = self.nodes.count
        if len(self.state) < first + count:
            self._grow(first + count)
        return first

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

    def _leaf(self, word: str, operation: int, ids: Ids) -> None:
        nodes, kind = self.nodes, self.nodes.operations[operation]
        self.root[ids], self.tags[:, ids], self.compared[ids], self.is_opaque[ids] = 0, 0, -1, False
        if word == "input":
            at = nodes.operands[0, ids].view(np.uint64)
            seed = self._salt ^ hash_text(kind.text)
            self._random(ids, [at], seed)
            self.known[:, ids] = True
            self.degree[0, ids] = 1
            # Bytes of open integers are not numbers yet: s8, u8 and e4m3 read others in them.
            self._format[ids] = self._number(format_of(kind.type, kind.width) or kind.type)
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
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
