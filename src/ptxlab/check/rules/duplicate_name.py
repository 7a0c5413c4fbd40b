"""A name is declared twice in one scope.

A block in braces is a scope of its own, in which names from outside can be declared anew; so is the body of a function,
except that its parameters belong to it. `%r<10>` declares ten names at once.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<4>;
    .reg .f32 %r3;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<4>;
    {
        .reg .f32 %r3;
    }
    ret;
}
```
"""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, Span, error

from ..program import Program

_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,18})")
Named: TypeAlias = ir.Variable | ir.Label | ir.BranchTargets | ir.CallTargets | ir.CallPrototype


class Scope:
    """The names of one scope, those of `%r<count>` kept as a range."""

    def __init__(self) -> None:
        self.names: dict[str, Named] = {}
        self.ranges: dict[str, ir.Variable] = {}

    def declare(self, part: Named) -> Named | None:
        """Add a name; returns what has the name already, if anything has."""
        if isinstance(part, ir.Variable) and part.count is not None:
            earlier: Named | None = self.ranges.get(part.name)
            if earlier is None:  # look through the names there are: a range may have billions
                earlier = next((known for name, known in self.names.items() if _is_in(name, part)), None)
            self.ranges.setdefault(part.name, part)
            return earlier
        earlier = self.names.get(part.name) or self._in_range(part.name)
        self.names.setdefault(part.name, part)
        return earlier

    def _in_range(self, name: str) -> ir.Variable | None:
        numbered = _NUMBERED.fullmatch(name)
        found = self.ranges.get(numbered[1]) if numbered else None
        return found if found and _is_in(name, found) else None


def _is_in(name: str, family: ir.Variable) -> bool:
    """Whether `name` is one of the registers of `%r<count>`."""
    numbered = _NUMBERED.fullmatch(name)
    return numbered is not None and numbered[1] == family.name and int(numbered[2]) < (family.count or 0)


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        function = facts.function
        scope = Scope()
        for parameter in (*function.returns, *function.parameters):
            yield from _declare(program, scope, parameter)
        yield from _walk(program, function.body or [], scope)
    for function in program.module.functions:
        if function.body is None:
            scope = Scope()
            for parameter in (*function.returns, *function.parameters):
                yield from _declare(program, scope, parameter)
    yield from _module_level(program)


def _walk(program: Program, body: Iterable[ir.Statement], scope: Scope) -> Iterator[Diagnostic]:
    pending = [(iter(body), scope)]
    while pending:
        statements, scope = pending[-1]
        for statement in statements:
            kind = statement.__class__
            if kind is ir.Instruction:
                continue
            if isinstance(statement, ir.Declaration):
                for variable in statement.variables:
                    yield from _declare(program, scope, variable)
            elif isinstance(statement, (ir.Label, ir.BranchTargets, ir.CallTargets, ir.CallPrototype)):
                yield from _declare(program, scope, statement)
            elif isinstance(statement, ir.Block):
                pending.append((iter(statement.body), Scope()))
                break
        else:
            pending.pop()


def _declare(program: Program, scope: Scope, part: Named) -> Iterator[Diagnostic]:
    if part.name == "_":
        return
    earlier = scope.declare(part)
    if earlier is not None:
        yield explain(part.name, program.module.span(part), program.module.span(earlier))


def explain(name: str, span: Span | None, earlier: Span | None) -> Diagnostic:
    """Point at both declarations."""
    return error(
        "duplicate-name",
        f"`{name}` is declared twice in this scope",
        span,
        "declared again here",
        others=[Label(earlier, "first declared here")] if earlier else [],
        helps=["rename one of them, or put one into a block `{ ... }` of its own"],
    )


def _module_level(program: Program) -> Iterator[Diagnostic]:
    """Variables and functions of the module; `.extern` declarations and prototypes may be repeated."""
    module = program.module
    variables: dict[str, ir.Variable] = {}
    for variable in module.variables:
        earlier = variables.get(variable.name)
        if earlier is not None and "extern" not in (variable.linkage, earlier.linkage):
            yield explain(variable.name, module.span(variable), module.span(earlier))
        if earlier is None or earlier.linkage == "extern":
            variables[variable.name] = variable
    files: dict[int, ir.File] = {}
    labels: dict[str, ir.Label] = {}
    for item in module.items:
        for line in item.lines if isinstance(item, ir.Section) else ():
            if isinstance(line, ir.Label):
                if line.name in labels:
                    yield explain(line.name, module.span(line), module.span(labels[line.name]))
                labels.setdefault(line.name, line)
        if isinstance(item, ir.File):
            if item.index in files:
                yield explain(f".file {item.index}", module.span(item), module.span(files[item.index]))
            files.setdefault(item.index, item)
    functions: dict[str, ir.Function] = {}
    for function in module.functions:
        taken = variables.get(function.name)
        if taken is not None:
            yield explain(function.name, module.name_span(function), module.span(taken))
        defined = functions.get(function.name)
        if defined is not None:
            yield explain(function.name, module.name_span(function), module.name_span(defined))
        if function.body is not None:
            functions.setdefault(function.name, function)
