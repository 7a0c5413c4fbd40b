"""Operands as text."""

from __future__ import annotations

import math

from ptxlab.ir import (
    Address,
    Arguments,
    Element,
    Immediate,
    Minus,
    Negated,
    Operand,
    Pair,
    Selection,
    Sink,
    SpecialRegister,
    Sum,
    VariableReference,
    Vector,
    VectorElement,
)


def print_operand(operand: Operand) -> str:
    """An operand as text."""
    match operand:
        case Immediate():
            return print_immediate(operand)
        case Address():
            base = print_operand(operand.base)
            if operand.offset or operand.plus_zero:
                base += f"+{operand.offset}"
            inside = ", ".join([base, *map(print_operand, operand.arguments)])
            return f"[{inside}].unified" if operand.unified else f"[{inside}]"
        case Vector(elements=elements):
            return "{" + ", ".join(map(print_operand, elements)) + "}"
        case Arguments(elements=elements):
            return "(" + ", ".join(map(print_operand, elements)) + ")"
        case SpecialRegister(name=name, component=component):
            return name if component is None else f"{name}.{component}"
        case VariableReference(name=name, offset=offset):
            return f"{name}+{offset}" if offset else name
        case VectorElement(register=register, element=element):
            return f"{register.name}.{element}"
        case Selection(register=register, selector=selector):
            return f"{register.name}.{selector}"
        case Pair(first=first, second=second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(operand=inner):
            return f"!{print_operand(inner)}"
        case Minus(operand=inner):
            return f"-{print_operand(inner)}"
        case Element():
            if operand.register is None:
                return f"{print_operand(operand.base)}[{operand.index}]"
            return f"{print_operand(operand.base)}[{_with_offset(operand.register, operand.index)}]"
        case Sum(base=base, offset=offset):
            return f"{print_operand(base)}+{offset}"
        case Sink():
            return "_"
        case _:
            return operand.name


def _with_offset(base: Operand, offset: int) -> str:
    return f"{print_operand(base)}+{offset}" if offset else print_operand(base)


def print_immediate(value: Immediate) -> str:
    """A constant as text; reading it gives the same constant."""
    if value.kind == "f32":
        return f"0f{value.value:08X}"
    if value.kind == "f64":
        number = float(value.number)
        return repr(number) if value.base == 10 and math.isfinite(number) else f"0d{value.value:016X}"
    number_text = _digits(value.value, value.base)
    if value.kind == "u64":
        return number_text if value.value >= 1 << 63 else number_text + "U"
    # The magnitude of the smallest signed integer is an unsigned literal, and so would be its negation.
    return number_text if value.value != -(1 << 63) else "(.s64)0x8000000000000000"


def _digits(value: int, base: int) -> str:
    if base == 16:
        return f"{value:#x}"
    return f"{value:#b}" if base == 2 else str(value)
