"""Constants and constant expressions, folded while they are read.

PTX ISA 4.5: integers are 64 bits wide, signed or unsigned; floating point is double precision; operators and their
precedence are those of C.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Final

from ptxlab.ir import Immediate
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.errors import ParseError

DEPTH: Final = 100
_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63

_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_INTEGER: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_FLOAT: Final[dict[str, Callable[[float, float], float]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def integer_literal(text: str) -> Immediate | None:
    """The constant an integer literal means, or None where it needs more than 64 bits."""
    digits = text.removesuffix("U")
    prefix = digits[:2].lower()
    if prefix == "0x":
        value, base = _accumulate(digits[2:], 16), 16
    elif prefix == "0b":
        value, base = _accumulate(digits[2:], 2), 2
    elif digits[0] == "0":
        value, base = _accumulate(digits, 8), 10
    else:
        value, base = _accumulate(digits, 10), 10
    if value is None:
        return None
    return Immediate(value, "u64" if value >= _SIGN or digits is not text else "s64", base)


def _accumulate(digits: str, base: int) -> int | None:
    if len(digits) < 16:
        return int(digits, base)
    value = 0
    for digit in digits:
        product = value * base & _MASK
        # ptxas looks for an overflow like this, and so cuts some literals of more than 64 bits without a word.
        if product < value:
            return None
        value = product + int(digit, base) & _MASK
    return value


def float_literal(text: str) -> Immediate:
    """The constant a floating-point literal means."""
    prefix = text[:2].lower()
    if prefix == "0f":
        return Immediate(int(text[2:], 16), "f32", 16)
    if prefix == "0d":
        return Immediate(int(text[2:], 16), "f64", 16)
    return Immediate(double_bits(float(text)), "f64", 10)


def double_bits(value: float) -> int:
    """The bits of a double."""
    return int.from_bytes(struct.pack("<d", value), "little")


def wrap(value: int, kind: str, base: int = 10) -> Immediate:
    """An integer cut to 64 bits of a kind."""
    value &= _MASK
    return Immediate(value - (1 << 64) if kind == "s64" and value & _SIGN else value, kind, base)


def begins_constant(cursor: Cursor) -> bool:
    """Whether a constant expression can begin at this token."""
    return cursor.kind in ("integer", "float") or cursor.value in ("-", "+", "~", "!", "(", "WARP_SZ")


def read_constant(cursor: Cursor, depth: int = 0) -> Immediate:
    """Read a constant expression and fold it."""
    condition = _binary(cursor, 1, depth)
    if not cursor.at("?"):
        return condition
    offset = cursor.start
    _need_integer(condition, "?", offset)
    cursor.advance()
    yes = read_constant(cursor, _deeper(cursor, depth))
    cursor.expect(":", "between the two values of `?`")
    no = read_constant(cursor, _deeper(cursor, depth))
    # The manual allows floating-point values here; ptxas does not.
    _need_integer(yes, "?", offset)
    _need_integer(no, "?", offset)
    # Nor does it convert the two values to a common type, as the manual says: the chosen one stays what it is.
    return yes if condition.value else no


def read_small_integer(cursor: Cursor, what: str) -> int:
    """Read one integer literal of at most 32 bits, as directives take them."""
    start, end, text = cursor.start, cursor.end, cursor.value
    value = read_integer(cursor, what)
    if value >= 1 << 32:
        message = f"`{text}` does not fit into 32 bits"
        raise ParseError("constant-overflow", message, start, end, help="the largest integer here is `0xffffffff`")
    return value


def read_integer(cursor: Cursor, what: str) -> int:
    """Read one integer literal, which must be next."""
    if cursor.value == "WARP_SZ":
        cursor.advance()
        return 32
    if cursor.kind != "integer":
        cursor.expected(what)
    return _integer(cursor).value


def _integer(cursor: Cursor) -> Immediate:
    literal = integer_literal(cursor.value)
    if literal is None:
        raise ParseError(
            "constant-overflow",
            f"`{cursor.value}` does not fit into 64 bits",
            cursor.start,
            cursor.end,
            help="the largest integer constant is `0xffffffffffffffff`",
        )
    cursor.advance()
    return literal


def _binary(cursor: Cursor, lowest: int, depth: int) -> Immediate:
    left = _unary(cursor, depth)
    while (level := _PRECEDENCE.get(cursor.value, 0)) >= lowest and cursor.kind == "sign":
        if left.kind == "f32":
            # PTX ISA 4.5.2: a single-precision hex constant may not be used in an expression.
            cursor.expected("the end of the operand after a single-precision constant", help="use a `0d` constant")
        offset = cursor.start
        symbol = cursor.advance()
        right = _binary(cursor, level + 1, _deeper(cursor, depth))
        left = _apply(symbol, left, right, offset)
    return left


def _unary(cursor: Cursor, depth: int) -> Immediate:
    if cursor.kind == "integer":
        return _integer(cursor)
    if cursor.kind == "float":
        return float_literal(cursor.advance())
    if cursor.value == "WARP_SZ":
        cursor.advance()
        return Immediate(32)
    offset = cursor.start
    symbol = cursor.value
    if symbol == "(" and cursor.kind == "sign":
        return _parenthesis(cursor, _deeper(cursor, depth))
    if symbol not in ("-", "+", "~", "!") or cursor.kind != "sign":
        cursor.expected("a constant")
    cursor.advance()
    if cursor.kind == "float" and cursor.value[:2] in ("0f", "0F"):
        cursor.expected(f"an integer or double-precision constant after `{symbol}`", help="put the sign into its bits")
    operand = _unary(cursor, _deeper(cursor, depth))
    if symbol in "~!":
        _need_integer(operand, symbol, offset)
    if symbol == "+":
        return operand
    if symbol == "!":
        return Immediate(int(operand.value == 0))
    if symbol == "~":
        return wrap(~operand.value, "u64", operand.base)
    if operand.is_float:
        return Immediate(operand.value ^ _SIGN, "f64", operand.base)
    return wrap(-operand.value, operand.kind, operand.base)


def _parenthesis(cursor: Cursor, depth: int) -> Immediate:
    offset = cursor.start
    cursor.advance()
    if cursor.kind == "dotted" and cursor.value in (".s64", ".u64"):
        kind = cursor.advance()[1:]
        cursor.expect(")", "after the type of a cast")
        operand = _unary(cursor, depth)
        _need_integer(operand, f"(.{kind})", offset)
        return wrap(operand.value, kind, operand.base)
    inner = read_constant(cursor, depth)
    cursor.expect(")", "to close the `(` of the expression")
    return inner


def _apply(symbol: str, left: Immediate, right: Immediate, offset: int) -> Immediate:
    if symbol not in ("&&", "||", "<<", ">>", "%"):
        _need_same(left, right, symbol, offset)
    if left.is_float and symbol in _COMPARE:
        return Immediate(int(_COMPARE[symbol](left.number, right.number)))
    if left.is_float and symbol in _FLOAT:
        return Immediate(double_bits(_FLOAT[symbol](left.number, right.number)), "f64", left.base)
    if left.is_float and symbol == "/" and right.number != 0:
        return Immediate(double_bits(left.number / right.number), "f64", left.base)
    if symbol in "/%" and right.number == 0:
        raise ParseError(
            "division-by-zero",
            f"the constant expression divides by zero with `{symbol}`",
            offset,
            offset + 1,
            help="give the divisor a value that is not zero",
        )
    _need_integer(left, symbol, offset)
    _need_integer(right, symbol, offset)
    kind = _usual(left, right)
    first, second = wrap(left.value, kind).value, wrap(right.value, kind).value
    if symbol in _COMPARE:
        return Immediate(int(_COMPARE[symbol](first, second)))
    if symbol in _INTEGER:
        return wrap(_INTEGER[symbol](first, second), kind, left.base)
    if symbol == "&&":
        return Immediate(int(left.value != 0 and right.value != 0))
    if symbol == "||":
        return Immediate(int(left.value != 0 or right.value != 0))
    if symbol in ("<<", ">>"):
        count = right.value & 63  # as ptxas does; the manual leaves larger counts open
        shifted = left.value << count if symbol == "<<" else left.value >> count
        return wrap(shifted, left.kind, left.base)
    if symbol == "%":
        # The manual's table calls the result signed; ptxas takes it for unsigned.
        return wrap((left.value & _MASK) % (right.value & _MASK), "u64", left.base)
    quotient = abs(first) // abs(second)
    return wrap(-quotient if (first < 0) != (second < 0) else quotient, kind, left.base)


def _usual(left: Immediate, right: Immediate) -> str:
    return "u64" if "u64" in (left.kind, right.kind) else "s64"


def _need_integer(value: Immediate, symbol: str, offset: int) -> None:
    if value.is_float:
        raise ParseError(
            "constant-type-mismatch",
            f"`{symbol}` takes integer constants, and one is floating point",
            offset,
            offset + len(symbol),
            help="PTX has no cast between integer and floating-point constants: write the value itself",
        )


def _need_same(left: Immediate, right: Immediate, symbol: str, offset: int) -> None:
    if left.is_float != right.is_float:
        raise ParseError(
            "constant-type-mismatch",
            f"`{symbol}` takes two integers or two floating-point constants, not one of each",
            offset,
            offset + len(symbol),
            help="write both as integers (`2`) or both as floating point (`2.0`)",
        )


def _deeper(cursor: Cursor, depth: int) -> int:
    if depth >= DEPTH:
        raise ParseError(
            "nested-too-deeply",
            f"the constant expression is nested more than {DEPTH} levels deep",
            cursor.start,
            cursor.end,
            help="write the value of the expression instead",
        )
    return depth + 1
