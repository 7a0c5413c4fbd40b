"""The algorithm as one thread computes it: what a loop over a sum needs of each iteration, it computes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ptxlab.schedule.statements import Algorithm, Applied, Expression, Let, Name, Statement


def plain_algorithm(algorithm: Algorithm) -> Algorithm:
    """The same without numbers for each iteration of a sum, and with sums in the innermost loops."""
    reduced = algorithm.reduced
    lets = {s.name: s.value for s in algorithm.statements if isinstance(s, Let) and reduced & set(s.axes)}
    statements = [_inlined(one, lets) for one in algorithm.statements if getattr(one, "name", "") not in lets]
    axes = {axis: algorithm.axes[axis] for axis in sorted(algorithm.axes, key=lambda axis: axis in reduced)}
    return replace(algorithm, statements=tuple(statements), axes=axes)


def _inlined(one: Statement, lets: Mapping[str, Expression]) -> Statement:
    def of(value: Expression) -> Expression:
        match value:
            case Name(name) if name in lets:
                return of(lets[name])
            case Applied(name, operands):
                return Applied(name, tuple(map(of, operands)))
        return value

    changed: dict[str, Any] = {"value": of(one.value)}
    if (condition := getattr(one, "condition", None)) is not None:
        changed["condition"] = of(condition)
    return replace(one, **changed)
