"""Values of expressions in finite fields: elements, and what else is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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


_OF_NODES = (
    "elements",
    "known",
    "state",
    "sign",
    "tags",
    "is_opaque",
    "degree",
    "compared",
    "root",
    "factor",
    "format",
)


class Values:
    """The values of nodes for one choice of random inputs.

    What has two lines has one for each field.
    """

    def __init__(self, nodes: Nodes, seed: int) -> None:
        self.nodes = nodes
        generator = np.random.default_rng(seed)
        self.primes = Primes.near(int(generator.integers(1 << 30, (1 << 31) - 1)))
        self.moduli = np.array([[self.primes.p], [self.primes.q]], np.uint64)
        self._salt = int(generator.integers(1, 1 << 63))
        self._log2e = [int(generator.integers(2, prime)) for prime in self.moduli[:, 0].tolist()]
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
        self.format = np.zeros(count, np.int8)
        self._roots: dict[tuple[int, ...], int] = {}
        self._under = np.zeros((2, 1), np.uint64)
        """What the roots are of."""
        self._formats = [""]
        self._forms = Forms(nodes)
        self._negative: set[Origin | None] = set()
        """Where there are numbers that may be negative."""
        self._assumed: dict[tuple[int, int], int] = {}
        """The states of comparisons that are assumed, by their elements."""

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
        return table[self.format[ids]]

    def _number(self, format: str) -> int:
        if format not in self._formats:
            self._formats.append(format)
        return self._formats.index(format)

    def _is_integer(self, ids: Ids) -> Flags:
        found: Flags = self.format[ids] == self._number(INTEGER)
        return found

    # What a value is set to.

    def _set(self, ids: Ids, values: Words, known: Any = True) -> None:
        """The elements of both fields, 0 where they are not known."""
        self.elements[:, ids] = np.where(known, values, np.uint64(0))
        self.known[:, ids] = known

    def _set_one(self, ids: Ids, which: int, values: Words) -> None:
        """Elements of one field; those of the other are not known."""
        self.elements[:, ids], self.known[:, ids] = 0, False
        self.elements[which, ids], self.known[which, ids] = values, True

    def _set_random(self, ids: Ids, words: Sequence[Words], text: str) -> None:
        """Random functions of words, one for each text; nothing else is known of them."""
        seed = self._salt ^ hash_text(text)
        self._set(ids, np.stack([scattered(words, seed), scattered(words, seed + 1)]) % self.moduli)
        self.state[ids], self.sign[ids], self.root[ids], self.compared[ids] = FINITE, 0, 0, -1
        self.tags[:, ids] = 0

    def _content(self, ids: Ids) -> list[Words]:
        """All that a value is, as words."""
        flags = self.known[0, ids] | self.known[1, ids] << 1 | self.state[ids].astype(np.int64) << 2
        return [*self._parts(ids), flags.astype(np.uint64)]

    def _parts(self, ids: Ids) -> Words:
        """The elements that are known, and 0 for others."""
        return np.where(self.known[:, ids], self.elements[:, ids], np.uint64(0))

    def _function(self, ids: Ids, given: Sequence[Ids], text: str) -> None:
        """A random function of operands."""
        self._set_random(ids, [word for one in given for word in self._content(one)], text)
        self.degree[0, ids] = np.maximum.reduce([self.degree[:, one].sum(0) for one in given])
        self.degree[:, ids] = np.maximum(self.degree[:, ids], 1) * [[1], [0]]

    def _opaque(self, ids: Ids, *given: Ids, chosen: Flags | None = None) -> None:
        """What there is no rule for: all nodes of one operation, or some of them."""
        if chosen is not None and not chosen.any():
            return
        if chosen is not None:
            ids, given = ids[chosen], tuple(one[chosen] for one in given)
        kind = self.nodes.kind(int(ids[0]))
        self._function(ids, given, f"{kind.kind} {kind.text} {kind.type}")
        self.is_opaque[ids] = True

    def _copy(self, ids: Ids, a: Ids, rule: Rule | None = None) -> None:
        format = self.format[ids]
        self._restore(ids, self._saved(a))
        self.format[ids] = format

    def _saved(self, ids: Ids) -> dict[str, Any]:
        return {name: getattr(self, name)[..., ids] for name in _OF_NODES}

    def _restore(self, ids: Ids, saved: Mapping[str, Any], chosen: Any = slice(None)) -> None:
        for name, values in saved.items():
            getattr(self, name)[..., ids] = values[..., chosen]

    def _spare(self, count: int) -> Ids:
        """Space for values that are not of nodes, until it is asked for again."""
        self._grow(self.nodes.count + count)
        return self.nodes.count + np.arange(count)

    def _grow(self, count: int = 0) -> None:
        """Have space for nodes that were added, or for more values."""
        more = max(count, self.nodes.count) - len(self.state)
        for name in _OF_NODES if more > 0 else ():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((*old.shape[:-1], more), old.dtype)], axis=-1))

    # Inputs and constants.

    def _constants(self, bits: Sequence[int], type: str, width: int) -> Ids:
        """New nodes of plain numbers, with their values."""
        ids = self.nodes.constants(np.array(bits, np.uint64), type, width)
        self._grow()
        self._constant(ids)
        return ids

    def _input(self, ids: Ids, rule: Rule) -> None:
        kind = self.nodes.kind(int(ids[0]))
        self._set_random(ids, [self.nodes.operands[0, ids].view(np.uint64)], kind.text)
        self.degree[0, ids] = 1
        # Bytes of open integers are not numbers yet: s8, u8 and e4m3 read others in them.
        self.format[ids] = self._number(format_of(kind.type, kind.width) or kind.type)

    def _constant(self, ids: Ids, rule: Rule | None = None) -> None:
        kind, bits = self.nodes.kind(int(ids[0])), self.nodes.operands[0, ids].view(np.uint64)
        self._set_random(ids, [bits], "")
        if kind.type == "pred":
            self.state[ids] = np.where(bits & np.uint64(1), TRUE, FALSE)
            self.elements[:, ids] = bits & np.uint64(1)
        elif format := format_of(kind.type, kind.width):
            numbers = floats_of(bits, format)
            wrong, plain = np.isnan(numbers), np.where(np.isfinite(numbers), numbers, 0.0)
            for half, prime in enumerate(self.moduli[:, 0].tolist()):
                self.elements[half, ids] = elements(plain, prime, self._log2e[half], format)
            self.sign[ids] = np.sign(np.where(wrong, 0.0, numbers))
            self.state[ids] = np.select([wrong, numbers == np.inf, numbers == -np.inf], [WRONG, PLUS, MINUS], FINITE)
            self.format[ids] = np.where(bits == 0, 0, self._number(format))


def scattered(words: Sequence[Words], seed: int) -> Words:
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
