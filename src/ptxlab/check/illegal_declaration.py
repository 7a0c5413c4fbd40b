"""A variable is declared in a way that PTX does not allow.

State spaces have their places: registers, local variables and parameters live in functions; only `.global` and
`.const` variables have initial values, and a value must be of the kind of the type. Alignments are powers of two,
predicates live in registers, a vector has at most 128 bits, and an array has its size unless it is `.extern`.

Wrong:

```ptx
.version 8.0
.target sm_80
.shared .align 12 .u32 tile[32];
.entry k() { ret; }
```

Right:

```ptx
.version 8.0
.target sm_80
.shared .align 16 .u32 tile[32];
.entry k() { ret; }
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, error

from .program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    module = program.module
    for variable in module.variables:
        yield from _check(program, variable, "module")
    for function in module.functions:
        place = "entry" if function.kind == "entry" else "function"
        for parameter in function.returns:
            yield from _check(program, parameter, f"{place} result")
        for parameter in function.parameters:
            yield from _check(program, parameter, f"{place} parameter")
        if len(function.returns) > 1 and any(parameter.state_space != "reg" for parameter in function.returns):
            message = f"`{function.name}` returns several values, which must be in `.reg`"
            yield _wrong(program, function.returns[0], message, "several results are returned in registers only")
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.Declaration):
                for variable in statement.variables:
                    yield from _check(program, variable, "body")


def _wrong(program: Program, variable: ir.Variable, message: str, label: str, *helps: str) -> Diagnostic:
    return error("illegal-declaration", message, program.module.span(variable), label, helps=helps)


def _check(program: Program, variable: ir.Variable, place: str) -> Iterator[Diagnostic]:
    """The first thing that is wrong with a declaration."""
    name, space = variable.name, variable.state_space.partition("::")[0]
    # PTX 3.0 brought functions with a stack, and took registers and local variables out of the module.
    if place == "module" and space in (("param",) if program.version < (3, 0) else ("reg", "local", "param")):
        yield _wrong(program, variable, f"`{name}` is in `.{space}`, which exists only inside functions",
                     f"no `.{space}` variable at module level", "declare it in the function that uses it")  # fmt: skip
        return
    if place == "entry parameter" and space != "param":
        yield _wrong(program, variable, f"parameter `{name}` of a kernel must be in `.param`", "not a `.param`")
        return
    if variable.align is not None and (variable.align <= 0 or variable.align & (variable.align - 1)):
        yield _wrong(program, variable, f"`.align {variable.align}` of `{name}` is not a power of two",
                     "alignments are 1, 2, 4, 8, 16, ...")  # fmt: skip
    if variable.type.kind == "p" and space != "reg":
        yield _wrong(program, variable, f"`{name}` is a predicate outside of `.reg`", "predicates live in registers")
        return
    if variable.vector * variable.type.width > 128 and variable.vector > 1:
        yield _wrong(program, variable, f"vector `{name}` has {variable.vector * variable.type.width} bits",
                     "a vector has at most 128 bits")  # fmt: skip
    if space == "reg" and variable.dimensions:
        yield _wrong(program, variable, f"`{name}` is an array in `.reg`", "registers form no arrays",
                     f"write `{name}<count>` for numbered registers")  # fmt: skip
        return
    if variable.dimensions and variable.linkage != "extern" and place != "function parameter" and not variable.elements:
        yield _wrong(program, variable, f"array `{name}` has no size",
                     "only an `.extern` array and the last parameter of a function may leave it open")  # fmt: skip
    if "parameter" in place and None in variable.dimensions and len(variable.dimensions) > 1:
        yield _wrong(program, variable, f"parameter `{name}` leaves the first of its dimensions open",
                     "an array of open size has one dimension here")  # fmt: skip
    if space != "global" and any(attribute.name == "managed" for attribute in variable.attributes):
        yield _wrong(program, variable, f"`{name}` in `.{space}` is `.managed`", "only `.global` memory is managed")
    yield from _check_initialiser(program, variable, space)


def _check_initialiser(program: Program, variable: ir.Variable, space: str) -> Iterator[Diagnostic]:
    value = variable.initialiser
    if value is None:
        return
    name = variable.name
    if variable.linkage == "extern":
        yield _wrong(program, variable, f"`{name}` is `.extern` and has an initial value", "defined elsewhere")
    elif space not in ("global", "const"):
        yield _wrong(program, variable, f"`{name}` in `.{space}` has an initial value",
                     "only `.global` and `.const` variables have initial values")  # fmt: skip
    elif variable.type.kind != "o":
        problem = _misfit(value, variable, 0)
        if problem:
            yield _wrong(program, variable, f"the initial value of `{name}` {problem}", "wrong initial value")


def _misfit(value: ir.Initialiser, variable: ir.Variable, depth: int) -> str | None:
    """What is wrong with an initial value, or None."""
    levels = len(variable.dimensions) + (variable.vector > 1)
    if isinstance(value, ir.InitialiserList):
        if depth >= levels:
            return "has braces where one value belongs"
        extent = variable.dimensions[depth] if depth < len(variable.dimensions) else variable.vector
        if extent is not None and len(value.elements) > extent:
            return f"has {len(value.elements)} elements for {extent} places"
        return next((wrong for part in value.elements if (wrong := _misfit(part, variable, depth + 1))), None)
    if depth == 0 and levels:
        return "is one value for an array"
    if isinstance(value, ir.Immediate):
        if value.is_float != (variable.type.kind == "f"):
            kind = "a floating-point constant" if value.is_float else "an integer"
            return f"is {kind}, and `.{variable.type.name}` does not take it"
    elif isinstance(value, ir.SymbolAddress) and not value.resolved:
        return f"names `{value.name}`, which is not declared"
    return None
