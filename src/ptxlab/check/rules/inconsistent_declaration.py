"""A function or variable is declared twice, and the declarations disagree.

A prototype and its definition, or an `.extern` variable and its definition, must have the same parameters, types,
sizes and, for parameters, alignments.

Wrong:

```ptx
.version 8.0
.target sm_80
.func f(.param .b32 a);
.func f() { ret; }
```

Right:

```ptx
.version 8.0
.target sm_80
.func f(.param .b32 a);
.func f(.param .b32 a) { ret; }
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, Span, error

from ..program import Program
from ..storage import parameter_alignment


def check(program: Program) -> Iterator[Diagnostic]:
    module = program.module
    functions: dict[str, ir.Function] = {}
    for function in module.functions:
        earlier = functions.setdefault(function.name, function)
        difference = _difference(earlier, function)
        if difference:
            yield _explain(function.name, difference, module.name_span(function), module.name_span(earlier))
    variables: dict[str, ir.Variable] = {}
    for variable in module.variables:
        first = variables.setdefault(variable.name, variable)
        if first.linkage == "extern" and variable.linkage is None:
            difference = "once `.extern` and once for this module only"
            yield _explain(variable.name, difference, module.span(variable), module.span(first))
        if first is not variable and not _agree(first, variable):
            yield _explain(variable.name, "the types differ", module.span(variable), module.span(first))


def _explain(name: str, difference: str, span: Span | None, earlier: Span | None) -> Diagnostic:
    return error(
        "inconsistent-declaration",
        f"`{name}` is declared in two ways: {difference}",
        span,
        "not as declared before",
        others=[Label(earlier, "declared here first")] if earlier else [],
    )


def _linkage(function: ir.Function) -> str:
    return f"`.{function.linkage}`" if function.linkage else "for this module only"


def _difference(first: ir.Function, second: ir.Function) -> str | None:
    if first.kind != second.kind:
        return "one is a kernel, the other a function"
    if first is not second and second.linkage != first.linkage and (second.linkage or first.linkage == "extern"):
        return f"once {_linkage(first)} and once {_linkage(second)}"
    for what, ours, theirs in (
        ("parameters", first.parameters, second.parameters),
        ("results", first.returns, second.returns),
    ):
        if len(ours) != len(theirs):
            return f"the numbers of {what} differ"
        if any(_kind(a) != _kind(b) for a, b in zip(ours, theirs, strict=True)):
            return f"the types of {what} differ"
        if any(parameter_alignment(a) != parameter_alignment(b) for a, b in zip(ours, theirs, strict=True)):
            return f"the alignments of {what} differ"
    if first.noreturn != second.noreturn:
        return "one has `.noreturn`, the other has not"
    return None


def _agree(first: ir.Variable, second: ir.Variable) -> bool:
    """Whether two declarations are of one variable; a size that one leaves open may be given by the other."""
    is_open = None in first.dimensions[:1] + second.dimensions[:1]
    kinds = [
        (*_kind(one)[:-1], one.dimensions[1:], len(one.dimensions)) if is_open else _kind(one)
        for one in (first, second)
    ]
    return kinds[0] == kinds[1]


def _kind(variable: ir.Variable) -> tuple[object, ...]:
    return variable.state_space, variable.type, variable.vector, variable.dimensions
