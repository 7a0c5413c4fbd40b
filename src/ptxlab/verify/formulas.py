"""Formulas of sizes, as launches and shapes have them: `ceil_div(n, 256)`, `rows * 4`, `min(m, 132)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

_LARGEST = 1 << 40
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}


class FormulaError(ValueError):
    """A formula that has no value; its text says why."""


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"`{text.strip()[:80]}` is not a formula") from None


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value of a formula.

    >>> evaluate("ceil_div(n, 256) * 2", {"n": 1000})
    8
    """
    if len(text) > 1000:
        raise FormulaError("a formula has 1,000 characters at most")
    try:
        return _value(_parsed(text), sizes, text)
    except ZeroDivisionError:
        raise FormulaError(f"`{text}`: division by zero") from None


def _value(node: ast.expr, sizes: Mapping[str, int], text: str) -> int:
    found = None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        found = node.value
    elif isinstance(node, ast.Name):
        if node.id not in sizes:
            raise FormulaError(f"`{text}`: there is no size `{node.id}`: expected one of {', '.join(sizes)}")
        found = sizes[node.id]
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        found = _OPERATORS[type(node.op)](_value(node.left, sizes, text), _value(node.right, sizes, text))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = -_value(node.operand, sizes, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        given = [_value(one, sizes, text) for one in node.args]
        if not given or node.keywords or (node.func.id == "ceil_div" and len(given) != 2):
            raise FormulaError(f"`{text}`: `{node.func.id}` takes two numbers")
        found = given[0] if len(given) == 1 else _FUNCTIONS[node.func.id](*given)
    if found is None:
        raise FormulaError(f"`{text}`: expected numbers, sizes, + - * // %, min, max and ceil_div")
    if abs(found) > _LARGEST:
        raise FormulaError(f"`{text}` is too large")
    return int(found)


def split(text: str) -> list[str]:
    """Parts between commas that are not in parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
