"""Numbers in registers: which register a statement's number is in, and expressions of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from ptxlab.author.emit import emit
from ptxlab.schedule.address import Below, Value
from ptxlab.schedule.expressions import write_expression
from ptxlab.schedule.operands import element
from ptxlab.schedule.statements import Expression, Let, Reduce
from ptxlab.schedule.writing import Writing


def key_of(w: Writing, one: Let | Reduce) -> tuple[str, tuple[int, ...]]:
    """The register of a number, for the iterations of unrolled loops that are being written."""
    names = [name for name in w.state.serial(one.axes) if name in w.plan.unrolled]
    return one.name, tuple(w.addresses.numbers[name] for name in names)


def statement_of(w: Writing, name: str) -> Let | Reduce:
    """The statement that makes a number."""
    return next(s for s in w.algorithm.statements if isinstance(s, (Let, Reduce)) and s.name == name)


def expression(w: Writing, value: Expression) -> Value:
    """A register, a predicate, or a Python number."""
    return write_expression(value, w.addresses, partial(number, w), partial(element, w))


def each(w: Writing, loops: Sequence[str]) -> Iterator[int]:
    """Number the iterations of unrolled loops that are not being written, as if they were."""
    inner = [loop for loop in loops if loop not in w.addresses.numbers and loop in w.plan.unrolled]
    counts = [range(w.state.count(w.state.part(loop)) or 1) for loop in inner]
    for number, numbers in enumerate(product(*counts)):
        w.addresses.numbers.update(zip(inner, numbers, strict=True))
        yield number
        for loop in inner:
            del w.addresses.numbers[loop]


def holding(w: Writing, limits: Sequence[Below], condition: Expression | None) -> Value | None:
    """The predicate that all limits and a condition hold; None where there are none."""
    when = w.addresses.predicate(limits)
    if condition is None:
        return when
    holds = expression(w, condition)
    return holds if when is None else emit("and.pred", [when, holds])


def number(w: Writing, name: str) -> Value:
    """A parameter, or what a statement has made."""
    return w.values[name] if name in w.values else w.made[key_of(w, statement_of(w, name))]
