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
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.rules import Rule, format_of, rule_of
from ptxlab.equal.schedule import groups, needed
from ptxlab.equal.sums import CHUNK
from ptxlab.equal.values import hash_text


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
        given = [nodes.operands[n, ids] for n in range(3) if len(ids) and nodes.operands[n, ids[0]] >= 0]
        if word in ("input", "constant"):
            self._leaf(word, operation, ids)
            return
        kinds = [nodes.kind(int(one[0])).kind for one in given]
        if "row" in kinds and word not in ("matmul", "bytes"):
            self._opaque(operation, ids, [nodes.table(given[0])[:, n] for n in range(nodes.operands[1, given[0][0]])])
            return
        self._inherit(rule, ids, given)
        wrong = np.zeros(len(ids), bool)
        for one, read in zip(given, rule.reads, strict=False):
            if word != "matmul":
                wrong |= ~self._fits(one, read)
        if word == "opaque":
            self._opaque(operation, ids, given)
            return
        getattr(self, "_" + _NAMES.get(word, word))(ids, *given, rule)
        if wrong.any():
            self._opaque(operation, ids[wrong], [one[wrong] for one in given])
        if rule.relu or rule.saturates:
            self._clamp(rule, ids)

    def _inherit(self, rule: Rule, ids: Ids, given: list[Ids]) -> None:
        if rule.word != "matmul" and rule.word != "bytes":
            for one in given:
                self.is_opaque[ids] |= self.is_opaque[one]
        self._format[ids] = self._number(format_of(rule.format, 0)) if rule.format else 0
        if rule.word in ("select", "copy") and not format_of(rule.format, 0):
            self._format[ids] = self._format[given[-1]]

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
