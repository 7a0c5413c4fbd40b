"""What is at the outermost level of a module: functions, aliases, files, debug sections.

`start` and `end` are offsets into the source, as in statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ptxlab.ir import mangled
from ptxlab.ir.declarations import Attribute, Declaration, Variable
from ptxlab.ir.launchable import Launchable, launch
from ptxlab.ir.node import Immutable, Node, Parts
from ptxlab.ir.statements import (
    BlockStatement,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Comment,
    Directive,
    Instruction,
    Label,
    Location,
    Pragma,
    Statement,
    Target,
)

if TYPE_CHECKING:
    from ptxlab.ir.launchable import LaunchOptions, Result
    from ptxlab.ir.module import Module


class Function(Launchable, Node):
    """A kernel (`kind` is `entry`) or device function (`func`); without a body it is a prototype.

    `start` and `end` span the whole of it, `name_start` and `name_end` its name.
    """

    __slots__ = (
        "attributes", "body", "directives", "end", "kind", "linkage", "module", "name", "name_end", "name_start",
        "parameters", "returns", "start",
    )  # fmt: skip
    fields = ("kind", "name", "linkage", "returns", "parameters", "directives", "attributes", "body")

    def __repr__(self) -> str:
        kind = "kernel" if self.kind == "entry" else "function"
        return f"<{kind} {self.title}({', '.join(self.parameter_types)})>"

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        linkage: str | None = None,
        returns: list[Variable] | None = None,
        parameters: list[Variable] | None = None,
        directives: list[Directive] | None = None,
        attributes: tuple[Attribute, ...] = (),
        body: list[Statement] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.linkage = linkage
        self.returns: list[Variable] = Parts(returns or ())
        self.parameters: list[Variable] = Parts(parameters or ())
        self.directives: list[Directive] = Parts(directives or ())
        self.attributes = attributes
        self.body: list[Statement] | None = None if body is None else Parts(body)
        self.start: int | None = None
        self.end: int | None = None
        self.name_start: int | None = None
        self.name_end: int | None = None
        self.module: Module | None = None
        self.__class__ = Function

    def _launch(self, args: Sequence[object], options: LaunchOptions) -> Result:
        return launch(self, args, options)

    @property
    def title(self) -> str:
        """The name for people: `gemm<128, float>` of a kernel that a compiler of C++ calls `_Z4gemmILi128EfEvPT0_j`."""
        return mangled.title(self.name)

    @property
    def parameter_types(self) -> list[str]:
        """The parameters as PTX declares them: `.u64 x`, `.b8 map[128]`."""
        found = []
        for one in self.parameters:
            extents = "".join(f"[{extent}]" if extent is not None else "[]" for extent in one.dimensions)
            found.append(f".{one.type.name} {one.title}{extents}")
        return found

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import folded_html, table_html, text_html, title_html

        kind = "kernel" if self.kind == "entry" else "device function"
        rows = [["parameter", "type"], *([*reversed(one.split(" ", 1))] for one in self.parameter_types)]
        source = self.module.source if self.module is not None else None
        text = "" if source is None else source.text[self.start or 0 : self.end]
        body = folded_html("PTX", text_html(text)) if text else ""
        return title_html(f"`{self.title}`, a {kind}") + table_html(rows) + body

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """The blocks of a cluster that the kernel itself asks for."""
        directive = self.directive("reqnctapercluster")
        if directive is None:
            return None
        x, y, z = (*(int(extent) for extent in directive.arguments), 1, 1)[:3]
        return x, y, z

    @property
    def noreturn(self) -> bool:
        """Whether the function declares that it never returns."""
        return any(directive.name == "noreturn" for directive in self.directives)

    def directive(self, name: str) -> Directive | None:
        """The directive of that name, without its dot, or None."""
        return next((directive for directive in self.directives if directive.name == name), None)

    def statements(self) -> Iterator[Statement]:
        """Every statement of the body in order, those inside blocks included, a block before its content."""
        pending = [iter(self.body or ())]
        while pending:
            for statement in pending[-1]:
                yield statement
                if statement.__class__ is BlockStatement:
                    pending.append(iter(statement.body))
                    break
            else:
                pending.pop()

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of the body in order."""
        for statement in self.statements():
            if statement.__class__ is Instruction:
                yield statement

    def labels(self) -> dict[str, Label | BranchTargets | CallTargets | CallPrototype]:
        """Every label of the body by name; of two with one name, the first."""
        found: dict[str, Label | BranchTargets | CallTargets | CallPrototype] = {}
        for statement in self.statements():
            if isinstance(statement, (Label, BranchTargets, CallTargets, CallPrototype)):
                found.setdefault(statement.name, statement)
        return found


class Alias(Node):
    """`.alias name, aliasee;`"""

    __slots__ = ("aliasee", "end", "name", "start")
    fields = ("name", "aliasee")

    def __init__(self, name: str, aliasee: str, start: int | None = None, end: int | None = None) -> None:
        self.name = name
        self.aliasee = aliasee
        self.start = start
        self.end = end


class File(Node):
    """`.file index "name", timestamp, size`"""

    __slots__ = ("end", "index", "name", "size", "start", "timestamp")
    fields = ("index", "name", "timestamp", "size")

    def __init__(
        self,
        index: int,
        name: str,
        timestamp: int | None = None,
        size: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.index = index
        self.name = name
        self.timestamp = timestamp
        self.size = size
        self.start = start
        self.end = end


class SymbolOffset(Immutable):
    """`label`, `label+4` or `label-other` in a line of debug data."""

    __slots__ = ("minus", "name", "offset")
    fields = ("name", "offset", "minus")

    def __init__(self, name: str, offset: int = 0, minus: str | None = None) -> None:
        self.name = name
        self.offset = offset
        self.minus = minus


class DataLine(Immutable):
    """`.b8 1, 2, 3` in a debug section; `type` is `b8`, `b16`, `b32` or `b64`. Equal lines share one object."""

    __slots__ = ("type", "values")
    fields = ("type", "values")

    def __init__(self, type: str, values: tuple[int | SymbolOffset, ...]) -> None:
        self.type = type
        self.values = values


class Section(Node):
    """`.section name { ... }` with its data, labels and comments."""

    __slots__ = ("end", "lines", "name", "start")
    fields = ("name", "lines")

    def __init__(
        self, name: str, lines: list[DataLine | Label | Comment], start: int | None = None, end: int | None = None
    ) -> None:
        self.name = name
        self.lines = lines
        self.start = start
        self.end = end


class SourceBlock(NamedTuple):
    """The text of a file in an intermediate language, such as Tile IR."""

    language: str
    file: int
    text: str


class SourceSection(Node):
    """`.nv_intermediate_source_section { ... }`: what a front end compiled, file by file."""

    __slots__ = ("blocks", "end", "start")
    fields = ("blocks",)

    def __init__(self, blocks: tuple[SourceBlock, ...], start: int | None = None, end: int | None = None) -> None:
        self.blocks = blocks
        self.start = start
        self.end = end


Item: TypeAlias = Function | Declaration | Alias | File | Section | SourceSection | Pragma | Target | Location | Comment
