"""Variables: their declaration in any state space, and as parameters."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxlab.ir import Attribute, Comment, Declaration, PointerAttribute, Variable
from ptxlab.ir.node import draft
from ptxlab.isa import Type, type_named
from ptxlab.isa.types import TYPES
from ptxlab.report.nearest import nearest
from ptxlab.syntax.comments import make_comment
from ptxlab.syntax.constants import read_integer, read_small_integer
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.initializers import read_initializer
from ptxlab.syntax.scope import Scope

_Variable = draft(Variable)
_Declaration = draft(Declaration)

STATE_SPACES = frozenset((".reg", ".global", ".shared", ".local", ".const", ".param", ".tex"))
LINKAGES = frozenset((".extern", ".visible", ".weak", ".common"))
_DECLARABLE = {f".{type.name}" for type in TYPES.values() if type.declarable}
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
# What a parameter with `.ptr` may point to. The manual has the state spaces only; LLVM writes the others for OpenCL.
_POINTED_TO = frozenset((".const", ".global", ".local", ".shared", ".texref", ".samplerref", ".surfref"))


class _Head:
    """What precedes the names: `.global .align 4 .v2 .f32`."""

    __slots__ = ("align", "attributes", "bank", "pointer", "state_space", "type", "vector")

    def __init__(self) -> None:
        self.state_space = ""
        self.bank: int | None = None
        self.align: int | None = None
        self.vector = 1
        self.type: Type | None = None
        self.attributes: tuple[Attribute, ...] = ()
        self.pointer: PointerAttribute | None = None


def read_declaration(cursor: Cursor, scope: Scope, linkage: str | None, start: int) -> Declaration:
    """Read `.space .type name, ...;` and make the names known."""
    head = _read_head(cursor)
    assert head.type is not None
    variables: list[Variable] = []
    while not cursor.at(";"):
        if variables:
            if not cursor.at(","):
                break
            cursor.advance()
        variable = _read_declarator(cursor, head, head.type)
        if linkage is not None:
            variable.linkage = linkage
        if cursor.at("="):
            cursor.advance()
            variable.initializer = read_initializer(cursor, scope)
        variables.append(variable)
        scope.declare(variable)
    cursor.expect_semicolon(f"the declaration of `{variables[-1].name}`" if variables else "the declaration")
    return _Declaration(variables, start, cursor.previous_end)


# Most of what PTX declares, by far: one name or one family of registers.
_REGISTERS = re.compile(r"\.reg\s++(\.\w++)\s++([a-zA-Z][\w$]*+|[_$%][\w$]++)(?:<([1-9]\d{0,8}+)>)?+\s*+;", re.ASCII)


def match_registers(text: str, start: int, scope: Scope) -> Declaration | None:
    """The declaration `.reg .type name;` or `.reg .type name<count>;` at an offset, if it is as plain as that."""
    match = _REGISTERS.match(text, start)
    if match is None or match[1] not in _DECLARABLE or match[2] == "WARP_SZ":
        return None
    count = None if match[3] is None else int(match[3])
    type = type_named(match[1][1:])
    variable = _Variable("reg", type, match[2], count=count, start=match.start(2), end=match.end(2))
    scope.declare(variable)
    return _Declaration([variable], start, match.end())


def read_parameters(cursor: Cursor, what: str, takes_hidden: bool = False) -> list[Variable]:
    """Read `( .param .type name, ... )`; the opening parenthesis is next.

    `.hidden` before a parameter of a kernel says that a runtime sets it, and not the program that launches the kernel.
    """
    opening = cursor.start
    cursor.advance()
    parameters: list[Variable] = []
    if cursor.accept(")"):
        return parameters
    while True:
        above = _take_comments(cursor, opening, parameters)
        is_hidden = takes_hidden and cursor.accept(".hidden")
        if cursor.value not in (".param", ".reg", ".align"):
            cursor.expected(f"`.param` or `.reg` to begin {what}")
        head = _read_head(cursor, is_parameter=True)
        assert head.type is not None
        parameters.append(_read_declarator(cursor, head, head.type, is_parameter=True))
        parameters[-1].comments = above
        if is_hidden:
            parameters[-1].linkage = "hidden"
        if not cursor.accept(","):
            break
    last = _take_comments(cursor, opening, parameters)
    parameters[-1].comments.extend(last)
    cursor.expect(")", f"or `,` after {what}")
    return parameters


def _take_comments(cursor: Cursor, opening: int, parameters: list[Variable]) -> list[Comment]:
    """Give comments to the parameter they trail; returns those above the next one."""
    above: list[Comment] = []
    rest = []
    for start, end in cursor.comments:
        if start < opening:
            rest.append((start, end))
            continue
        own = parameters[-1].comments if parameters else []
        comment = make_comment(cursor.text, start, end, own[-1] if own and own[-1].trailing else None)
        if comment.trailing and parameters and not above:
            own.append(comment)
        else:
            comment.trailing = False
            above.append(comment)
    cursor.comments[:] = rest
    return above


def _read_head(cursor: Cursor, is_parameter: bool = False) -> _Head:
    head = _Head()
    while head.type is None:
        value = cursor.value
        if value in STATE_SPACES and not head.state_space:
            head.state_space = cursor.advance()[1:]
            if head.state_space == "const" and cursor.accept("["):
                head.bank = read_integer(cursor, "the number of the constant bank")
                cursor.expect("]", "after the number of the constant bank")
        elif value == ".align" and head.vector == 1:
            head.align = _read_align(cursor)
        elif value == ".attribute" and head.vector == 1:
            head.attributes = read_attributes(cursor)
        elif value in _VECTORS and head.vector == 1 and (value, head.state_space) != (".v8", "reg"):
            cursor.advance()
            head.vector = _VECTORS[value]
        elif value in _DECLARABLE:
            head.type = type_named(value[1:])
        else:
            _no_type(cursor, head)
    if not head.state_space:
        cursor.expected("a state space such as `.global` before the type")
    cursor.advance()
    if is_parameter:
        if cursor.at(".ptr"):
            head.pointer = _read_pointer(cursor)
        elif cursor.at(".align"):
            head.align = _read_align(cursor)
    return head


def _no_type(cursor: Cursor, head: _Head) -> NoReturn:
    what = f"the type of the `.{head.state_space}` variable" if head.state_space else "a state space"
    if cursor.kind == "dotted" and cursor.value[1:] in TYPES:
        cursor.expected(what, help=f"a variable of type `{cursor.value}` is declared with a bit type of its size")
    near = nearest(cursor.value, sorted(_DECLARABLE)) if cursor.kind == "dotted" else None
    help = f"did you mean `{near}`?" if near else "types are `.pred`, `.b32`, `.u64`, `.s32`, `.f32` and so on"
    cursor.expected(what, help=help)


def _read_align(cursor: Cursor) -> int:
    cursor.advance()
    return read_small_integer(cursor, "the number of bytes after `.align`")


def _read_pointer(cursor: Cursor) -> PointerAttribute:
    cursor.advance()
    state_space = align = None
    if cursor.value in _POINTED_TO:
        state_space = cursor.advance()[1:]
    if cursor.at(".align"):
        align = _read_align(cursor)
    return PointerAttribute(state_space, align)


def read_attributes(cursor: Cursor, names: tuple[str, ...] = (".managed", ".unified")) -> tuple[Attribute, ...]:
    """Read `.attribute(.managed, .unified(1, 2))`."""
    cursor.advance()
    cursor.expect("(", "after `.attribute`")
    attributes = []
    while True:
        if cursor.value not in names:
            cursor.expected(" or ".join(f"`{name}`" for name in names))
        name = cursor.advance()[1:]
        arguments = []
        if cursor.accept("("):
            arguments.append(read_integer(cursor, "an integer"))
            while cursor.accept(","):
                arguments.append(read_integer(cursor, "an integer"))
            cursor.expect(")", "after the arguments of the attribute")
        attributes.append(Attribute(name, tuple(arguments)))
        if not cursor.accept(","):
            break
    cursor.expect(")", "after the attributes")
    return tuple(attributes)


def _read_declarator(cursor: Cursor, head: _Head, type: Type, is_parameter: bool = False) -> Variable:
    start, end = cursor.start, cursor.end
    is_named = cursor.kind == "name" and cursor.value != "WARP_SZ"
    if not is_named and not (is_parameter and cursor.kind == "sink"):
        cursor.expected("the name of the variable")
    name = cursor.advance()
    count = None
    dimensions: list[int | None] = []
    if cursor.at("<") and not is_parameter:
        cursor.advance()
        count = read_small_integer(cursor, "how many registers to declare")
        cursor.expect(">", "after the number of registers")
    while cursor.at("[") and not (is_parameter and dimensions):
        cursor.advance()
        if cursor.at("]") and not dimensions:
            dimensions.append(None)
        else:
            dimensions.append(read_integer(cursor, "the extent of the array"))
        cursor.expect("]", "after the extent of the array")
    return _Variable(
        head.state_space,
        type,
        name,
        vector=head.vector,
        align=head.align,
        count=count,
        dimensions=tuple(dimensions),
        attributes=head.attributes,
        pointer=head.pointer,
        bank=head.bank,
        start=start,
        end=end,
    )
