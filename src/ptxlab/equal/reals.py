"""Expressions as numbers of float64: what a kernel computes without rounding, for given inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.constants import floats_of
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.rules import BIAS, EXPONENT, Rule, format_of, is_constant, is_exponent, rule_of
from ptxlab.equal.schedule import groups, needed

Numbers = npt.NDArray[np.float64]


def _log2(x: Numbers) -> Numbers:
    found: Numbers = np.log2(x)
    return found


_WORDS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "exp2": np.exp2,
    "log2": _log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "max": np.fmax, "min": np.fmin,
    "fma": lambda a, b, c: a * b + c, "reciprocal": lambda a: 1 / a, "inverse_root": lambda a: 1 / np.sqrt(a),
    "copy": lambda a: a, "from_integer": lambda a: a, "abs": np.abs, "<": np.less, "<=": np.less_equal,
    "==": np.equal, "not": lambda a: 1 - a, "select": lambda c, a, b: np.where(c != 0, a, b),
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "&": lambda a, b: a * b, "|": np.maximum, "^": lambda a, b: np.abs(a - b),
}  # fmt: skip


class Reals:
    """The values of nodes for given inputs; NaN where nothing is known."""

    def __init__(self, nodes: Nodes, roots: Ids, inputs: Mapping[str, Numbers]) -> None:
        self.nodes = nodes
        self.values = np.full(nodes.count, np.nan)
        with np.errstate(all="ignore"):
            for operation, ids in groups(nodes, needed(nodes, roots)):
                self._evaluate(rule_of(nodes.operations[operation]), operation, ids, inputs)

    def _evaluate(self, rule: Rule, operation: int, ids: Ids, inputs: Mapping[str, Numbers]) -> None:
        nodes, kind = self.nodes, self.nodes.operations[operation]
        given = [nodes.operands[n, ids] for n in range(3)]
        match rule.word:
            case "row":
                return
            case "input":
                if kind.text in inputs:
                    self.values[ids] = inputs[kind.text][given[0]]
                return
            case "constant":
                format = format_of(kind.type, kind.width)
                bits = given[0].view(np.uint64)
                self.values[ids] = bits & np.uint64(1) if kind.type == "pred" else np.nan
                if format and kind.type != "pred":
                    self.values[ids] = floats_of(bits, format)
                return
            case "matmul":
                one, other = nodes.table(given[0]), nodes.table(given[1])
                total = (self.values[one] * self.values[other]).sum(-1) * (rule.detail or 1)
                self.values[ids] = total + (self.values[given[2]] if given[2][0] >= 0 else 0)
            case "bytes":
                table = nodes.table(given[0])
                if rule.detail in ("# # 0 1", "2 3"):
                    self.values[ids] = self.values[np.maximum(table[:, -1], 0)]
            case "shift":
                by_23, own = is_constant(nodes, given[1], 23), self.values[given[0]]
                if rule.detail == ">>":
                    self.values[ids] = np.where(by_23 & (own > 0), np.floor(np.log2(own)) + BIAS, np.nan)
                else:
                    usual = is_exponent(nodes, given[0], given[1])
                    found = np.exp2(own - np.where(usual, EXPONENT, BIAS))
                    self.values[ids] = np.where(usual | by_23 & self._is_whole(given[0]), found, np.nan)
            case "whole":
                bits = [nodes.operands[0, one] << 32 >> 32 for one in given]
                whole = [np.where(self._is_whole(one), self.values[one], np.nan) for one in given]
                a, b = (
                    np.where(is_constant(nodes, one), x, y) for one, x, y in zip(given[:2], bits, whole, strict=False)
                )
                self.values[ids] = a - b if rule.detail == "-" else a + b
            case word if word.startswith("logic"):
                self.values[ids] = self._logic(word[-1], rule.detail, given)
            case word if word in _WORDS:
                own = [self.values[one] for one in given if one[0] >= 0]
                if nodes.kind(int(given[0][0])).kind != "row":
                    self.values[ids] = _WORDS[word](*own)
        if rule.relu or rule.saturates:
            self.values[ids] = np.maximum(self.values[ids], 0)
        if rule.saturates:
            self.values[ids] = np.minimum(self.values[ids], 1)

    def _is_whole(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which are exponents of numbers, or sums of these and plain integers."""
        rules = [rule_of(one) for one in self.nodes.operations]
        known = np.array([rule.word == "whole" or (rule.word == "shift" and rule.detail == ">>") for rule in rules])
        found: npt.NDArray[np.bool_] = known[self.nodes.operation_of[ids]]
        return found

    def _logic(self, sign: str, width: int, given: list[Ids]) -> Numbers:
        a, b = self.values[given[0]], self.values[given[1]]
        if width == 1:
            found: Numbers = _LOGIC[sign](a, b)
            return found
        found = np.full(len(a), np.nan)
        top = np.uint64(1 << (width - 1))
        for one, other in ((given[0], given[1]), (given[1], given[0])):
            constant = is_constant(self.nodes, other)
            bits = self.nodes.operands[0, other].view(np.uint64)
            found = np.where(constant & (bits == top) & (sign == "^"), -self.values[one], found)
            found = np.where(constant & (bits == top - np.uint64(1)) & (sign == "&"), np.abs(self.values[one]), found)
        return found
