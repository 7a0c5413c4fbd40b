"""Expressions that a user asks a debugger for: those of C++, with registers, state spaces and arrays of PTX.

`As[ty][k]`, `*p`, `s.x`, `&A[3]`, `sum > 2.0f && tx == 3`, `*(float4 *) &As[0][0]`, `%r5 + 1`, `c[3, 5]`,
`shared.f32[%rd4 + 8]`. A text becomes a function of what a thread sees. Precedences are those of C++; the words `and`,
`or` and `not` have those of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ptxlab.debug.objects import (
    Object,
    Operand,
    Result,
    UnknownError,
    converted,
    load,
)
from ptxlab.debug.operations import (
    BOOL,
    UNARIES,
    Evaluation,
    Names,
    binary,
    cast_to,
    choice,
    member_of,
    subscript,
    type_of,
)
from ptxlab.debug.types import CudaType, array_of, named, pointer_to
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
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "nullptr": 0, "NULL": 0}
_WORDS = {"and", "or", "not", "const", "volatile", "sizeof"}
_CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
_ESCAPES = {"n": 10, "t": 9, "0": 0, "r": 13}
_MOST_DEEP = 100


KnownType = Callable[[str], CudaType | None]


@lru_cache(maxsize=512)
def compiled(text: str, known_type: KnownType = named) -> Evaluation:
    """The function that evaluates an expression; `UnknownError` where it cannot be read."""
    parser = _Parser(text, known_type)
    found = parser.expression(0)
    if parser.peek():
        raise parser.wrong()
    return found


def parse_type(text: str, known_type: KnownType = named) -> CudaType | None:
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
            left = binary(word, left, self.expression(_BINARY[word] + 1))
        if least == 0 and self.accept("?"):
            first = self.expression(0)
            self.expect(":")
            left = choice(left, first, self.expression(0))
        self.depth -= 1
        return left

    def _not(self) -> Evaluation:
        self.take()
        inner = self.expression(_NOT)
        return lambda names: Result(not load(inner(names), names).value, BOOL)

    def _unary(self) -> Evaluation:
        register = _REGISTER.match(self.text, self.at)
        if register is not None:
            self.at = register.end()
            name = register[1]
            return self._postfix(lambda names: Result(names.register(name)))
        if self.accept("("):
            cast = self.type()
            if cast is not None and self.accept(")"):
                return cast_to(cast, self._operand())
            inner = self.expression(0)
            self.expect(")")
            return self._postfix(inner)
        word = self.accept("-", "+", "~", "!", "*", "&", "sizeof")
        if word == "sizeof":
            return self._sizeof()
        return UNARIES[word](self._operand()) if word else self._postfix(self._primary())

    def _operand(self) -> Evaluation:
        """What comes after a prefix."""
        return self.expression(_UNARY)

    def _sizeof(self) -> Evaluation:
        self.expect("(")
        type = self.type()
        inner = self.expression(0) if type is None else None
        self.expect(")")

        def size(names: Names) -> Operand:
            found = type if inner is None else type_of(inner(names))
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
            return lambda _: Result(_CONSTANTS[name], BOOL if isinstance(_CONSTANTS[name], bool) else None)
        if name in _CASTS:
            return self._named_cast()
        if self.peek() == "(":
            self.at = found.start()
            cast = self.type()
            if cast is None or not self.accept("("):
                raise UnknownError(f"`{name}` is not called: only variables, registers and arithmetic can be asked for")
            inner = self.expression(0)
            self.expect(")")
            return cast_to(cast, inner)
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
        return cast_to(type, inner)

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
                inner = subscript(inner, self._indices())
            elif word in (".", "->"):
                self.take()
                name = self.take()["name"]
                if not name:
                    raise self.wrong()
                inner = member_of(inner, name)
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

    def type(self) -> CudaType | None:
        """A type, if there is one: `float`, `const unsigned int *`, `@shared float *`, `float (*)[4]`."""
        start, space = self.at, "generic"
        if self.accept("@"):
            space = self.take()["name"] or ""
        words: list[str] = []
        found: CudaType | None = None
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


def of_ptx(name: str) -> CudaType:
    """A type of PTX as one of C++; a packed one is an array of its elements."""
    type = TYPES[name]
    if type.lanes > 1:
        return array_of(of_ptx(name.rpartition("x")[0]), [type.lanes])
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
