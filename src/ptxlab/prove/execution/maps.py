"""Operands of copies by tensor maps: which map, and the coordinates of the box."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab import ir
from ptxlab.flow.expressions import ADDRESS, PARAMETER, Linear
from ptxlab.prove.terms.terms import leaves

MAP_BYTES = 128
WINDOW = "window"


def map_of(address: Linear) -> str:
    """The parameter that is a tensor map, or points to it, or has it at a byte; an empty name if that is not known."""
    bases = [atom for atom in leaves([address]) if atom.kind != WINDOW]
    if len(bases) != 1 or bases[0].kind not in (ADDRESS, PARAMETER):
        return ""
    (base,) = bases
    variable = base.detail[0] if isinstance(base.detail, tuple) else base.detail
    return at_byte(variable.title, address.constant) if isinstance(variable, ir.Variable) else ""


def at_byte(name: str, byte: int) -> str:
    """The name of what a parameter has at a byte."""
    return f"{name}+{byte}" if byte else name


def coordinates_of(operand: ir.Operand | None) -> Sequence[ir.Operand]:
    """The coordinates of the operand `[map, {...}]`; of others, none."""
    arguments = operand.arguments if isinstance(operand, ir.Address) else ()
    return [one for vector in arguments for one in (vector.elements if isinstance(vector, ir.Vector) else (vector,))]
