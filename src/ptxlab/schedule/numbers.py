"""Numbers in registers: which register a statement's number is in, and expressions of these."""

from __future__ import annotations

from functools import partial

from ptxlab.schedule.address import Value
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


def number(w: Writing, name: str) -> Value:
    """A parameter, or what a statement has made."""
    return w.values[name] if name in w.values else w.made[key_of(w, statement_of(w, name))]
