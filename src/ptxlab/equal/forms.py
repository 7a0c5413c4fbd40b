"""Quadratic forms that are never negative: the maximum of such a number and 0 is the number.

A variance that is computed as Σx² - (Σx)²/n is such a form; kernels take its maximum with 0 because of rounding. A node
is expanded to a polynomial of inputs with exact coefficients, and decided by elimination, as of a symmetric matrix.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ptxlab.equal.constants import exact, floats_of
from ptxlab.equal.nodes import Nodes
from ptxlab.equal.rules import format_of, rule_of

MOST_VARIABLES = 64
Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients by the inputs of each term; () is the constant."""


class Forms:
    """What is known of the nodes of a comparison."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._known: dict[int, Polynomial | None] = {}

    def is_never_negative(self, node: int) -> bool:
        """Whether a node is a polynomial of degree 2 that no input makes negative."""
        form = self._expanded(node)
        if form is None:
            return False
        names = sorted({one for term in form for one in term})
        place = {name: index + 1 for index, name in enumerate(names)}
        size = len(names) + 1
        matrix = [[Fraction(0)] * size for _ in range(size)]
        for term, number in form.items():
            row, column = [0] * (2 - len(term)) + [place[one] for one in term]
            matrix[row][column] += number / 2
            matrix[column][row] += number / 2
        return _is_semidefinite(matrix)

    def _expanded(self, node: int) -> Polynomial | None:
        """A node as a polynomial; None if it is not one, or too large."""
        stack = [node]
        while stack:
            at = stack[-1]
            given = [] if self._is_leaf(at) else [one for one in self._nodes.operands[:, at].tolist() if one >= 0]
            if self._nodes.kind(at).kind == "row":
                return None
            open = [one for one in given if one not in self._known]
            if at in self._known or not open:
                stack.pop()
                if at not in self._known:
                    self._known[at] = self._made(at, [self._known[one] for one in given])
                if self._known[at] is None:
                    return None
            else:
                stack += open
        return self._known[node]

    def _is_leaf(self, node: int) -> bool:
        return self._nodes.kind(node).kind in ("input", "constant")

    def _made(self, node: int, given: list[Polynomial | None]) -> Polynomial | None:
        kind = self._nodes.kind(node)
        rule = rule_of(kind)
        if kind.kind == "input":
            return {(node,): Fraction(1)}
        if kind.kind == "constant":
            format = format_of(kind.type, kind.width)
            number = (
                floats_of(self._nodes.operands[0, node : node + 1].view(np.uint64), format)[0] if format else np.nan
            )
            found = exact(float(number), format)
            return None if found is None else {(): found} if found else {}
        known = [one for one in given if one is not None]
        match rule.word:
            case _ if rule.relu or rule.saturates or len(known) < len(given):
                return None
            case "copy":
                return known[0]
            case "add":
                return _sum(known[0], known[1])
            case "sub":
                return _sum(known[0], known[1], -1)
            case "mul":
                return _product(known[0], known[1])
            case "fma":
                product = _product(known[0], known[1])
                return None if product is None else _sum(product, known[2])
        return None


def _sum(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial | None:
    found = dict(a)
    for term, number in b.items():
        found[term] = found.get(term, Fraction(0)) + sign * number
    found = {term: number for term, number in found.items() if number}
    return found if len({one for term in found for one in term}) <= MOST_VARIABLES else None


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    found: Polynomial = {}
    for one, x in a.items():
        for other, y in b.items():
            term = tuple(sorted(one + other))
            if len(term) > 2:
                return None
            found[term] = found.get(term, Fraction(0)) + x * y
    return _sum({}, found)


def _is_semidefinite(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix has no negative eigenvalue: by elimination, from the diagonal."""
    left = list(range(len(matrix)))
    while left:
        pivot = next((i for i in left if matrix[i][i] > 0), None)
        if pivot is None:
            return not any(matrix[i][j] for i in left for j in left)
        left.remove(pivot)
        for i in left:
            factor = matrix[i][pivot] / matrix[pivot][pivot]
            if factor:
                for j in left:
                    matrix[i][j] -= factor * matrix[pivot][j]
    return True
