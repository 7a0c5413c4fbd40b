"""Whether what a call passes, or where it wants a result, fits what the function declares, as ptxas has it.

Scalars fit as operands of instructions do, arrays with the same number of elements of one width. A vector register, and
a register of packed halves, is bits to ptxas: it fits whatever scalar or vector has as many.
"""

from ptxlab import ir
from ptxlab.isa.shape import register_fits
from ptxlab.isa.types import Type

_BITS_OF_CONSTANT = {"s64": 64, "u64": 64, "f64": 64, "f32": 32}


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
    """Whether this is a scalar that code for functions with a stack, all that ptxas makes today, has no place for."""
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
