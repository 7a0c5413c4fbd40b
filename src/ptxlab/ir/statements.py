"""Statements of a function body.

`start` and `end` are offsets into the source, from the first character of the statement to after its last; both are
None in a program that was not parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ptxlab.ir.declarations import Declaration, Variable
from ptxlab.ir.node import Immutable, Node, Parts
from ptxlab.ir.operands import FunctionReference, Operand, Register, Unresolved

if TYPE_CHECKING:
    from ptxlab.isa import Opcode


class Guard(Immutable):
    """`@p` or `@!p` in front of an instruction."""

    __slots__ = ("negated", "register")
    fields = ("register", "negated")

    def __init__(self, register: Register | Unresolved, negated: bool = False) -> None:
        self.register = register
        self.negated = negated


class Instruction(Node):
    """An instruction with its operands in the order they are written."""

    __slots__ = ("end", "guard", "opcode", "operands", "start")
    fields = ("guard", "opcode", "operands")

    def __init__(
        self,
        guard: Guard | None,
        opcode: Opcode,
        operands: tuple[Operand, ...],
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.guard = guard
        self.opcode = opcode
        self.operands = operands
        self.start = start
        self.end = end
        self.__class__ = Instruction


class Label(Node):
    """`name:`"""

    __slots__ = ("end", "name", "start")
    fields = ("name",)

    def __init__(self, name: str, start: int | None = None, end: int | None = None) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.__class__ = Label


class Comment(Node):
    """A comment as written, with its `//` or `/* */`; a trailing one follows code on the same line."""

    __slots__ = ("end", "start", "text", "trailing")
    fields = ("text", "trailing")

    def __init__(self, text: str, trailing: bool = False, start: int | None = None, end: int | None = None) -> None:
        self.text = text
        self.trailing = trailing
        self.start = start
        self.end = end
        self.__class__ = Comment


class Directive(Node):
    """A directive of a function such as `.maxntid 256, 1, 1`, without its dot; a `.pragma` has strings."""

    __slots__ = ("arguments", "end", "name", "start")
    fields = ("name", "arguments")

    def __init__(
        self, name: str, arguments: tuple[int | str, ...] = (), start: int | None = None, end: int | None = None
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.start = start
        self.end = end


class Pragma(Node):
    """`.pragma "text", ...;`"""

    __slots__ = ("end", "start", "strings")
    fields = ("strings",)

    def __init__(self, strings: tuple[str, ...], start: int | None = None, end: int | None = None) -> None:
        self.strings = strings
        self.start = start
        self.end = end


class Location(Node):
    """`.loc file line column`; `function_name` is a symbol and an offset, `inlined_at` another location.

    `intermediate` is the `.loc_intermediate` after it: a location in a file of an intermediate language.
    """

    __slots__ = ("column", "end", "file", "function_name", "inlined_at", "intermediate", "line", "start")
    fields = ("file", "line", "column", "function_name", "inlined_at", "intermediate")

    def __init__(
        self,
        file: int,
        line: int,
        column: int,
        function_name: tuple[str, int] | None = None,
        inlined_at: tuple[int, int, int] | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.function_name = function_name
        self.inlined_at = inlined_at
        self.intermediate: tuple[int, int, int] | None = None
        self.start = start
        self.end = end


class BranchTargets(Node):
    """`name: .branchtargets a, b;` The labels of `L<3>` are written out."""

    __slots__ = ("end", "name", "start", "targets")
    fields = ("name", "targets")

    def __init__(self, name: str, targets: tuple[str, ...], start: int | None = None, end: int | None = None) -> None:
        self.name = name
        self.targets = targets
        self.start = start
        self.end = end


class CallTargets(Node):
    """`name: .calltargets f, g;`"""

    __slots__ = ("end", "name", "start", "targets")
    fields = ("name", "targets")

    def __init__(
        self,
        name: str,
        targets: tuple[FunctionReference | Unresolved, ...],
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.name = name
        self.targets = targets
        self.start = start
        self.end = end


class CallPrototype(Node):
    """`name: .callprototype (returns) _ (parameters) directives;` Parameters without a name are called `_`."""

    __slots__ = ("directives", "end", "name", "parameters", "returns", "start")
    fields = ("name", "returns", "parameters", "directives")

    def __init__(
        self,
        name: str,
        returns: list[Variable],
        parameters: list[Variable],
        directives: list[Directive],
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.name = name
        self.returns = returns
        self.parameters = parameters
        self.directives = directives
        self.start = start
        self.end = end


class Target(Node):
    """A `.target` after the first: it changes what the rest of the module may use."""

    __slots__ = ("end", "names", "start")
    fields = ("names",)

    def __init__(self, names: tuple[str, ...], start: int | None = None, end: int | None = None) -> None:
        self.names = names
        self.start = start
        self.end = end


class BlockStatement(Node):
    """`{ ... }` inside a body: a scope of its own for names."""

    __slots__ = ("body", "end", "start")
    fields = ("body",)

    def __init__(self, body: list[Statement], start: int | None = None, end: int | None = None) -> None:
        self.body: list[Statement] = Parts(body)
        self.start = start
        self.end = end
        self.__class__ = BlockStatement


Statement: TypeAlias = (
    Instruction | Label | Declaration | BlockStatement | Comment | Location | Pragma | BranchTargets
    | CallTargets | CallPrototype | Target
)  # fmt: skip
