"""No instruction has this name.

The first word of an instruction must be one that PTX has. ptxas says `Not a name of any known instruction`; ptxlab also
names the instruction that was probably meant.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    addd.u32 %r1, %r2, 1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    mov.u32 %r2, 0;
    add.u32 %r1, %r2, 1;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.isa.table import heads
from ptxlab.report import Diagnostic, error
from ptxlab.report.nearest import nearest

from ..program import Program, may_branch

_UNFOLLOWED = "it may be meant for a branch: what depends on the paths through `{}` is checked once it is right"


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["unknown-instruction"]:
        opcode = failure.instruction.opcode
        meant = nearest(opcode.mnemonic, heads())
        yield error(
            "unknown-instruction",
            f"there is no instruction `{opcode.mnemonic}`",
            program.module.modifier_span(failure.instruction, -1),
            "no instruction of PTX has this name",
            notes=[_UNFOLLOWED.format(failure.function.title)] if may_branch(failure.instruction) else [],
            helps=[f"did you mean `{meant}`?"] if meant else [],
        )
