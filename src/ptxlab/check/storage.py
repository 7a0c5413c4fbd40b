"""How many bytes variables take, and at multiples of what they start."""

from collections.abc import Sequence

from ptxlab import ir


def alignment_of(variable: ir.Variable) -> int:
    """The alignment that a variable's declaration promises."""
    return variable.align or max(1, variable.type.width * variable.vector // 8)


def parameter_alignment(parameter: ir.Variable) -> int:
    """The alignment of a parameter: one below that of its type counts as that of its type."""
    return max(alignment_of(parameter), parameter.type.width // 8)


def size_of(variable: ir.Variable) -> int | None:
    """The bytes of a variable; None for an array of open size."""
    return None if variable.elements is None else variable.elements * variable.type.width // 8


def parameter_bytes(parameters: Sequence[ir.Variable]) -> int:
    """The bytes that parameters take, each at its alignment."""
    total = 0
    for parameter in parameters:
        size = max(1, parameter.type.width // 8)
        align = parameter.align or size * parameter.vector
        total = -(-total // align) * align + size * (parameter.elements or 0)
    return total
