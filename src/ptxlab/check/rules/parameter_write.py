"""A store writes to an input parameter, which is read-only.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u32 n) {
    .reg .u32 %r<2>;
    mov.u32 %r1, 1;
    st.param.u32 [n], %r1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.func (.param .u32 result) f(.param .u32 n) {
    .reg .u32 %r<2>;
    ld.param.u32 %r1, [n];
    st.param.u32 [result], %r1;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, error

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        inputs = {id(parameter) for parameter in facts.function.parameters}
        for at in facts.where(lambda match: any(access.kind == "store" for access in match.effects.accesses)):
            instruction = facts.instructions[at]
            address = instruction.operands[0]
            base = address.base if isinstance(address, ir.Address) else None
            if isinstance(base, ir.VariableReference) and id(base.variable) in inputs:
                declared = program.module.span(base.variable)
                yield error(
                    "parameter-write",
                    f"`{base.name}` is an input parameter and cannot be written",
                    program.module.operand_span(instruction, 0),
                    "read-only",
                    others=[Label(declared, "declared here")] if declared else [],
                )
