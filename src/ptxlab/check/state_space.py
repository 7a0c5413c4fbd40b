"""An instruction names one state space and its address a variable of another.

Wrong:

```ptx
.version 8.0
.target sm_80
.shared .u32 tile[32];
.entry k() {
    .reg .u32 %r<2>;
    ld.global.u32 %r1, [tile];
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.shared .u32 tile[32];
.entry k() {
    .reg .u32 %r<2>;
    ld.shared.u32 %r1, [tile];
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, error

from .program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["state-space"]:
        mismatch = failure.mismatch
        assert mismatch is not None
        expected = mismatch.problem.expected
        assert expected is not None
        variable = _variable(failure.instruction.operands[failure.operand])
        span = program.module.span(variable) if variable else None
        wanted = f"`.{expected.space}`" if expected.space else "a generic address"
        yield error(
            "state-space",
            f"`{variable.name if variable else 'the address'}` is not in {wanted}, "
            f"which `{failure.instruction.opcode.text}` accesses",
            program.module.operand_span(failure.instruction, failure.operand),
            f"an address in {wanted} belongs here",
            others=[Label(span, f"declared in `.{variable.state_space}`")] if span and variable else [],
            helps=[f"use `.{variable.state_space}` in the instruction"] if variable else [],
        )


def _variable(operand: ir.Operand) -> ir.Variable | None:
    base: object = operand
    while isinstance(base, (ir.Address, ir.Element)):
        base = base.base
    return base.variable if isinstance(base, ir.VariableReference) else None
