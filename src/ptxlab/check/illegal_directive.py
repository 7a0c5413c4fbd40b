"""A directive of a function contradicts another, has a value out of range, or belongs to another kind of function.

`.maxntid`, `.reqntid` and their like tune a kernel and stand after the parameters of an `.entry`; `.noreturn` and
`.abi_preserve` are promises to a caller and stand after those of a `.func` or of a prototype.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() .maxntid 128 .reqntid 128 { ret; }
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() .reqntid 128 { ret; }
```
"""

from collections.abc import Iterator, Sequence

from ptxlab import ir
from ptxlab.isa.directives import CONFLICTS, DIRECTIVES, NEEDS
from ptxlab.report import Diagnostic, Label, error

from .program import Program
from .unavailable_instruction import explain

_OWNERS = {"entry": "kernels", "func": "device functions"}


def check(program: Program) -> Iterator[Diagnostic]:
    for function in program.module.functions:
        yield from _check_all(program, function.directives, function.kind)
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.CallPrototype):
                yield from _check_all(program, statement.directives, "func")


def _check_all(program: Program, directives: Sequence[ir.Directive], owner: str) -> Iterator[Diagnostic]:
    given: dict[str, ir.Directive] = {}
    for directive in directives:
        yield from _check_one(program, directive, owner)
        if directive.name in given and owner == "func":  # of those of a kernel, ptxas takes the last
            yield _contradiction(program, f"`.{directive.name}` is given twice", given[directive.name], directive)
        given[directive.name] = directive
    for first, second in CONFLICTS:
        if first in given and second in given:
            message = f"`.{first}` and `.{second}` cannot both be given"
            yield _contradiction(program, message, given[first], given[second])
    for name, needed in NEEDS.items():
        missing = [f"`.{other}`" for other in needed if other not in given]
        if name in given and missing:
            span = program.module.span(given[name])
            message = f"`.{name}` needs {' and '.join(missing)} beside it"
            yield error("illegal-directive", message, span, f"without {' and '.join(missing)}")


def _contradiction(program: Program, message: str, first: ir.Directive, second: ir.Directive) -> Diagnostic:
    other = program.module.span(first)
    return error(
        "illegal-directive",
        message,
        program.module.span(second),
        "one too many",
        others=[Label(other, "the other one")] if other else [],
        helps=["keep one of the two"],
    )


def _check_one(program: Program, directive: ir.Directive, owner: str) -> Iterator[Diagnostic]:
    span = program.module.span(directive)
    known = DIRECTIVES.get(directive.name)
    if (known.owner if known else "entry") != owner:
        message = (
            f"`.{directive.name}` belongs to {_OWNERS['entry' if owner == 'func' else 'func']}, not {_OWNERS[owner]}"
        )
        yield error("illegal-directive", message, span, f"not for {_OWNERS[owner]}", helps=["remove it"])
        return
    if known is None:
        return
    if not known.since.holds(program.version, program.target):
        yield explain(program, f"`.{directive.name}`", known.since, span, "unavailable-feature")
    for value in directive.arguments:
        if isinstance(value, int) and value not in known.values:
            limits = (
                f"{known.values[0]} to {known.values[-1]}" if len(known.values) < 1000 else f"{known.values[0]} or more"
            )
            message = f"`.{directive.name}` is {value}, expected {limits}"
            yield error("illegal-directive", message, span, f"not {limits}")
