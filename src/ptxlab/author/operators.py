"""What Python's operators write: the one instruction that the types of the operands name, or a refusal.

Both sides have one type; a Python number takes the type of the other side, and so do untyped bits (`b32` beside `f32`).
Floats add, subtract and multiply by `.rn`: without it ptxas may fuse a product and a sum, and the result would depend
on its context. `/` on `f32` has no one instruction (`div.rn` is exact, `div.approx` fast), nor have `//` and
`%` on signed integers, where Python rounds down and PTX toward zero.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn, TypeVar

from ptxlab.author.constants import fits, float_bits, is_number
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.operand import Kind, Operand
from ptxlab.author.registers import Register, class_of
from ptxlab.author.trace import Trace, current
from ptxlab.isa import Type, opcode, type_named
from ptxlab.isa.operand import Expected

R = TypeVar("R", bound=Register)

_INTEGER = {"+": "add.{t}", "-": "sub.{t}", "*": "mul.lo.{t}", "//": "div.{t}", "%": "rem.{t}"}
_BY_POWERS = {"//": "shr.{t}", "%": "and.b{w}"}  # unsigned: ptxas makes twenty instructions of a division by 128
_FLOAT = {"+": "add.rn.{t}", "-": "sub.rn.{t}", "*": "mul.rn.{t}"}
_BITS = {"&": "and.{b}", "|": "or.{b}", "^": "xor.{b}"}
_ARITHMETIC_WIDTHS = (16, 32, 64)
_RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_SIGNED_MATTERS = frozenset(("//", "%", *_RELATIONS.values()))  # where -1 and 0xffffffff are not the same


def binary(symbol: str, a: object, b: object, out: object = None) -> Any:
    """`a + b` and its like."""
    a, b = (side._made() if isinstance(side, Negation) else side for side in (a, b))
    cls = _common(symbol, a, b)
    text = _instruction(symbol, cls.type)
    trace = current(f"`{symbol}`")
    result = cls.fresh(trace) if out is None else out
    if symbol in _BY_POWERS and isinstance(b, int) and b > 0 and not b & (b - 1):
        return emit(_BY_POWERS[symbol].format(t=cls.type.name, w=cls.type.width), [a, _power(symbol, b)], out=result)
    return emit(text, _operands(cls, a, b), out=result)


def _power(symbol: str, number: int) -> int:
    """The operand for a power of two: how far to shift, or which bits are kept."""
    return number.bit_length() - 1 if symbol == "//" else number - 1


def _operands(cls: type[Any], a: Any, b: Any) -> list[Any]:
    """Both sides as operands. PTX has no constants of halves and of pairs: a number beside one gets a register."""
    if cls.type.kind != "f" or cls.type.name in ("f32", "f64"):
        return [a, b]
    return [cls(side) if is_number(side) else side for side in (a, b)]


def in_place(symbol: str, a: R, b: object) -> R:
    """`a += b` and its like: the result goes into the register of `a`."""
    result: R = binary(symbol, a, b, out=a)
    return result


def _instruction(symbol: str, type: Any) -> str:
    """The instruction that an operator is on a type."""
    bits = "pred" if type.kind == "p" else f"b{type.width}"
    if symbol in _BITS and (type.kind in "busp"):
        return _BITS[symbol].format(b=bits)
    if type.kind in "us" and type.lanes == 1 and type.width in _ARITHMETIC_WIDTHS and symbol in _INTEGER:
        if symbol in ("//", "%") and type.kind == "s":
            name = _INTEGER[symbol].format(t=type.name)
            _ambiguous(symbol, type, f"Python rounds down, `{name}` toward zero", [name])
        return _INTEGER[symbol].format(t=type.name)
    if type.kind == "f" and symbol in _FLOAT:
        return _FLOAT[symbol].format(t=type.name)
    if symbol == "/" and type.name == "f64":
        return "div.rn.f64"
    if symbol == "/" and type.name == "f32":
        _ambiguous(symbol, type, "one is exact, the others are fast", ["div.rn.f32", "div.full.f32", "div.approx.f32"])
    if symbol == "/" and type.kind in "us":
        _ambiguous(symbol, type, "integers have no exact quotient", [f"div.{type.name}", f"cvt.rn.f32.{type.name}"])
    if symbol == "/" and type.kind == "f":
        refuse("no-operator", f"no instruction divides `{type.name}`", helps=["convert to `f32`, divide, convert back"])
    if type.kind == "b" and symbol in _INTEGER:
        _ambiguous(
            symbol, type, "bits are not a number", [_INTEGER[symbol].format(t=f"{kind}{type.width}") for kind in "us"]
        )
    return refuse("no-operator", f"no instruction computes `{symbol}` on `{type.name}`")


def _ambiguous(symbol: str, type: Any, why: str, names: list[str]) -> NoReturn:
    said = " or ".join(f"`ptx.{name}`" for name in names)
    message = f"`{symbol}` on `{type.name}` could be several instructions: {why}"
    refuse("ambiguous-operator", message, helps=[f"write {said}"])


def _common(symbol: str, a: object, b: object) -> type[Any]:
    """The class of both sides."""
    sides = [side for side in (a, b) if isinstance(side, Register)]
    assert sides
    for side in (a, b):
        if not isinstance(side, Register):
            _check_number(symbol, side, sides[0].type)
    types = {type(side).type.name: type(side) for side in sides}
    typed = [cls for cls in types.values() if cls.type.kind != "b"] or list(types.values())
    if len(typed) > 1 or len({cls.type.width for cls in types.values()}) > 1:
        first, second = (side.type.name for side in sides)
        given, wanted = sorted((side.type for side in sides), key=lambda one: (one.kind == "f", one.width))
        refuse(
            "type-clash",
            f"`{symbol}` between `{first}` and `{second}` is not one instruction",
            helps=[
                f"`x.view({first})` reads the same bits as another type, `ptx.cvt` converts"
                if {first[0], second[0]} <= set("usb") and first[1:] == second[1:]
                else f"convert one of them: {conversion(wanted, given)}"
            ],
        )
    return typed[0]


def conversion(wanted: Type, given: Type) -> str:
    """What to write for a value of one type where another is wanted."""
    if given.kind == "p" and wanted.kind in "usf":
        return f"`ptx.selp.{wanted.name}(1, 0, p)`"
    if wanted.kind == "p":
        return "`x != 0`"
    if given.width == wanted.width and "b" in (given.kind, wanted.kind):
        return f"`ptx.mov.b{wanted.width}(x, out={wanted.name}())`, the same bits"
    for rounding in ("", ".rn", ".rzi"):
        text = f"cvt{rounding}.{wanted.name}.{given.name}"
        if any(candidate.violation is None for candidate in opcode(text).candidates):
            return f"`ptx.{text}(x)`"
    return "`ptx.cvt` has the forms"


def _check_number(symbol: str, number: object, type: Type) -> None:
    if not is_number(number):
        refuse(
            "not-an-operand",
            f"`{symbol}` between `{type.name}` and the Python value {number!r:.40}",
            helps=["a register or one number belongs here"],
        )
    if type.kind == "f":
        return
    if not hasattr(number, "__index__"):
        helps = [f"`int({number!r})` is a Python integer"]
        if type.kind in "us" and symbol != "=":
            helps.append(f"`ptx.cvt.rn.f32.{type.name}(x)` makes the register a float")
        refuse("type-clash", f"`{symbol}` between `{type.name}` and the float {number!r}", helps=helps)
    if not fits(operator.index(number), type):
        refuse("immediate-range", f"{number} does not fit into `{type.name}`")
    if symbol in _SIGNED_MATTERS and type.kind in "us":
        lowest = -(1 << type.width - 1) if type.kind == "s" else 0
        if not lowest <= operator.index(number) < lowest + (1 << type.width):
            side = "below" if operator.index(number) < lowest else "above"
            refuse("immediate-range", f"{number} is {side} every `{type.name}`")


def shift(symbol: str, a: object, count: Any, out: Any = None) -> Any:
    """`a << count`, `a >> count`; the result has the type of `a`, or of the count where `a` is a number."""
    if not isinstance(a, Register):
        if count.type.kind not in "us" or count.type.width != 32:
            refuse(
                "no-operator",
                f"no instruction computes `{a!r:.40} {symbol} {count.type.name}`",
                helps=[f"the count is a `u32`, and the number a register: `{count.type.name}({a!r:.40}) {symbol} n`"],
            )
        _check_number(symbol, a, count.type)
        return emit("shl.b32" if symbol == "<<" else f"shr.{count.type.name}", [a, count], out=type(count)())
    type_ = a.type
    if type_.kind not in "bus" or type_.lanes > 1 or type_.width not in _ARITHMETIC_WIDTHS:
        refuse("no-operator", f"no instruction computes `{symbol}` on `{type_.name}`")
    text = f"shl.b{type_.width}" if symbol == "<<" else f"shr.{type_.name}"
    return emit(text, [a, count], out=type(a)() if out is None else out)


def unary(symbol: str, a: Register) -> Any:
    """`-a`, `~a`, `abs(a)`."""
    type_ = a.type
    if symbol == "~" and type_.kind == "p":
        return Negation(a)
    if symbol == "~" and type_.kind in "bus":
        return emit(f"not.b{type_.width}", [a], out=type(a)())
    if symbol in ("-", "abs") and type_.kind in "sf":
        return emit(f"{'neg' if symbol == '-' else 'abs'}.{type_.name}", [a], out=type(a)())
    helps = [f"`0 - x`, or `-x.view(s{type_.width})`"] if symbol == "-" and type_.kind == "u" else []
    return refuse("no-operator", f"no instruction computes `{symbol}` on `{type_.name}`", helps=helps)


def refuse_operator(symbol: str, a: Register, *helps: str) -> NoReturn:
    """`a ** 2` and its like, which are several instructions."""
    refuse("no-operator", f"no instruction computes `{symbol}` on `{a.type.name}`", helps=helps)


def compare(relation: str, a: object, b: object) -> Any:
    """`a < b` and its like: a predicate. Floats compare as Python's do: a NaN equals nothing, itself included."""
    symbol = _RELATIONS[relation]
    cls = _common(symbol, a, b)
    type_ = cls.type
    if type_.kind == "b" and relation not in ("eq", "ne"):
        _ambiguous(symbol, type_, "bits are not a number", [f"setp.{relation}.{kind}{type_.width}" for kind in "us"])
    if type_.kind == "p":
        refuse("no-operator", f"no instruction computes `{symbol}` on predicates", helps=["use `^` and `~`"])
    if relation == "ne" and type_.kind == "f":
        relation = "neu"  # Python's `!=` holds for a NaN
    return emit(
        f"setp.{relation}.{type_.name}",
        _operands(cls, a, b),
        out=class_of(type_named("pred")).fresh(current(f"`{symbol}`")),
    )


def assign(register: Register, value: object) -> None:
    """Write a value of its own type, or a number, into a register."""
    type_ = register.type
    if isinstance(value, Register):
        _common("=", register, value)
        name = type_.name if type_.name in ("pred", "f32", "f64") else f"b{type_.width}"
        emit(f"mov.{name}", [value], out=register)
    elif isinstance(value, Negation):
        emit("mov.pred", [value], out=register)
    elif type_.kind == "p":
        emit("mov.pred", [int(bool(value))], out=register)
    else:
        _check_number("=", value, type_)
        _assign_number(register, value)


def _assign_number(register: Register, value: Any) -> None:
    type_ = register.type
    if type_.name in ("f32", "f64"):
        emit(f"mov.{type_.name}", [float(value)], out=register)
    elif type_.name in ("f16", "bf16"):
        emit("mov.b16", [float_bits(float(value), type_.name)], out=register)
    elif type_.name in ("f16x2", "bf16x2"):
        bits = float_bits(float(value), type_.name[:-2])
        emit("mov.b32", [bits | bits << 16], out=register)
    elif type_.name == "tf32":
        emit("mov.b32", [float_bits(float(value), "f32") & 0xFFFFE000], out=register)
    else:
        name = type_.name if type_.kind in "us" else f"b{type_.width}"
        emit(f"mov.{name}", [operator.index(value)], out=register)


class Negation(Operand):
    """`~p`: the opposite of a predicate. Where PTX writes `!p` or `@!p` it costs nothing, elsewhere a `not.pred`."""

    def __init__(self, value: Register) -> None:
        self.value = value

    @property
    def operand_kind(self) -> Kind:
        """A negated predicate."""
        return ("!", "pred")

    def print_operand(self, trace: Trace, expected: Expected) -> str:
        """The register after an exclamation mark."""
        return self.read(trace)

    def read(self, trace: Trace) -> str:
        """`!%p1`"""
        return f"!{self.value.read(trace)}"

    def __invert__(self) -> Register:
        return self.value

    def _made(self) -> Any:
        return emit("not.pred", [self.value])

    def __and__(self, other: object) -> Any:
        return binary("&", self._made(), other)

    def __or__(self, other: object) -> Any:
        return binary("|", self._made(), other)

    def __xor__(self, other: object) -> Any:
        return binary("^", self._made(), other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __bool__(self) -> bool:
        return bool(self.value)
