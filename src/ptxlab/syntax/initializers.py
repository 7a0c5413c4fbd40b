"""Initial values of variables."""

from __future__ import annotations

import re

from ptxlab.ir import (
    Field,
    FunctionReference,
    Immediate,
    Initializer,
    InitializerList,
    MaskedConstant,
    SymbolAddress,
    VariableReference,
)
from ptxlab.syntax.constants import DEPTH, begins_constant, read_constant, read_integer
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.scope import Scope

_PLAIN = r"(?:-?[1-9]\d{0,17}+|0x[0-9a-f]{1,15}+|0)(?![\w.])"
_PLAIN_LIST = re.compile(rf"\{{\s*+({_PLAIN}\s*+(?:,\s*+{_PLAIN}\s*+)*+)\}}", re.ASCII)
_ASSIGNMENT = re.compile(r"\s*=(?!=)")
_small: dict[str, Immediate] = {}


def read_initializer(cursor: Cursor, scope: Scope, depth: int = 0) -> Initializer:
    """Read an initial value: a constant, an address, or a list of them in braces."""
    if cursor.at("{"):
        return _read_list(cursor, scope, depth)
    if cursor.at("generic"):
        return _read_symbol(cursor, scope)
    if cursor.kind == "name" and cursor.value != "WARP_SZ":
        return _read_symbol(cursor, scope)
    if not begins_constant(cursor):
        cursor.expected("an initial value")
    is_mask = cursor.kind == "integer" and cursor.text[cursor.end : cursor.end + 1] == "("
    if not is_mask:
        constant = read_constant(cursor)
        if not cursor.at("("):
            return constant
        mask = constant.value
    else:
        mask = read_integer(cursor, "a mask")
    cursor.advance()
    inside: Initializer
    if begins_constant(cursor):
        inside = MaskedConstant(mask, read_constant(cursor))
    else:
        symbol = _read_symbol(cursor, scope)
        inside = SymbolAddress(symbol.name, symbol.offset, symbol.generic, mask, symbol.resolved)
    cursor.expect(")", "after what the mask takes its byte from")
    return inside


def _read_list(cursor: Cursor, scope: Scope, depth: int) -> InitializerList:
    if depth >= DEPTH:
        raise ParseError(
            "nested-too-deeply",
            f"the initial value is nested more than {DEPTH} levels deep",
            cursor.start,
            cursor.end,
            help="an initial value has one pair of braces for each dimension of its array",
        )
    plain = _PLAIN_LIST.match(cursor.text, cursor.start)
    if plain is not None:
        cursor.end = plain.end()
        cursor.advance()
        return InitializerList(tuple([_plain(text) for text in plain[1].split(",")]))
    cursor.advance()
    elements: list[Initializer] = []
    while not cursor.at("}"):
        if elements:
            cursor.expect(",", "or `}` after the initial value")
        elements.append(_read_entry(cursor, scope, depth + 1))
    cursor.advance()
    return InitializerList(tuple(elements))


def _plain(text: str) -> Immediate:
    found = _small.get(text)
    if found is None:
        found = Immediate(int(text, 0), "s64", 16 if "x" in text else 10)
        if len(text) < 6:  # bytes come by the million, in a few spellings
            _small[text] = found
    return found


def _read_entry(cursor: Cursor, scope: Scope, depth: int) -> Initializer:
    if cursor.kind != "name" or _ASSIGNMENT.match(cursor.text, cursor.end) is None:
        return read_initializer(cursor, scope, depth)
    name = cursor.advance()
    cursor.advance()
    if cursor.kind == "name":
        return Field(name, cursor.advance())
    return Field(name, read_constant(cursor))


def _read_symbol(cursor: Cursor, scope: Scope) -> SymbolAddress:
    generic = cursor.at("generic")
    if generic:
        cursor.advance()
        cursor.expect("(", "after `generic`")
    name = cursor.name("the name of a variable or function")
    if generic:
        cursor.expect(")", "after the name")
    offset = 0
    if cursor.accept("+"):
        offset = read_constant(cursor).value
    known = isinstance(scope.resolve(name), (VariableReference, FunctionReference))
    return SymbolAddress(name, offset, generic, None, known)
