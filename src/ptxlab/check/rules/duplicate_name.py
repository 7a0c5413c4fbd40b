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
from ptxlab.isa.special_registers import special_register
from ptxlab.report import Diagnostic, Label, Span, error

from ..program import Program

_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,18})")
Named: TypeAlias = ir.Variable | ir.Label | ir.BranchTargets | ir.CallTargets | ir.CallPrototype


class DeclaredNames:
    """The names of one scope, those of `%r<count>` kept as a range."""

    def __init__(self) -> None:
        self.names: dict[str, Named] = {}
        self.ranges: dict[str, ir.Variable] = {}
        self._lowest: dict[str, tuple[int, Named]] = {}  # of the names that end in a number, by what is before it

    def declare(self, part: Named) -> Named | None:
        """Add a name; returns what has the name already, if anything has."""
        if isinstance(part, ir.Variable) and part.count is not None:
            earlier: Named | None = self.ranges.get(part.name)
            if earlier is None:
                lowest, named = self._lowest.get(part.name, (part.count, None))
                earlier = named if lowest < part.count else None
            self.ranges.setdefault(part.name, part)
            return earlier
        earlier = self.names.get(part.name)
        numbered = _NUMBERED.fullmatch(part.name)
        if numbered is not None:
            stem, number = numbered[1], int(numbered[2])
            family = self.ranges.get(stem)
            if earlier is None and family is not None and number < (family.count or 0):
                earlier = family
            if number < self._lowest.get(stem, (number + 1, part))[0]:
                self._lowest[stem] = (number, part)
        self.names.setdefault(part.name, part)
        return earlier


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        function = facts.function
        scope = DeclaredNames()
        for parameter in (*function.returns, *function.parameters):
            yield from _declare(program, scope, parameter)
        yield from _walk(program, function.body or [], scope)
    for function in program.module.functions:
        if function.body is None:
            scope = DeclaredNames()
            for parameter in (*function.returns, *function.parameters):
                yield from _declare(program, scope, parameter)
    yield from _module_level(program)


def _walk(program: Program, body: Iterable[ir.Statement], scope: DeclaredNames) -> Iterator[Diagnostic]:
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
            elif isinstance(statement, ir.BlockStatement):
                pending.append((iter(statement.body), DeclaredNames()))
                break
        else:
            pending.pop()


def _declare(program: Program, scope: DeclaredNames, part: Named) -> Iterator[Diagnostic]:
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
        if variable.count is None and _is_special(program, variable.name):
            yield _explain_special(variable.name, module.span(variable))
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
        if _is_special(program, function.name):
            yield _explain_special(function.name, module.name_span(function))
        taken = variables.get(function.name)
        if taken is not None:
            yield explain(function.name, module.name_span(function), module.span(taken))
        defined = functions.get(function.name)
        if defined is not None:
            yield explain(function.name, module.name_span(function), module.name_span(defined))
        if function.body is not None:
            functions.setdefault(function.name, function)


def _is_special(program: Program, name: str) -> bool:
    """Whether a special register has the name, of whatever target; inside functions other things may have it too."""
    found = special_register(name)
    newest = max(program.version, _KNOWN)
    return found is not None and any(version <= newest for version, _ in found.since.alternatives)


_KNOWN = (9, 0)  # the version up to which ptxas knows all names, whatever version a module has


def _explain_special(name: str, span: Span | None) -> Diagnostic:
    return error("duplicate-name", f"`{name}` is the name of a special register", span, "declared again here",
                 helps=["choose another name"])  # fmt: skip
