"""A module declares more constant memory than there is.

All `.const` variables of a module share 64 KB, each at its alignment, those inside functions and those that nothing
uses too. Larger tables belong in `.global` memory, read with `ld.global.nc`.

Wrong:

```ptx
.version 8.0
.target sm_80
.const .align 4 .f32 filter[20000];
.entry k() {
    .reg .f32 %f<2>;
    ld.const.f32 %f1, [filter];
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.global .align 4 .f32 filter[20000];
.entry k() {
    .reg .f32 %f<2>;
    ld.global.nc.f32 %f1, [filter];
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, error

from ..program import Program
from ..storage import alignment_of, size_of

MOST = 65536  # bytes


def check(program: Program) -> Iterator[Diagnostic]:
    total = 0
    for variable in _constants(program):
        align, size = alignment_of(variable), size_of(variable) or 0
        if size <= MOST and variable.linkage == "extern":  # another module has it
            continue
        total = -(-total // align) * align + size
        if total > MOST:
            yield error(
                "excessive-constant-memory",
                f"the module has more than {MOST} bytes of constant memory with `{variable.name}`",
                program.module.span(variable),
                f"{size} bytes",
                helps=["put it into `.global`, and read it with `ld.global.nc`"],
            )
            return


def _constants(program: Program) -> Iterator[ir.Variable]:
    inside = (
        variable
        for facts in program.functions
        for statement in facts.others
        if isinstance(statement, ir.Declaration)
        for variable in statement.variables
    )
    for variable in (*program.module.variables, *inside):
        if variable.state_space == "const" and variable.type.kind != "o":
            yield variable
