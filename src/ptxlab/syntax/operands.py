"""The careful reader of operands, token by token; what it reads from a text, `scope.py` remembers by that text."""

from __future__ import annotations

from collections.abc import Callable

from ptxlab.ir import (
    Address,
    Arguments,
    Element,
    Immediate,
    Minus,
    Negated,
    Operand,
    Pair,
    Register,
    Sum,
    Unresolved,
    VariableReference,
    Vector,
)
from ptxlab.syntax.constants import begins_constant, read_constant
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.scope import SINK, Complicated, Scope


def operand_of_text(text: str, scope: Scope) -> Operand:
    """The operand that a whole text means; raises `Complicated` where it is not exactly one."""
    try:
        cursor = Cursor(text, 0)
        operand = read_operand(cursor, scope)
    except ParseError as fault:
        raise Complicated from fault
    if cursor.kind != END or cursor.comments:
        raise Complicated
    return operand


def read_operands(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """Read operands up to the `;`, which stays."""
    if cursor.at(";"):
        return ()
    operands = [read_operand(cursor, scope)]
    while cursor.accept(","):
        operands.append(read_operand(cursor, scope))
    return tuple(operands)


def read_call_operands(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """Read `(results), function, (arguments), targets`, of which only the function must be there."""
    operands: list[Operand] = []
    if cursor.at("("):
        operands.append(_read_arguments(cursor, scope))
        cursor.expect(",", "after the results of the call")
    operands.append(scope.resolve(cursor.name("a function, or a register that holds the address of one")))
    if cursor.accept(","):
        if cursor.at("("):
            operands.append(_read_arguments(cursor, scope))
            if not cursor.accept(","):
                return tuple(operands)
        operands.append(scope.resolve(cursor.name("`(` and the arguments, or the name of a list of targets")))
    return tuple(operands)


def _read_arguments(cursor: Cursor, scope: Scope) -> Arguments:
    cursor.advance()
    if cursor.accept(")"):
        return Arguments(())
    return Arguments(_read_list(cursor, scope, ")", "the list of the call", _read_argument))


def _read_argument(cursor: Cursor, scope: Scope) -> Operand:
    before = cursor.start
    if cursor.kind == "name":
        cursor.advance()
        if cursor.at("+"):
            cursor.expected("`,` or `)` in the list of the call", help="a call passes whole variables: copy the part")
        cursor.move(before)
    return _read_single(cursor, scope)


def _read_list(
    cursor: Cursor, scope: Scope, closing: str, what: str, read: Callable[[Cursor, Scope], Operand]
) -> tuple[Operand, ...]:
    elements = [read(cursor, scope)]
    while cursor.accept(","):
        elements.append(read(cursor, scope))
    if not cursor.at(closing):
        cursor.expected(f"`,` or `{closing}` in {what}")
    cursor.advance()
    return tuple(elements)


def read_operand(cursor: Cursor, scope: Scope) -> Operand:
    """Read one operand, and the second result after `|` if there is one."""
    operand: Operand
    if cursor.kind == "sign" and cursor.value == "{":
        cursor.advance()
        operand = Vector(_read_list(cursor, scope, "}", "the vector", _read_single))
    elif cursor.kind == "sign" and cursor.value == "[":
        return _read_address(cursor, scope)
    else:
        operand = _read_single(cursor, scope)
    if cursor.at("|") and not isinstance(operand, Immediate):
        cursor.advance()
        return Pair(operand, _read_single(cursor, scope))
    return operand


def _read_single(cursor: Cursor, scope: Scope) -> Operand:
    if cursor.kind == "name" and cursor.value != "WARP_SZ":
        return _read_name(cursor, scope)
    if cursor.kind == "sink":
        cursor.advance()
        return SINK
    if cursor.kind == "sign" and cursor.value in ("!", "-"):
        before = cursor.start
        symbol = cursor.advance()
        if cursor.kind == "name" and cursor.value != "WARP_SZ":
            inner = _read_name(cursor, scope)
            return Negated(inner) if symbol == "!" else Minus(inner)
        cursor.move(before)
    if not begins_constant(cursor):
        cursor.expected("an operand", help="operands are registers, constants, names, `[addresses]` and `{vectors}`")
    return read_constant(cursor)


def _read_name(cursor: Cursor, scope: Scope) -> Operand:
    name = cursor.advance()
    if cursor.value[:1] == "." and cursor.kind in ("dotted", "float", "stray"):
        if not cursor.modifier():
            cursor.expected(f"a component such as `.x` after `{name}`")
        return scope.element(name, cursor.advance()[1:])
    base = scope.resolve(name)
    if cursor.at("["):
        return _read_element(cursor, scope, base, name)
    if cursor.at("+"):
        cursor.advance()
        offset = _read_offset(cursor)
        if isinstance(base, VariableReference):
            return VariableReference(name, base.variable, offset)
        return Sum(base, offset)
    return base


def _read_element(cursor: Cursor, scope: Scope, base: Operand, name: str) -> Operand:
    cursor.advance()
    array = base if isinstance(base, (VariableReference, Unresolved, Register)) else Unresolved(name)
    register: Register | VariableReference | Unresolved | None = None
    index = 0
    if cursor.kind == "name" and cursor.value != "WARP_SZ":
        inside = scope.resolve(cursor.value)
        # ptxas takes a variable there too, for its address.
        register = inside if isinstance(inside, (Register, VariableReference)) else Unresolved(cursor.value)
        cursor.advance()
        if cursor.accept("+"):
            index = _read_offset(cursor)
    else:
        index = _read_offset(cursor)
    cursor.expect("]", "to close the index")
    return Element(array, register, index)


def _read_address(cursor: Cursor, scope: Scope) -> Operand:
    cursor.advance()
    base: Operand
    offset = 0
    has_offset = False
    if cursor.kind == "name" and cursor.value != "WARP_SZ":
        name = cursor.advance()
        base = scope.resolve(name)
        has_offset = cursor.accept("+")
        if has_offset:
            offset = _read_offset(cursor)
    elif begins_constant(cursor):
        base = read_constant(cursor)
    else:
        cursor.expected("a register, a variable or a constant as the address")
    arguments: list[Operand] = []
    while not has_offset and cursor.accept(","):  # ptxas accepts no coordinates after an offset
        if cursor.kind != "name" and not cursor.at("{"):
            cursor.expected("a register, a variable or a `{vector}` after the `,` of the address")
        arguments.append(read_operand(cursor, scope))
    if not cursor.at("]"):
        hint = "add a negative number instead: `[base+-4]`" if cursor.at("-") else ""
        cursor.expected("`+`, `,` or `]` in the address", help=hint)
    cursor.advance()
    unified = cursor.at(".unified")
    if unified:
        cursor.advance()
    return Address(base, offset, tuple(arguments), unified, has_offset and offset == 0)


def _read_offset(cursor: Cursor) -> int:
    begin, end = cursor.start, cursor.end
    if not begins_constant(cursor):
        cursor.expected("a constant offset", help="PTX adds only constants in an address: add registers beforehand")
    offset = read_constant(cursor)
    if offset.is_float:
        raise ParseError(
            "constant-type-mismatch", "an offset must be an integer", begin, end, help="write it without `.`"
        )
    return offset.value
