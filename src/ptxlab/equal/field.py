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

from collections.abc import Mapping

import numpy as np

from ptxlab.equal.conditions import Conditions
from ptxlab.equal.nodes import Ids, Nodes, groups, needed
from ptxlab.equal.rules import Rule, format_of, rule_of
from ptxlab.equal.sums import CHUNK


class Field(Conditions):
    """The values of the nodes that some depend on."""

    def __init__(self, nodes: Nodes, roots: Ids, seed: int, assumed: Mapping[int, bool] | None = None) -> None:
        """`assumed` are comparisons, by their nodes, and how they come out."""
        super().__init__(nodes, seed)
        if assumed:
            self.assume(Field(nodes, np.array(list(assumed)), seed), assumed)
        for operation, ids in groups(nodes, needed(nodes, roots)):
            rule = rule_of(nodes.operations[operation])
            for start in range(0, len(ids), CHUNK):
                self._evaluate(rule, operation, ids[start : start + CHUNK])

    def _evaluate(self, rule: Rule, operation: int, ids: Ids) -> None:
        word, nodes = rule.word, self.nodes
        if word == "row":
            return
        if word in ("input", "constant"):
            getattr(self, f"_{word}")(ids, rule)
            return
        given = [one for one in nodes.operands[:, ids] if one[0] >= 0]
        if nodes.kind(int(given[0][0])).kind == "row" and word not in ("matmul", "bytes"):
            self._opaque(ids, *nodes.table(given[0]).T)
            return
        self._inherit(rule, ids, given)
        if word == "opaque":
            self._opaque(ids, *given)
            return
        fits = np.ones(len(ids), bool)
        for one, read in zip(given, rule.reads if word != "matmul" else (), strict=False):
            fits &= self._fits(one, read)
        getattr(self, "_" + _NAMES.get(word, word))(ids, *given, rule)
        self._opaque(ids, *given, chosen=~fits)
        if rule.relu or rule.saturates:
            self._clamp(rule, ids)

    def _inherit(self, rule: Rule, ids: Ids, given: list[Ids]) -> None:
        for one in given if rule.word not in ("matmul", "bytes") else ():
            self.is_opaque[ids] |= self.is_opaque[one]
        self.format[ids] = self._number(format_of(rule.format, 0)) if rule.format else 0
        if rule.word in ("select", "copy") and not format_of(rule.format, 0):
            self.format[ids] = self.format[given[-1]]

    def _bytes(self, ids: Ids, row: Ids, rule: Rule) -> None:
        """bf16 is the upper half of f32: with zeros below it is the same number; cut off, it is rounded."""
        table, brain, single = self.nodes.table(row), self._number("bf16"), self._number("f32")
        source = np.maximum(table[:, -1], 0)
        if rule.detail == "# # 0 1":
            usual = (table[:, :2] == -1).all(1) & (table[:, 2] == table[:, 3]) & (self.format[source] == brain)
        else:
            usual = (rule.detail == "2 3") & (table[:, 0] == source) & (self.format[source] == single)
        self._copy(ids[usual], source[usual])
        self.format[ids[usual]] = single if rule.detail == "# # 0 1" else brain
        if not usual.all():
            plain = self._constants(range(256), "b8", 1)
            own = np.where(table >= 0, table, plain[0] + (-1 - np.minimum(table, -1)))
            self._opaque(ids, *own.T, chosen=~usual)

    def _part(self, ids: Ids, a: Ids, rule: Rule) -> None:
        """A number of less than a byte: another for each byte, and each place in it."""
        self._function(ids, [a], f"part {rule.detail} {rule.format}")


_NAMES = dict.fromkeys(("<", "<=", "=="), "compare") | dict.fromkeys(("logic &", "logic |", "logic ^"), "logic")
