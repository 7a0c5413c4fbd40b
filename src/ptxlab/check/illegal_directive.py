"""A directive of a kernel contradicts another, has a value out of range, or does not exist for this target.

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

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.isa.directives import DIRECTIVES
from ptxlab.report import Diagnostic, Label, error

from .program import Program
from .unavailable_instruction import explain


def check(program: Program) -> Iterator[Diagnostic]:
    for function in program.module.functions:
        for directive in function.directives:
            yield from _check_one(program, directive)
        maximum, required = function.directive("maxntid"), function.directive("reqntid")
        if maximum and required:
            span, other = program.module.span(required), program.module.span(maximum)
            yield error(
                "illegal-directive",
                "`.maxntid` and `.reqntid` cannot both be given",
                span,
                "the block size is required here",
                others=[Label(other, "and limited here")] if other else [],
                helps=["keep `.reqntid`, it says more"],
            )


def _check_one(program: Program, directive: ir.Directive) -> Iterator[Diagnostic]:
    known = DIRECTIVES.get(directive.name)
    span = program.module.span(directive)
    if known is None:
        return
    if not known.since.holds(program.version, program.target):
        yield explain(program, f"`.{directive.name}`", known.since, span, "unavailable-feature")
    for value in directive.arguments:
        if isinstance(value, int) and known.positive and value <= 0:
            yield error("illegal-directive", f"`.{directive.name}` is {value}, expected 1 or more", span, "too small")
