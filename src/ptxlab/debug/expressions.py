"""Expressions that a user asks a debugger for: those of C++, with registers, state spaces and arrays of PTX.

`As[ty][k]`, `*p`, `s.x`, `&A[3]`, `sum > 2.0f && tx == 3`, `*(float4 *) &As[0][0]`, `%r5 + 1`, `c[3, 5]`,
`shared.f32[%rd4 + 8]`. A text becomes a function of what a thread sees. Precedences are those of C++; the words `and`,
`or` and `not` have those of Python.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from ptxlab.debug.objects import (
    Memory,
    Object,
    Operand,
    Result,
    UnknownError,
    address_of,
    common,
    converted,
    dereference,
    element,
    load,
    member,
    resolve,
)
from ptxlab.debug.types import Type, array_of, named, pointer_to
from ptxlab.isa.types import TYPES
from ptxlab.trace.accesses import SPACES

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F']+[uUlL]*|0[bB][01']+[uUlL]*|"
    r"(?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfF]*)|"
    r"'(?P<character>\\?.)'|(?P<name>(?:::)?[A-Za-z_$][\w$]*(?:::~?[A-Za-z_$][\w$]*)*)|"
    r"(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||->|//|[-+*/%&|^~!<>=?:.,()\[\]@]))"
)
_REGISTER = re.compile(r"\s*(%[A-Za-z_$][\w$]*(?:\.[xyzw]\b)?)")
_BINARY: dict[str, int] = {
    "or": 1, "||": 1, "and": 2, "&&": 2, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8, "<=": 8, ">=": 8,
    "<<": 9, ">>": 9, "@": 10, "+": 11, "-": 11, "*": 12, "/": 12, "%": 12, "//": 12,
}  # fmt: skip
_NOT, _UNARY = 3, 13
_COMPARED = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le,
             ">=": operator.ge}  # fmt: skip
_BITS = {"|": operator.or_, "^": operator.xor, "&": operator.and_, "<<": operator.lshift, ">>": operator.rshift}
_NUMBERS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "nullptr": 0, "NULL": 0}
_WORDS = {"and", "or", "not", "const", "volatile", "sizeof"}
_CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
_ESCAPES = {"n": 10, "t": 9, "0": 0, "r": 13}
_MOST_DEEP = 100
_BOOL = named("bool")


class Names(Memory, Protocol):
    """What the names in an expression mean, to a thread."""

    def find(self, name: str) -> Operand:
        """A variable, an argument or a constant."""
        ...

    def register(self, name: str) -> Any:
        """A register."""
        ...

    def shaped(self, address: int, index: tuple[int, ...]) -> Object:
        """An element of the array that is at an address, by several indices."""
        ...


Evaluation = Callable[[Names], Operand]
KnownType = Callable[[str], Type | None]


@lru_cache(maxsize=512)
def compiled(text: str, known_type: KnownType = named) -> Evaluation:
    """The function that evaluates an expression; `UnknownError` where it cannot be read."""
    parser = _Parser(text, known_type)
    found = parser.expression(0)
    if parser.peek():
        raise parser.wrong()
    return found


def parse_type(text: str, known_type: KnownType = named) -> Type | None:
    """A type by its name; None where there is none."""
    parser = _Parser(text, known_type)
    found = parser.type()
    return None if parser.peek() else found


class _Parser:
    def __init__(self, text: str, known_type: KnownType) -> None:
        self.text = text
        self.known_type = known_type
        self.at = 0
        self.depth = 0

    def wrong(self, why: str = "") -> UnknownError:
        reason = f": {why}" if why else ": write it as in C++, registers as in PTX"
        return UnknownError(f"`{self.text}` cannot be read{reason}")

    # Words.

    def _match(self) -> re.Match[str] | None:
        found = _TOKEN.match(self.text, self.at)
        if found is None and self.text[self.at :].strip():
            raise self.wrong()
        return found

    def peek(self) -> str:
        """The next word; "" at the end."""
        found = self._match()
        return "" if found is None else found[0].strip()

    def take(self) -> re.Match[str]:
        """The next word, which is taken."""
        found = self._match()
        if found is None:
            raise self.wrong()
        self.at = found.end()
        return found

    def accept(self, *words: str) -> str:
        """The next word, taken, if it is one of some."""
        word = self.peek()
        if word and word in words:
            self.take()
            return word
        return ""

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.wrong(f"`{word}` is missing")

    # Expressions.

    def expression(self, least: int) -> Evaluation:
        """An expression of operators that bind at least so tightly."""
        self.depth += 1
        if self.depth > _MOST_DEEP:
            raise self.wrong("it is too deep")
        left = self._not() if self.peek() == "not" else self._unary()
        while (word := self.peek()) in _BINARY and _BINARY[word] >= least:
            self.take()
            left = _binary(word, left, self.expression(_BINARY[word] + 1))
        if least == 0 and self.accept("?"):
            first = self.expression(0)
            self.expect(":")
            left = _choice(left, first, self.expression(0))
        self.depth -= 1
        return left

    def _not(self) -> Evaluation:
        self.take()
        inner = self.expression(_NOT)
        return lambda names: Result(not load(inner(names), names).value, _BOOL)

    def _unary(self) -> Evaluation:
        register = _REGISTER.match(self.text, self.at)
        if register is not None:
            self.at = register.end()
            name = register[1]
            return self._postfix(lambda names: Result(names.register(name)))
        if self.accept("("):
            cast = self.type()
            if cast is not None and self.accept(")"):
                return _cast(cast, self._operand())
            inner = self.expression(0)
            self.expect(")")
            return self._postfix(inner)
        word = self.accept("-", "+", "~", "!", "*", "&", "sizeof")
        if word == "sizeof":
            return self._sizeof()
        return _UNARIES[word](self._operand()) if word else self._postfix(self._primary())

    def _operand(self) -> Evaluation:
        """What comes after a prefix."""
        return self.expression(_UNARY)

    def _sizeof(self) -> Evaluation:
        self.expect("(")
        type = self.type()
        inner = self.expression(0) if type is None else None
        self.expect(")")

        def size(names: Names) -> Operand:
            found = type if inner is None else _type_of(inner(names))
            if found is None:
                raise UnknownError("its size is not known")
            return Result(found.size)

        return size

    def _primary(self) -> Evaluation:
        found = self.take()
        if found["number"]:
            result = _number(found["number"])
            return lambda _: result
        if found["character"]:
            character = found["character"]
            value = _ESCAPES.get(character[1:], ord(character[-1])) if len(character) > 1 else ord(character)
            return lambda _: Result(value, named("char"))
        name = found["name"]
        if not name:
            raise self.wrong()
        if name in _CONSTANTS:
            return lambda _: Result(_CONSTANTS[name], _BOOL if isinstance(_CONSTANTS[name], bool) else None)
        if name in _CASTS:
            return self._named_cast()
        if self.peek() == "(":
            self.at = found.start()
            cast = self.type()
            if cast is None or not self.accept("("):
                raise UnknownError(f"`{name}` is not called: only variables, registers and arithmetic can be asked for")
            inner = self.expression(0)
            self.expect(")")
            return _cast(cast, inner)
        return self._memory(name) or (lambda names: names.find(name))

    def _named_cast(self) -> Evaluation:
        self.expect("<")
        type = self.type()
        if type is None:
            raise self.wrong("the type is not known")
        for word in (">", "("):
            self.expect(word)
        inner = self.expression(0)
        self.expect(")")
        return _cast(type, inner)

    def _memory(self, name: str) -> Evaluation | None:
        """`shared.f32[address]`, or `f32[address]` of a generic address."""
        start = self.at
        space = "generic"
        if name not in TYPES and self.peek() == ".":
            self.take()
            space, name = name, self.take()["name"] or ""
        if name not in TYPES or self.peek() != "[":
            self.at = start
            return None
        if space != "generic" and space not in SPACES:
            raise UnknownError(f"there is no state space `{space}`")
        index = self._indices()
        type = of_ptx(name)
        return lambda names: Object(type, space, int(load(index[0](names), names).value))

    def _postfix(self, inner: Evaluation) -> Evaluation:
        while word := self.peek():
            if word == "[":
                inner = _subscript(inner, self._indices())
            elif word in (".", "->"):
                self.take()
                name = self.take()["name"]
                if not name:
                    raise self.wrong()
                inner = _member(inner, name)
            else:
                break
        return inner

    def _indices(self) -> list[Evaluation]:
        self.expect("[")
        found = [self.expression(0)]
        while self.accept(","):
            found.append(self.expression(0))
        self.expect("]")
        return found

    def type(self) -> Type | None:
        """A type, if there is one: `float`, `const unsigned int *`, `@shared float *`, `float (*)[4]`."""
        start, space = self.at, "generic"
        if self.accept("@"):
            space = self.take()["name"] or ""
        words: list[str] = []
        found: Type | None = None
        while (match := self._match()) is not None and match["name"]:
            if match["name"] not in ("const", "volatile", "struct", "__restrict__"):
                longer = self.known_type(" ".join([*words, match["name"]]))
                if longer is None and (found is not None or match["name"] not in ("unsigned", "signed", "long")):
                    break
                words.append(match["name"])
                found = longer
            self.at = match.end()
        if found is None:
            self.at = start
            return None
        while self.accept("*"):
            found = pointer_to(found, space)
            self.accept("const")
        return found


def of_ptx(name: str) -> Type:
    """A type of PTX as one of C++."""
    type = TYPES[name]
    whole = {"f": "float", "s": "int", "u": "uint", "b": "uint"}.get(type.kind)
    names = {"float32": "float", "float64": "double", "float16": "__half"}
    signed = {8: "signed char", 16: "short", 32: "int", 64: "long long"}
    unsigned = {8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}
    if name == "bf16":
        found = named("__nv_bfloat16")
    elif whole == "float":
        found = named(names.get(f"float{type.width}", ""))
    else:
        found = named((signed if whole == "int" else unsigned).get(type.width, ""))
    byte = named("unsigned char")
    assert byte is not None
    return found or array_of(byte, [max(type.width // 8, 1)])


def _number(text: str) -> Result:
    """A number as it is written: without a suffix, whole numbers have any size."""
    digits = text.replace("'", "")
    if re.fullmatch(r"0[xXbB].*|\d+[uUlL]*", digits):
        plain = digits.rstrip("uUlL")
        suffix = digits[len(plain) :].lower()
        octal = re.fullmatch(r"0[0-7]+", plain)
        value = int(plain, 8) if octal else int(plain, 0)
        kind = ("unsigned " if "u" in suffix else "") + ("long long" if "l" in suffix else "int")
        return Result(value, named(kind)) if suffix else Result(value)
    plain = digits.rstrip("fFlL")
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", plain):
        raise UnknownError(f"`{text}` is not a number")
    return converted(float(plain), named("float" if digits[-1] in "fF" else "double"))


def _type_of(operand: Operand) -> Type | None:
    return operand.type


def _cast(type: Type, inner: Evaluation) -> Evaluation:
    def cast(names: Names) -> Operand:
        if type.kind == "structure":
            raise UnknownError(f"a value cannot be made a `{type}`; a pointer can point to one")
        found = load(inner(names), names)
        if type.kind == "pointer" and found.type is not None and found.type.kind == "pointer":
            kept = found.type.space if type.space == "generic" else type.space
            return Result(found.value, pointer_to(type.element, kept))
        return converted(found.value, type)

    return cast


def _choice(condition: Evaluation, first: Evaluation, second: Evaluation) -> Evaluation:
    return lambda names: (first if load(condition(names), names).value else second)(names)


def _member(inner: Evaluation, name: str) -> Evaluation:
    return lambda names: member(inner(names), name, names)


def _subscript(inner: Evaluation, indices: list[Evaluation]) -> Evaluation:
    def subscript(names: Names) -> Operand:
        found = inner(names)
        at = tuple(int(load(one(names), names).value) for one in indices)
        if isinstance(found, Object):
            found = resolve(found, names)
        if len(at) > 1 and found.type is not None and found.type.kind == "pointer":
            return names.shaped(int(load(found, names).value), at)
        for index in at:
            found = element(found, index, names)
        return found

    return subscript


def _negated(inner: Evaluation) -> Evaluation:
    def negated(names: Names) -> Operand:
        found = load(inner(names), names)
        return converted(-found.value, common(found, Result(0)))

    return negated


def _inverted(inner: Evaluation) -> Evaluation:
    def inverted(names: Names) -> Operand:
        found = load(inner(names), names)
        return converted(~int(found.value), common(found, Result(0)))

    return inverted


def _address(inner: Evaluation) -> Evaluation:
    def address(names: Names) -> Operand:
        found = inner(names)
        if isinstance(found, Result):
            raise UnknownError("a number or a register has no address")
        return address_of(resolve(found, names))

    return address


_UNARIES: dict[str, Callable[[Evaluation], Evaluation]] = {
    "-": _negated,
    "+": lambda inner: lambda names: load(inner(names), names),
    "~": _inverted,
    "!": lambda inner: lambda names: Result(not load(inner(names), names).value, _BOOL),
    "*": lambda inner: lambda names: dereference(inner(names), names),
    "&": _address,
}


def _binary(word: str, left: Evaluation, right: Evaluation) -> Evaluation:
    def binary(names: Names) -> Operand:
        if word in ("and", "&&", "or", "||"):
            first = bool(load(left(names), names).value)
            is_decided = first == (word in ("or", "||"))
            return Result(first if is_decided else bool(load(right(names), names).value), _BOOL)
        if word == "@":
            return _repeated(left(names), int(load(right(names), names).value))
        return _computed(word, load(left(names), names), load(right(names), names))

    return binary


def _repeated(first: Operand, count: int) -> Object:
    """`*A@8`: so many elements from one on."""
    if isinstance(first, Result) or first.data is not None or count < 1:
        raise UnknownError("`@` is between something in memory and a number of elements: `*A@8`")
    return Object(array_of(first.type, [count]), first.space, first.address)


def _computed(word: str, one: Result, other: Result) -> Result:
    pointers = [operand.type for operand in (one, other) if operand.type is not None and operand.type.kind == "pointer"]
    if pointers and word in ("+", "-"):
        return _moved(word, one, other)
    if word in _COMPARED:
        type = None if pointers else common(one, other)
        values = [converted(operand.value, type).value for operand in (one, other)]
        return Result(bool(_COMPARED[word](*values)), _BOOL)
    if word in _BITS:
        shifted = word in ("<<", ">>")
        if shifted and not 0 <= int(other.value) < 1024:
            raise UnknownError(f"a number cannot be shifted by {other.value}")
        type = common(one, Result(0)) if shifted else common(one, other)
        return converted(_BITS[word](_whole(one), _whole(other)), type)
    type = common(one, other)
    if word in _NUMBERS:
        return converted(_NUMBERS[word](one.value, other.value), type)
    return converted(_divided(word, one.value, other.value), type)


def _whole(operand: Result) -> int:
    if isinstance(operand.value, float):
        raise UnknownError(f"{operand.value} is not a whole number")
    return int(operand.value)


def _moved(word: str, one: Result, other: Result) -> Result:
    """A pointer some elements further, or how many are between two."""
    if one.type is None or one.type.kind != "pointer":
        one, other = other, one
    assert one.type is not None
    size = one.type.element.size or 1
    if other.type is not None and other.type.kind == "pointer":
        return Result((int(one.value) - int(other.value)) // size)
    return converted(int(one.value) + size * int(other.value) * (1 if word == "+" else -1), one.type)


def _divided(word: str, one: float, other: float) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        if word == "//" or word == "%":
            return one // other if word == "//" else one % other
        if not other:
            return float("nan") if not one else float("inf") * (1 if one > 0 else -1)
        return one / other
    if not other:
        raise UnknownError("division by zero")
    if word == "//":
        return one // other
    quotient = abs(int(one)) // abs(int(other)) * (1 if (one < 0) == (other < 0) else -1)  # towards zero, as C++ does
    return quotient if word == "/" else int(one) - quotient * int(other)
