"""Expressions as numbers of float64: what a kernel computes without rounding, for given inputs.

What is done with bits is done with bits: a number is rounded to its format where an instruction takes it for an
integer, and where it is so large that the format has no fractions, as in `expf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.compute import computed, signed
from ptxlab.equal.constants import bits_of, floats_of
from ptxlab.equal.nodes import Ids, NodeOperation, Nodes, Words, groups, needed
from ptxlab.equal.rules import FLOATS, Rule, format_of, rule_of
from ptxlab.equal.sides import NamedArray, slices
from ptxlab.flow.steps import Step
from ptxlab.isa.types import Type

Numbers = npt.NDArray[np.float64]
_NO_FRACTIONS = 2.0**22  # f32 has half numbers from here on, and whole ones only from the double

_WORDS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "exp2": np.exp2,
    "log2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "max": np.fmax, "min": np.fmin,
    "fma": lambda a, b, c: a * b + c, "reciprocal": lambda a: 1 / a, "inverse_root": lambda a: 1 / np.sqrt(a),
    "copy": lambda a: a, "abs": np.abs, "<": np.less, "<=": np.less_equal, "==": np.equal, "not": lambda a: 1 - a,
}  # fmt: skip


class Reals:
    """The values of nodes for given inputs; NaN where nothing is known."""

    def __init__(self, nodes: Nodes, roots: Ids, inputs: Mapping[str, Numbers]) -> None:
        self.nodes, self._inputs = nodes, inputs
        self._values = np.full(nodes.count, np.nan)
        self._bits = np.zeros(nodes.count, np.uint64)
        self._is_bits = np.zeros(nodes.count, bool)
        """Of which nodes there are bits: constants, and what instructions make of bits."""
        with np.errstate(all="ignore"):
            for number, ids in groups(nodes, needed(nodes, roots)):
                operation = nodes.operations[number]
                self._evaluate(operation, rule_of(operation), ids)
            self.values = self._numbers(np.arange(nodes.count))
            """All of them."""

    def held_in(self, arrays: Sequence[NamedArray], ids: Ids) -> Numbers:
        """Nodes of all elements of arrays, as these hold them: floats, or the numbers that their bits are."""
        found = self.values[ids]
        for array, own in slices(arrays):
            if not array.format:
                words, known = self._words(ids[own])
                size = array.data.itemsize
                whole = words.view(np.uint8).reshape(-1, 8)[:, :size].copy().view(array.data.dtype)[:, 0]
                found[own] = np.where(known, whole.astype(np.float64), np.nan)
        return found

    def _evaluate(self, operation: NodeOperation, rule: Rule, ids: Ids) -> None:
        given = [one for one in self.nodes.operands[:, ids] if one[0] >= 0]
        match rule.word:
            case "row":
                return
            case "constant":
                self._set_bits(ids, self.nodes.operands[0, ids].view(np.uint64))
                return
            case "input":
                if operation.text in self._inputs:
                    self._values[ids] = self._inputs[operation.text][self.nodes.operands[0, ids]]
                return
        if self.nodes.kind(int(given[0][0])).kind == "row" and rule.word not in ("matmul", "bytes"):
            return
        match rule.word:
            case "matmul":
                one, other = (self._numbers(self.nodes.table(row)) for row in given[:2])
                total = (one * other).sum(-1) * (rule.detail or 1)
                self._values[ids] = total + (self._numbers(given[2]) if len(given) > 2 else 0)
            case "bytes":
                self._bytes(ids, self.nodes.table(given[0]), rule.detail)
            case "select":
                self._select(ids, given, operation.type)
            case word if word in _WORDS:
                reads = [*rule.reads, *[""] * 3]
                found = _WORDS[word](*(self._numbers(one, read) for one, read in zip(given, reads, strict=False)))
                large = (np.abs(found) >= _NO_FRACTIONS) & (rule.format == "f32")
                self._values[ids] = np.where(large, found.astype(np.float32), found)
            case _ if isinstance(operation.detail, Step):
                self._step(operation.detail, ids, given)
        if rule.relu or rule.saturates:
            self._values[ids] = np.clip(self._numbers(ids), 0, 1 if rule.saturates else None)
            self._is_bits[ids] = False

    def _set_bits(self, ids: Ids, words: Words) -> None:
        self._bits[ids], self._is_bits[ids] = words, True

    def _numbers(self, ids: Ids, read: str = "") -> Numbers:
        """Nodes as numbers, of the format that they are read as."""
        found = self._values[ids]
        for chosen, own in self._kinds(ids, self._is_bits[ids]):
            format = read if read in FLOATS else format_of(own.type, own.width)
            words = self._bits[ids[chosen]]
            found[chosen] = words if own.type == "pred" else floats_of(words, format) if format else np.nan
        return found

    def _words(self, ids: Ids) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Nodes as bits, and which of them are known."""
        found, known = self._bits[ids], self._is_bits[ids] | ~np.isnan(self._values[ids])
        for chosen, own in self._kinds(ids, ~self._is_bits[ids] & known):
            format, numbers = format_of(own.type, own.width), self._values[ids[chosen]]
            found[chosen] = numbers.astype(np.uint64) if own.type == "pred" or not format else bits_of(numbers, format)
        return found, known

    def _kinds(self, ids: Ids, chosen: npt.NDArray[np.bool_]) -> list[tuple[Any, NodeOperation]]:
        """Some of the nodes, by their operations."""
        numbers = self.nodes.operation_of[ids]
        return [(chosen & (numbers == one), self.nodes.operations[one]) for one in np.unique(numbers[chosen]).tolist()]

    def _step(self, step: Step, ids: Ids, given: list[Ids]) -> None:
        """What a step makes of bits: as integers, or as the function that the emulator has for it."""
        parts = [self._words(one) for one in given]
        known = np.logical_and.reduce([one for _, one in parts])
        ids, words = ids[known], [one[known] for one, _ in parts]
        found = computed(step, words)
        if found is None and step.operation == "call":
            function, how = step.detail
            columns = iter([signed(one, type).tolist() for one, type in zip(words, step.read_as, strict=True)])
            arguments = [next(columns) if isinstance(one, Type) else [one] * len(ids) for one in how]
            made = [int(function(*one)) for one in zip(*arguments, strict=True)]
            found = np.array([one & (1 << step.type.width) - 1 for one in made], np.uint64)
        if found is not None:
            self._set_bits(ids, found)

    def _bytes(self, ids: Ids, table: Ids, text: str) -> None:
        """Bytes of several nodes; bf16 and the f32 that it is the upper half of are the same number."""
        source = np.maximum(table[:, -1], 0)
        self._values[ids] = self._values[source] if text in ("# # 0 1", "2 3") else np.nan
        left = np.isnan(self._values[ids])
        found, known = np.zeros(len(ids), np.uint64), left
        for at, name in enumerate(text.split()):
            own, is_known = self._words(np.maximum(table[:, at], 0))
            byte = (-1 - table[:, at]).view(np.uint64) if name == "#" else own >> np.uint64(8 * int(name))
            found |= (byte & np.uint64(255)) << np.uint64(8 * at)
            known = known & (is_known | (name == "#"))
        self._set_bits(ids[known], found[known])

    def _select(self, ids: Ids, given: list[Ids], type: str) -> None:
        condition, a, b = given
        holds = self._numbers(condition)
        chosen = np.where(holds != 0, a, b)
        known = ~np.isnan(holds)
        if type in FLOATS:
            self._values[ids] = np.where(known, self._numbers(chosen), np.nan)
            return
        self._values[ids] = np.where(known, self._values[chosen], np.nan)
        self._bits[ids], self._is_bits[ids] = self._bits[chosen], self._is_bits[chosen] & known
