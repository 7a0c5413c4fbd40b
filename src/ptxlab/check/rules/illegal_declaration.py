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

from ..initial_values import misfit
from ..program import Program
from ..storage import parameter_bytes


def check(program: Program) -> Iterator[Diagnostic]:
    module = program.module
    for variable in module.variables:
        yield from _check(program, variable, "module")
    for function in module.functions:
        context = "entry" if function.kind == "entry" else "function"
        is_defined = function.body is not None
        for parameter in function.returns:
            yield from _check(program, parameter, f"{context} result", is_defined)
        for parameter in function.parameters:
            yield from _check(program, parameter, f"{context} parameter", is_defined)
        for parameter in function.parameters[:-1]:
            if context == "function" and parameter.dimensions and not parameter.elements:
                yield _wrong(program, parameter, f"array `{parameter.name}` has no size",
                             "only the last parameter may leave it open")  # fmt: skip
        if function.linkage == "extern" and function.body is not None:
            yield error("illegal-declaration", f"`{function.title}` is `.extern` and has a body",
                        module.name_span(function), "defined elsewhere", helps=["remove `.extern`"])  # fmt: skip
        if context == "entry" and parameter_bytes(function.parameters) > _MOST_PARAMETERS:
            yield error("illegal-declaration",
                        f"`{function.title}` has {parameter_bytes(function.parameters)} bytes of parameters",
                        module.name_span(function), f"the most is {_MOST_PARAMETERS}")  # fmt: skip
        if len(function.returns) > 1 and any(parameter.state_space != "reg" for parameter in function.returns):
            message = f"`{function.title}` returns several values, which must be in `.reg`"
            yield _wrong(program, function.returns[0], message, "several results are returned in registers only")
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.Declaration):
                for variable in statement.variables:
                    yield from _check(program, variable, "body")


_MOST_PARAMETERS = 32764  # bytes
_WIDEST_PARAMETER = 128  # bytes of alignment
_MOST_ELEMENTS = 1 << 32


def _wrong_texture(program: Program, variable: ir.Variable, context: str) -> str | None:
    """Why a variable cannot be in `.tex`, the space that textures had before they had a type."""
    if context != "module":
        return "only for the module"
    if variable.type.name not in ("u32", "u64") or variable.dimensions or variable.vector > 1:
        return "only for `.u32` and `.u64`"
    return "gone since PTX 1.5" if program.version >= (1, 5) else None


def _wrong(program: Program, variable: ir.Variable, message: str, label: str, *helps: str) -> Diagnostic:
    return error("illegal-declaration", message, program.module.span(variable), label, helps=helps)


def _check(program: Program, variable: ir.Variable, context: str, is_defined: bool = True) -> Iterator[Diagnostic]:
    """The first thing that is wrong with a declaration; ptxas checks less of functions that are not defined."""
    name, space = variable.name, variable.state_space.partition("::")[0]
    # PTX 3.0 brought functions with a stack, and took registers and local variables out of the module.
    if context == "module" and space in (("param",) if program.version < (3, 0) else ("reg", "local", "param")):
        yield _wrong(program, variable, f"`{name}` is in `.{space}`, which exists only inside functions",
                     f"no `.{space}` variable at module level", "declare it in the function that uses it")  # fmt: skip
        return
    if context == "entry parameter" and space != "param":
        yield _wrong(program, variable, f"parameter `{name}` of a kernel must be in `.param`", "not a `.param`")
        return
    if variable.align is not None and (variable.align <= 0 or variable.align & (variable.align - 1)):
        yield _wrong(program, variable, f"`.align {variable.align}` of `{name}` is not a power of two",
                     "alignments are 1, 2, 4, 8, 16, ...")  # fmt: skip
    if space == "tex" and _wrong_texture(program, variable, context):
        yield _wrong(program, variable, f"`{name}` is in `.tex`, which is {_wrong_texture(program, variable, context)}",
                     "not a texture", "declare a `.global .texref`, or pass a texture object")  # fmt: skip
        return
    if is_defined:
        yield from _check_context(program, variable, context, space)
    elif "result" in context or "parameter" in context:
        yield from _check_pointer(program, variable, context)
    if variable.linkage == "common" and (space != "global" or variable.type.kind == "o"):
        what = f"in `.{space}`" if space != "global" else f"of type `.{variable.type.name}`"
        yield _wrong(program, variable, f"`{name}` {what} is `.common`", "only plain `.global` variables are common")
    if variable.vector * variable.type.width > 128 and variable.vector > 1:
        yield _wrong(program, variable, f"vector `{name}` has {variable.vector * variable.type.width} bits",
                     "a vector has at most 128 bits")  # fmt: skip
    if variable.bank and (variable.linkage != "extern" or variable.elements is not None):
        yield _wrong(program, variable, f"`{name}` is in bank {variable.bank} of `.const`",
                     "banks 1 to 10 are for `.extern` arrays of open size")  # fmt: skip
    if (
        variable.dimensions
        and variable.linkage != "extern"
        and context != "function parameter"
        and not variable.elements
    ):
        yield _wrong(program, variable, f"array `{name}` has no size",
                     "only an `.extern` array and the last parameter of a function may leave it open")  # fmt: skip
    if space != "global" and any(attribute.name == "managed" for attribute in variable.attributes):
        yield _wrong(program, variable, f"`{name}` in `.{space}` is `.managed`", "only `.global` memory is managed")
    yield from _check_initializer(program, variable, space)


def _check_context(program: Program, variable: ir.Variable, context: str, space: str) -> Iterator[Diagnostic]:
    """What cannot be where it is."""
    name = variable.name
    is_texture = variable.type.kind == "o" and (context == "body" or not variable.dimensions)  # it checks few arrays
    if is_texture and (context not in ("module", "entry parameter") or space == "reg"):
        yield _wrong(program, variable, f"`{name}` of type `.{variable.type.name}` is neither in the module nor a "
                     "parameter of a kernel", "textures, samplers and surfaces live there")  # fmt: skip
        return
    if is_texture and context == "module" and space not in ("global", "tex"):
        yield _wrong(program, variable, f"`{name}` of type `.{variable.type.name}` is in `.{space}`",
                     "textures, samplers and surfaces are in `.global`")  # fmt: skip
        return
    if space == "param" and (variable.type.lanes > 1 or (variable.vector > 1 and not variable.dimensions)):
        yield _wrong(program, variable, f"`{name}` in `.param` is a vector", "parameters are scalars or arrays",
                     "make it an array with an alignment")  # fmt: skip
        return
    is_counted = context in ("function parameter", "function result")
    if is_counted and any((extent or 0) >= _MOST_ELEMENTS for extent in variable.dimensions):
        yield _wrong(
            program, variable, f"`{name}` has {variable.dimensions[0]} elements", "more than 32 bits can count"
        )
    if space == "param" and context != "entry parameter" and (variable.align or 0) > _WIDEST_PARAMETER:
        yield _wrong(program, variable, f"`{name}` in `.param` is aligned to {variable.align} bytes",
                     f"the most here is {_WIDEST_PARAMETER}")  # fmt: skip
    if variable.type.kind == "p" and space != "reg":
        yield _wrong(program, variable, f"`{name}` is a predicate outside of `.reg`", "predicates live in registers")
        return
    if variable.type.kind == "p" and variable.vector > 1:
        yield _wrong(program, variable, f"`{name}` is a vector of predicates", "predicates form no vectors")
        return
    if space == "reg" and variable.dimensions:
        yield _wrong(program, variable, f"`{name}` is an array in `.reg`", "registers form no arrays",
                     f"write `{name}<count>` for numbered registers")  # fmt: skip
        return
    yield from _check_pointer(program, variable, context)


def _check_pointer(program: Program, variable: ir.Variable, context: str) -> Iterator[Diagnostic]:
    if variable.pointer is None:
        return
    name, align = variable.name, variable.pointer.align
    if context != "entry parameter":
        yield _wrong(program, variable, f"`{name}` has `.ptr`, which only parameters of kernels have",
                     "not a parameter of a kernel", "remove `.ptr` and what belongs to it")  # fmt: skip
    elif align is not None and (align <= 0 or align & (align - 1)):
        yield _wrong(program, variable, f"`.ptr .align {align}` of `{name}` is not a power of two",
                     "alignments are 1, 2, 4, 8, 16, ...")  # fmt: skip


def _check_initializer(program: Program, variable: ir.Variable, space: str) -> Iterator[Diagnostic]:
    value = variable.initializer
    if value is None:
        return
    name = variable.name
    if variable.linkage == "extern":
        yield _wrong(program, variable, f"`{name}` is `.extern` and has an initial value", "defined elsewhere")
    elif space not in ("global", "const"):
        yield _wrong(program, variable, f"`{name}` in `.{space}` has an initial value",
                     "only `.global` and `.const` variables have initial values")  # fmt: skip
    else:
        spaces = {other.name: other.state_space for other in program.module.variables}
        problem = misfit(value, variable, spaces)
        if problem:
            yield _wrong(program, variable, f"the initial value of `{name}` {problem}", "wrong initial value")
