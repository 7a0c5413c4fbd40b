"""Host functions of C++ as Python: numbers, tensors that are made, `if`, `for`, and launches of kernels.

`functions(text)` has a text of Python for each of them. What C++ does in another way than Python is called by name, and
`inline` has it: `_launch`, `_cast`, `_div` and `_made`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import kwlist

_TOKEN = re.compile(
    r"""(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFuUlL]*|(?P<word>[A-Za-z_]\w*(?:::\w+)*)
    |(?P<text>"(?:[^"\\]|\\.)*")|(?P<space>\s+)
    |(?P<sign><<<|>>>|->|\+\+|--|&&|\|\||[-+*/%=!<>]=|[-+*/%=!<>&|^~?:;,.(){}\[\]])""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"(?:^|(?<=[;}\n]))[ \t]*((?:[\w:<>,&*]+[ \t\n]+)+[&*]*)(\w+)\s*\(([^(){};]*)\)\s*\{")
_CONSTANT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)|^(?:static )?(?:const|constexpr)\b[\w ]* (\w+) *= *([^;]+);",
    re.MULTILINE,
)
_RESERVED = frozenset(kwlist) - frozenset("if else for while return break continue class try and or not".split())
WHOLE = frozenset("int int64_t int32_t uint32_t uint64_t size_t long unsigned short bool uint std::size_t".split())
REAL = frozenset(("float", "double"))
_QUALIFIERS = frozenset("const constexpr static inline unsigned signed long struct".split())
_BYTES = {"float": 4, "double": 8, "int": 4, "half": 2, "__half": 2, "scalar_t": 4, "char": 1, "float4": 16}
_BINARY = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_WORDS = {"||": "or", "&&": "and", "true": "True", "false": "False", "nullptr": "None", "NULL": "None"}
_IGNORED = re.compile(r"(TORCH_|AT_|C10_|CHECK|CUDA_|cuda\w+$|std::(cout|cerr)|printf$|at::cuda::|c10::)")


class InlineError(Exception):
    """C++ that is not translated."""


def _name(word: str) -> str:
    """A name of C++ that is not one in Python, such as `in`, as another."""
    return f"{word}_" if word in _RESERVED else word


class _Tokens:
    """The words of a piece of C++."""

    def __init__(self, text: str, line: int) -> None:
        self.found: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise InlineError(f"line {line}: `{text[at : at + 20]}` is not translated")
            kind = match.lastgroup or ""
            if kind != "space":
                self.found.append((kind, _name(match[kind]), line))
            line += match[0].count("\n")
            at = match.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.found[self.at + ahead][1] if self.at + ahead < len(self.found) else ""

    def kind(self, ahead: int = 0) -> str:
        return self.found[self.at + ahead][0] if self.at + ahead < len(self.found) else ""

    def take(self, wanted: str = "") -> str:
        if (wanted and self.peek() != wanted) or self.at >= len(self.found):
            raise self.unknown(wanted)
        self.at += 1
        return self.found[self.at - 1][1]

    def takes(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def unknown(self, wanted: str = "") -> InlineError:
        line = self.found[min(self.at, len(self.found) - 1)][2]
        more = f", where `{wanted}` is expected" if wanted else ""
        return InlineError(f"line {line}: `{self.peek()}` is not translated{more}")


class _Translation:
    """One host function as lines of Python."""

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens
        self.lines: list[str] = []

    # Statements.

    def block(self, depth: int) -> None:
        """Statements up to the brace that ends them, or one statement."""
        before = len(self.lines)
        if self.tokens.takes("{"):
            while not self.tokens.takes("}"):
                self.statement(depth)
        else:
            self.statement(depth)
        if len(self.lines) == before:
            self.say(depth, "pass")

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int) -> None:
        tokens = self.tokens
        match tokens.peek():
            case ";":
                tokens.take()
            case "{":
                self.block(depth)
            case "return":
                tokens.take()
                self.say(depth, "return" if tokens.peek() == ";" else f"return {self.expression()}")
                tokens.take(";")
            case "throw":
                tokens.take()
                self.say(depth, f"raise RuntimeError({self.expression()!r})")
                tokens.take(";")
            case "if":
                self._if(depth)
            case "for":
                self._for(depth)
            case word if word.startswith("AT_DISPATCH"):
                while tokens.peek() != "{":
                    tokens.take()
                self.block(depth)
                while not tokens.takes(";"):
                    tokens.take()
            case word if _IGNORED.match(word) and tokens.peek(1) not in ("=", "."):
                while not tokens.takes(";"):
                    tokens.take()
            case _:
                self.simple(depth)
                tokens.take(";")

    def _if(self, depth: int) -> None:
        self.tokens.take("if")
        self.tokens.takes("constexpr")
        self.tokens.take("(")
        self.say(depth, f"if {self.expression()}:")
        self.tokens.take(")")
        self.block(depth + 1)
        if self.tokens.takes("else"):
            self.say(depth, "else:")
            self.block(depth + 1)

    def _for(self, depth: int) -> None:
        self.tokens.take("for")
        self.tokens.take("(")
        self.simple(depth)
        self.tokens.take(";")
        self.say(depth, f"while {self.expression()}:")
        self.tokens.take(";")
        inner = len(self.lines)
        self.simple(depth + 1)
        step = self.lines[inner:]
        del self.lines[inner:]
        self.tokens.take(")")
        self.block(depth + 1)
        self.lines += step

    def simple(self, depth: int) -> None:
        """A declaration, an assignment, or an expression."""
        tokens = self.tokens
        type = self._type()
        if type is None:
            self.say(depth, self._assignment())
            return
        if tokens.takes("["):  # auto [rows, columns] = …
            names = self._list("]")
            tokens.take("=")
            self.say(depth, f"{', '.join(names)} = {self.expression()}")
            return
        while True:
            name = tokens.take()
            if tokens.takes("="):
                self.say(depth, f"{name} = _cast({type!r}, {self.expression()})")
            elif tokens.peek() in ("(", "{"):
                end = {"(": ")", "{": "}"}[tokens.take()]
                self.say(depth, f"{name} = _made({type!r}, [{', '.join(self._list(end))}])")
            else:
                self.say(depth, f"{name} = _made({type!r}, [])")
            if not tokens.takes(","):
                return

    def _type(self) -> str | None:
        """The type of a declaration, if this is one."""
        tokens, start = self.tokens, self.tokens.at
        words: list[str] = []
        while tokens.kind() == "word" and (tokens.peek() in _QUALIFIERS or not words or words[-1] in _QUALIFIERS):
            words.append(tokens.take())
        if tokens.peek() == "<":
            self._template()
        while tokens.peek() in ("&", "*"):
            tokens.take()
        is_one = tokens.kind() == "word" and tokens.peek(1) in ("=", "(", "{", ";", ",")
        if not words or not (is_one or (words[-1] == "auto" and tokens.peek() == "[")):
            tokens.at = start
            return None
        return words[-1]

    def _assignment(self) -> str:
        target = self.expression()
        sign = self.tokens.peek()
        if sign in ("++", "--"):
            self.tokens.take()
            return f"{target} {sign[0]}= 1"
        if sign in ("=", "+=", "-=", "*=", "/="):
            if target.endswith(")"):  # an element of a tensor: torch computes
                raise self.tokens.unknown()
            self.tokens.take()
            value = self.expression()
            return f"{target} = _div({target}, {value})" if sign == "/=" else f"{target} {sign} {value}"
        return target

    # Expressions.

    def expression(self, least: int = 0) -> str:
        """Python for an expression."""
        tokens = self.tokens
        found = self._unary()
        while (priority := _BINARY.get(tokens.peek(), -1)) > least:
            sign = tokens.take()
            other = self.expression(priority)
            found = f"_div({found}, {other})" if sign == "/" else f"({found} {_WORDS.get(sign, sign)} {other})"
        if least == 0 and tokens.takes("?"):
            yes = self.expression()
            tokens.take(":")
            found = f"({yes} if {found} else {self.expression()})"
        return found

    def _unary(self) -> str:
        tokens = self.tokens
        sign = tokens.peek()
        if sign in ("++", "--"):
            tokens.take()
            return f"{self._unary()} {sign[0]}= 1"
        if sign in ("-", "+"):
            return f"({tokens.take()}{self._unary()})"
        if sign == "!":
            tokens.take()
            return f"(not {self._unary()})"
        if sign in ("&", "*"):
            tokens.take()
            return self._unary()
        if sign == "(" and tokens.kind(1) == "word" and self._is_cast():
            tokens.take()
            type = tokens.take()
            is_pointer = tokens.takes("*")
            tokens.take(")")
            return self._unary() if is_pointer else f"_cast({type!r}, {self._unary()})"
        return self._postfix(self._primary())

    def _is_cast(self) -> bool:
        """Whether a word in parentheses is a type: a value comes after it."""
        is_pointer = self.tokens.peek(2) == "*" and self.tokens.peek(3) == ")"
        is_closed = is_pointer or self.tokens.peek(2) == ")"
        is_known = self.tokens.peek(1) in WHOLE | REAL
        return is_closed and (is_known or is_pointer or self.tokens.kind(3) in ("word", "number"))

    def _primary(self) -> str:
        tokens = self.tokens
        kind, word = tokens.kind(), tokens.peek()
        if kind in ("number", "text"):
            return tokens.take()
        if word == "(":
            tokens.take()
            found = self.expression()
            tokens.take(")")
            return f"({found})"
        if word == "{":
            tokens.take()
            return f"[{', '.join(self._list('}'))}]"
        if kind != "word":
            raise tokens.unknown()
        tokens.take()
        if word == "sizeof":
            tokens.take("(")
            size = _BYTES.get(tokens.take())
            tokens.take(")")
            return str(size) if size else "_unknown_size"
        if word in ("static_cast", "reinterpret_cast", "const_cast"):
            type = self._template()
            tokens.take("(")
            found = self.expression()
            tokens.take(")")
            return f"_cast({type!r}, {found})"
        return _WORDS.get(word, word.replace("::", "."))

    def _postfix(self, found: str) -> str:
        tokens = self.tokens
        template = ""
        while True:
            if tokens.peek() in (".", "->"):
                tokens.take()
                tokens.takes("template")
                found += f".{tokens.take()}"
            elif tokens.peek() == "<" and self._ends_template():
                template = self._template()
            elif tokens.takes("<<<"):
                shape = self._list(">>>")
                tokens.take("(")
                arguments = ", ".join(self._list(")"))
                return f"_launch({found!r}, {template!r}, [{', '.join(shape)}], [{arguments}])"
            elif tokens.takes("("):
                found += f"({', '.join(self._list(')'))})"
            elif tokens.takes("["):
                found += f"[{self.expression()}]"
                tokens.take("]")
            else:
                return found

    def _ends_template(self) -> bool:
        """Whether `<` starts template arguments: then they end before a call or a launch."""
        ahead = 1
        while self.tokens.peek(ahead) not in (">", ";", "", "(", ")", "&&", "||"):
            ahead += 1
        return self.tokens.peek(ahead) == ">" and self.tokens.peek(ahead + 1) in ("(", "<<<")

    def _template(self) -> str:
        self.tokens.take("<")
        words = []
        while not self.tokens.takes(">"):
            words.append(self.tokens.take())
        return "".join(words)

    def _list(self, end: str) -> list[str]:
        found: list[str] = []
        while not self.tokens.takes(end):
            found.append(self.expression())
            if self.tokens.peek() != end:
                self.tokens.take(",")
        return found


def functions(source: str) -> Iterator[tuple[str, str]]:
    """The host functions of a source: their names, and each in Python."""
    text = _without_comments(source)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda one: "\n" * one[0].count("\n"), text, flags=re.MULTILINE)
    for match in _FUNCTION.finditer(text):
        if not re.search(r"__global__|__device__|\belse\b", match[1]) and match[2] not in ("if", "for", "while"):
            yield match[2], _function(text, match)


def constants(source: str) -> Iterator[tuple[str, str]]:
    """The constants of a source: their names, and the value of each in Python."""
    for one in _CONSTANT.finditer(_without_comments(source)):
        name, value = one[1] or one[3], (one[2] or one[4]).strip()
        if re.fullmatch(r"[-+*/()\w. ]+", value):
            yield name, _Translation(_Tokens(value, 1)).expression()


def _without_comments(source: str) -> str:
    return _COMMENT.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), source)


def _function(text: str, match: re.Match[str]) -> str:
    """A host function in Python."""
    depth, end = 0, match.end() - 1
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if not depth or end == len(text):
            break
    translation = _Translation(_Tokens(text[match.end() - 1 : end], text.count("\n", 0, match.end()) + 1))
    given = re.sub(r"<[^<>]*>", "", match[3])  # the types in `std::tuple<int, int>` are not parameters
    parameters = [_name(re.findall(r"\w+", one.partition("=")[0])[-1]) for one in given.split(",") if one.strip()]
    translation.block(1)
    return "\n".join([f"def {match[2]}({', '.join(parameters)}):", *translation.lines])
