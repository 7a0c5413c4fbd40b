"""Whether what a call passes, or where it wants a result, fits what the function declares, as ptxas has it.

Scalars fit as operands of instructions do, arrays with the same number of elements of one width. A vector register, and
a register of packed halves, is bits to ptxas: it fits whatever scalar or vector has as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa.shape import register_fits
from ptxlab.isa.types import Type

if TYPE_CHECKING:
    from .program import FunctionFacts

_BITS_OF_CONSTANT = {"s64": 64, "u64": 64, "f64": 64, "f32": 32}


class Passed(NamedTuple):
    """What a call passes for a parameter of `callee`, or where it wants a result of it."""

    callee: str
    formal: ir.Variable
    actual: ir.Operand
    is_result: bool


def passed_by(facts: FunctionFacts, call: ir.Instruction) -> Iterator[Passed]:
    """What a call passes and wants back, for each function that it names or prototype that it conforms to."""
    lists = [operand.elements for operand in call.operands if isinstance(operand, ir.Arguments)]
    has_results = bool(call.operands) and isinstance(call.operands[0], ir.Arguments)
    results = lists[0] if has_results else ()
    arguments = next(iter(lists[int(has_results) :]), ())
    for name, returns, parameters in _callees(facts, call):
        yield from (Passed(name, f, a, is_result=True) for f, a in zip(returns, results, strict=False))
        yield from (Passed(name, f, a, is_result=False) for f, a in zip(parameters, arguments, strict=False))


def _callees(facts: FunctionFacts, call: ir.Instruction) -> Iterator[tuple[str, list[ir.Variable], list[ir.Variable]]]:
    labels = facts.labels
    for operand in call.operands:
        found = labels.get(operand.name) if isinstance(operand, ir.LabelReference) else None
        if isinstance(operand, ir.FunctionReference):
            yield operand.name, operand.function.returns, operand.function.parameters
        elif isinstance(found, ir.CallPrototype):
            yield found.name, found.returns, found.parameters
        elif isinstance(found, ir.CallTargets):
            for named in found.targets:
                if isinstance(named, ir.FunctionReference):
                    yield named.name, named.function.returns, named.function.parameters


def fits(formal: ir.Variable, actual: ir.Operand, *, result: bool) -> bool:
    """Whether `actual` may be passed for the parameter `formal`, or take that `result`."""
    match actual:
        case ir.Unresolved():
            return True
        case ir.Sink():
            return result
        case ir.Immediate():
            return not result and _constant_fits(formal, actual)
        case ir.Register():
            return not formal.dimensions and _same_bits(formal, actual.type, actual.vector)
        case ir.VariableReference() if actual.variable.state_space.partition("::")[0] == "param":
            variable = actual.variable
            if formal.dimensions or variable.dimensions:
                return _same_array(formal, variable)
            return _same_bits(formal, variable.type, variable.vector)
    return False


def is_formal(function: ir.Function, variable: ir.Variable) -> bool:
    """Whether a variable is a parameter or result of `function` itself."""
    return any(variable is formal for formal in (*function.returns, *function.parameters))


def is_narrow(formal: ir.Variable) -> bool:
    """Whether this is a scalar that code with a stack cannot pass."""
    return formal.type.name in ("pred", "u8", "s8", "u16", "s16") and formal.vector == 1 and not formal.dimensions


def _same_bits(formal: ir.Variable, type: Type, vector: int) -> bool:
    if _is_bits(formal.type, formal.vector) or _is_bits(type, vector):  # ptxas takes a predicate for one of 32 bits too
        return formal.type.width * formal.vector == type.width * vector
    return register_fits(type, formal.type, loose=False)


def _same_array(formal: ir.Variable, variable: ir.Variable) -> bool:
    if not formal.dimensions or not variable.dimensions or _is_bits(formal.type, 1) or _is_bits(variable.type, 1):
        return False
    kinds = {formal.type.kind, variable.type.kind}
    return (
        formal.elements in (None, variable.elements)  # None: the open array at the end of the parameters
        and formal.type.width == variable.type.width
        and (len(kinds) == 1 or "b" in kinds)
    )


def _constant_fits(formal: ir.Variable, constant: ir.Immediate) -> bool:
    if formal.dimensions or formal.type.kind == "p":
        return False
    if _is_bits(formal.type, formal.vector):
        return formal.type.width * formal.vector == _BITS_OF_CONSTANT[constant.kind]
    return formal.type.kind == "b" or constant.is_float == (formal.type.kind == "f")


def _is_bits(type: Type, vector: int) -> bool:
    return vector > 1 or type.lanes > 1
