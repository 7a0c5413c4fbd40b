"""The shape of each operand, as `isa` describes operands (see `ptxlab/isa/operand.py`)."""

from collections.abc import Callable
from typing import Any

from ptxlab import ir
from ptxlab.isa import Jump, Match
from ptxlab.isa.opcode import Mismatch
from ptxlab.isa.operand import Shape
from ptxlab.isa.special_registers import COMPONENTS, special_register


def shape_of(operand: ir.Operand) -> Shape:
    """The shape of an operand: what matters of it when a form is looked for."""
    return _SHAPES[operand.__class__](operand)


def match_of(instruction: ir.Instruction) -> Match | None:
    """The form of an instruction that has one, as all have that passed the checks; None for a call."""
    if instruction.opcode.jump is Jump.CALL:
        return None
    found = _matched(instruction)
    assert isinstance(found, Match), instruction.opcode.text
    return found


def has_form(instruction: ir.Instruction) -> bool:
    """Whether there is one for it, which is known only of what passed the checks."""
    return instruction.opcode.jump is Jump.CALL or isinstance(_matched(instruction), Match)


def _matched(instruction: ir.Instruction) -> Match | Mismatch:
    return instruction.opcode.match(tuple([_SHAPES[operand.__class__](operand) for operand in instruction.operands]))


def _register(register: ir.Register) -> Shape:
    name = register.type.name
    return name if register.vector == 1 else ("{", *[name] * register.vector)


_NOTHING: Shape = (":",)  # a part of a register that there is not: no operand takes it


def _element_of_vector(element: ir.VectorElement) -> Shape:
    if not isinstance(element.register, ir.Register):
        return "?"
    # ptxas lets `.z` of a vector of two pass, and crashes where that is read.
    return _NOTHING if element.position is None else (":", element.register.type.name)


def _selection(selection: ir.Selection) -> Shape:
    if not isinstance(selection.register, ir.Register):
        return "?"
    return (".", selection.register.type.name, selection.selector) if selection.register.vector == 1 else _NOTHING


def _immediate(immediate: ir.Immediate) -> Shape:
    return {"s64": "#int", "u64": "#int", "f64": "#float", "f32": "#f32"}[immediate.kind]


def _special_register(register: ir.SpecialRegister) -> Shape:
    found = special_register(register.name)
    if found is None:
        return "?"
    if register.component is not None:
        return found.shape if found.vector and register.component in COMPONENTS else _NOTHING
    return ("%{", *[found.shape] * found.vector) if found.vector else found.shape


def _variable(reference: ir.VariableReference) -> Shape:
    variable = reference.variable
    return f"&{variable.type.name if variable.type.kind == 'o' else variable.state_space}"


def _in_vector(operand: ir.Operand) -> Shape:
    """The shape of an element of a vector: for ptxas, a variable that is not an array is a register there."""
    if isinstance(operand, ir.VariableReference) and operand.variable.type.kind != "o":
        variable = operand.variable
        if not variable.dimensions and variable.vector == 1:
            return f"${variable.type.name}"
    shape = shape_of(operand)
    return shape[1] if shape[0] == ":" and len(shape) == 2 else shape


def _element(element: ir.Element) -> Shape:
    base = element.base
    if isinstance(base, ir.VariableReference) and not base.variable.dimensions:
        return ("[]", "scalar")
    if isinstance(element.register, ir.Register) and element.register.type.kind not in "bus":
        return ("[]", "index")
    return ("[]", "?" if isinstance(element.register, ir.Unresolved) else shape_of(base))


def _address(address: ir.Address) -> Shape:
    base = _in_brackets(address.base)
    if isinstance(base, tuple) and base[0] == "[]":
        base = base[1]
    if address.arguments and (address.offset or address.plus_zero):
        base = ("+", base)  # to ptxas, an offset beside coordinates is a syntax error
    return ("[", base, *[_in_brackets(part) for part in address.arguments])


def _in_brackets(operand: ir.Operand) -> Shape:
    """The shape of an operand in an address: there, an array of textures is not one of them."""
    if isinstance(operand, ir.VariableReference) and operand.variable.type.kind == "o" and operand.variable.dimensions:
        return f"&{operand.variable.type.name}[]"
    return shape_of(operand)


def _pair(pair: ir.Pair) -> Shape:
    return ("|", shape_of(pair.first), shape_of(pair.second))


_SHAPES: dict[type, Callable[[Any], Shape]] = {
    ir.Register: _register,
    ir.VectorElement: _element_of_vector,
    ir.Selection: _selection,
    ir.Immediate: _immediate,
    ir.SpecialRegister: _special_register,
    ir.VariableReference: _variable,
    ir.Element: _element,
    ir.Address: _address,
    ir.Pair: _pair,
    ir.FunctionReference: lambda _: "@function",
    ir.LabelReference: lambda _: "@label",
    ir.Unresolved: lambda _: "?",
    ir.Sink: lambda _: "_",
    ir.Vector: lambda vector: ("{", *[_in_vector(part) for part in vector.elements]),
    ir.Arguments: lambda arguments: ("(", *[shape_of(part) for part in arguments.elements]),
    ir.Negated: lambda negated: ("!", shape_of(negated.operand)),
    ir.Sum: lambda total: ("+", shape_of(total.base)),
    ir.Minus: lambda minus: ("-", shape_of(minus.operand)),
}


def unwritable(instruction: ir.Instruction, match: Match) -> list[str]:
    """The special registers and variables in a vector of results: ptxas accepts them, and nothing can write them."""
    found = []
    for expected, operand in zip(match.expected, instruction.operands, strict=False):
        for part in operand.elements if expected.role != "read" and isinstance(operand, ir.Vector) else ():
            if isinstance(part, ir.SpecialRegister):
                found.append(part.name if part.component is None else f"{part.name}.{part.component}")
            elif isinstance(part, ir.VariableReference):
                found.append(part.name)
    return found
