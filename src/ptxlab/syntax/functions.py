"""Kernels and device functions but for their bodies, and the directives that list what may be called or jumped to."""

from __future__ import annotations

from ptxlab.ir import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    Function,
    FunctionReference,
    Target,
    Unresolved,
)
from ptxlab.ir.node import draft
from ptxlab.isa.directives import DIRECTIVES
from ptxlab.syntax.constants import read_integer
from ptxlab.syntax.cursor import Cursor
from ptxlab.syntax.declarations import read_attributes, read_parameters
from ptxlab.syntax.scope import Scope

_Function = draft(Function)

# More labels than a function can have; `L<n>` is written out.
_MOST_TARGETS = 1 << 16


def read_header(cursor: Cursor, linkage: str | None, start: int) -> Function:
    """Read `.entry name (parameters) directives`, up to the `{` or `;`, which stays."""
    kind = cursor.advance()[1:]
    function = _Function(kind, "", linkage=linkage)
    function.start = start
    if cursor.at(".attribute") and kind == "func":
        function.attributes = read_attributes(cursor, (".unified",))
    if cursor.at("(") and kind == "func":
        function.returns = read_parameters(cursor, "a result")
    function.name_start, function.name_end = cursor.start, cursor.end
    function.name = cursor.name("the name of the kernel" if kind == "entry" else "the name of the function")
    if cursor.at("("):
        function.parameters = read_parameters(cursor, "a parameter", takes_hidden=kind == "entry")
    function.directives = read_directives(cursor)
    # ptxas takes a declaration of a device function without its `;`.
    if kind == "entry" and not cursor.at("{") and (function.directives or not cursor.at(";")):
        cursor.expected(
            f"`{{` to begin the body of `{function.name}`",
            help="begin the body with `{`, or end a declaration without directives with `;`",
        )
    return function


def read_directives(cursor: Cursor) -> list[Directive]:
    """Read the directives between a function's parameters and its body."""
    directives: list[Directive] = []
    while cursor.value[1:] in DIRECTIVES or cursor.at(".pragma"):
        start = cursor.start
        name = cursor.advance()
        arguments: list[int | str] = []
        if name == ".pragma":
            arguments.extend(read_strings(cursor))
            cursor.expect_semicolon("the pragma")
        else:
            known = DIRECTIVES[name[1:]]
            while len(arguments) < known.most and (not arguments or cursor.at(",")):
                if arguments:
                    cursor.advance()
                if name == ".language" and cursor.kind == "string":
                    arguments.append(cursor.advance()[1:-1])
                else:
                    arguments.append(read_integer(cursor, f"an integer after `{name}`"))
        directives.append(Directive(name[1:], tuple(arguments), start, cursor.previous_end))
    return directives


def read_strings(cursor: Cursor) -> list[str]:
    """Read `"a", "b"`, without the quotes."""
    strings = []
    while True:
        if cursor.kind != "string":
            cursor.expected("a string in double quotes")
        strings.append(cursor.advance()[1:-1])
        if not cursor.accept(","):
            return strings


def read_branch_targets(cursor: Cursor, name: str, start: int) -> BranchTargets:
    """Read `.branchtargets a, b, L<3>;`."""
    cursor.advance()
    targets: list[str] = []
    while True:
        target = cursor.name("a label")
        if cursor.accept("<"):
            count = read_integer(cursor, "how many labels there are")
            cursor.expect(">", "after the number of labels")
            targets.extend(f"{target}{number}" for number in range(min(count, _MOST_TARGETS)))
        else:
            targets.append(target)
        if not cursor.accept(","):
            break
    cursor.expect_semicolon("the list of labels")
    return BranchTargets(name, tuple(targets), start, cursor.previous_end)


def read_call_targets(cursor: Cursor, scope: Scope, name: str, start: int) -> CallTargets:
    """Read `.calltargets f, g;`."""
    cursor.advance()
    targets: list[FunctionReference | Unresolved] = []
    while True:
        target = cursor.name("the name of a function")
        found = scope.resolve(target)
        targets.append(found if isinstance(found, FunctionReference) else Unresolved(target))
        if not cursor.accept(","):
            break
    cursor.expect_semicolon("the list of functions")
    return CallTargets(name, tuple(targets), start, cursor.previous_end)


def read_prototype(cursor: Cursor, name: str, start: int) -> CallPrototype:
    """Read `.callprototype (results) _ (parameters) directives;`."""
    cursor.advance()
    returns = read_parameters(cursor, "a result") if cursor.at("(") else []
    if cursor.kind != "sink":
        cursor.expected("`_` in place of the function's name")
    cursor.advance()
    parameters = read_parameters(cursor, "a parameter", takes_hidden=True) if cursor.at("(") else []
    directives = read_directives(cursor)
    cursor.expect_semicolon("the prototype")
    return CallPrototype(name, returns, parameters, directives, start, cursor.previous_end)


def read_target(cursor: Cursor) -> Target:
    """Read `.target name, name`."""
    start = cursor.start
    cursor.advance()
    names = [cursor.name("an architecture such as `sm_90` after `.target`")]
    while cursor.accept(","):
        names.append(cursor.name("an option such as `debug`"))
    return Target(tuple(names), start, cursor.previous_end)
