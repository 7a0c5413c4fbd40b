"""Declarations and initial values as text."""

from __future__ import annotations

from ptxlab.ir import (
    Attribute,
    Declaration,
    Field,
    Immediate,
    Initializer,
    InitializerList,
    MaskedConstant,
    Variable,
)
from ptxlab.syntax.print_operands import print_immediate

_WIDTH = 120


def print_declaration(declaration: Declaration, indent: str) -> str:
    """A declaration with its `;`; long initial values are broken into lines."""
    first = declaration.variables[0]
    linkage = f".{first.linkage} " if first.linkage else ""
    text = f"{linkage}{print_head(first)} "
    text += ", ".join(map(print_variable, declaration.variables)) + ";"
    if len(indent) + len(text) <= _WIDTH:
        return text
    return ("\n" + indent + "    ").join(_wrap(text, max(_WIDTH - len(indent) - 4, 40)))


def _wrap(text: str, width: int) -> list[str]:
    """The text in lines, broken after commas."""
    lines = [""]
    for part in text.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) + 3 > width:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] += f", {part}" if lines[-1] else part
    return lines


def print_head(variable: Variable) -> str:
    """What precedes the name: `.global .align 4 .f32`."""
    parts = [f".{variable.state_space}" if variable.bank is None else f".{variable.state_space}[{variable.bank}]"]
    if variable.attributes:
        parts.append(print_attributes(variable.attributes).rstrip())
    if variable.align is not None:
        parts.append(f".align {variable.align}")
    if variable.vector != 1:
        parts.append(f".v{variable.vector}")
    parts.append(f".{variable.type.name}")
    if variable.pointer is not None:
        parts.append(".ptr")
        if variable.pointer.state_space is not None:
            parts.append(f".{variable.pointer.state_space}")
        if variable.pointer.align is not None:
            parts.append(f".align {variable.pointer.align}")
    return " ".join(parts)


def print_attributes(attributes: tuple[Attribute, ...]) -> str:
    """`.attribute(.managed) ` with a space after it, or nothing."""
    if not attributes:
        return ""
    parts = []
    for attribute in attributes:
        arguments = f"({', '.join(map(str, attribute.arguments))})" if attribute.arguments else ""
        parts.append(f".{attribute.name}{arguments}")
    return f".attribute({', '.join(parts)}) "


def print_variable(variable: Variable) -> str:
    """The name with its extents and its initial value."""
    text = variable.name
    if variable.count is not None:
        text += f"<{variable.count}>"
    for extent in variable.dimensions:
        text += "[]" if extent is None else f"[{extent}]"
    if variable.initializer is not None:
        text += f" = {print_initializer(variable.initializer)}"
    return text


def print_initializer(value: Initializer) -> str:
    """An initial value as text."""
    if isinstance(value, InitializerList):
        return "{" + ", ".join(map(print_initializer, value.elements)) + "}"
    if isinstance(value, Immediate):
        return print_immediate(value)
    if isinstance(value, Field):
        return f"{value.name} = {value.value if isinstance(value.value, str) else print_immediate(value.value)}"
    if isinstance(value, MaskedConstant):
        return f"{value.mask:#x}({print_immediate(value.value)})"
    text = f"generic({value.name})" if value.generic else value.name
    if value.offset:
        text += f"+{value.offset}"
    return text if value.mask is None else f"{value.mask:#x}({text})"
