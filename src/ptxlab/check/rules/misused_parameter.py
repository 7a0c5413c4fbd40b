"""A `.param` variable that a function declares for its calls is used as if it were memory.

It is where the arguments or the result of a call go, a register or a piece of stack. So its address
cannot be taken, and a load or store that names it is always executed: it has no guard. Guard the value, or branch
around the whole call. Parameters of the function itself have addresses, and may be read under a guard.

Wrong:

```ptx
.version 8.0
.target sm_80
.func f(.param .u32 n) { ret; }
.entry k() {
    .reg .pred %p<2>;
    .reg .u32 %r<2>;
    .param .u32 argument;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 7;
    @%p1 st.param.u32 [argument], %r1;
    call f, (argument);
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.func f(.param .u32 n) { ret; }
.entry k() {
    .reg .pred %p<2>;
    .reg .u32 %r<3>;
    .param .u32 argument;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 7;
    selp.u32 %r2, %r1, 0, %p1;
    st.param.u32 [argument], %r2;
    call f, (argument);
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.isa import Operation
from ptxlab.report import Diagnostic, Label, error

from ..program import Program

ADDRESS_TAKERS = (Operation.COPY, Operation.ADDRESS)


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        declared = {
            id(variable)
            for statement in facts.others
            if isinstance(statement, ir.Declaration)
            for variable in statement.variables
            if variable.state_space.partition("::")[0] == "param"
        }
        if not declared:
            continue
        takers = [facts.instructions[at] for at in facts.where(lambda match: match.effects.computes in ADDRESS_TAKERS)]
        users = [facts.instructions[at] for at in facts.where(lambda match: bool(match.effects.accesses))]
        guarded = [instruction for instruction in users if instruction.guard is not None]
        for instruction, takes_address in (*((i, True) for i in takers), *((i, False) for i in guarded)):
            for index, operand in enumerate(instruction.operands):
                named = _named(operand, takes_address)
                if named is not None and id(named.variable) in declared:
                    yield _explain(program, instruction, index, named.variable, takes_address)


def _named(operand: ir.Operand, takes_address: bool) -> ir.VariableReference | None:
    """The variable that `[x]`, `x[3]` or, where an address is taken, `x` names."""
    base = operand.base if isinstance(operand, (ir.Address, ir.Element, ir.Sum)) else operand
    base = base.base if isinstance(base, ir.Element) else base
    is_named = takes_address or isinstance(operand, (ir.Address, ir.Element))
    return base if isinstance(base, ir.VariableReference) and is_named else None


def _explain(
    program: Program, instruction: ir.Instruction, index: int, variable: ir.Variable, takes_address: bool
) -> Diagnostic:
    declared = program.module.span(variable)
    others = [Label(declared, "declared for calls here")] if declared else []
    span = program.module.operand_span(instruction, index)
    if takes_address:
        return error("misused-parameter", f"`{variable.name}` is a parameter of a call and has no address", span,
                     "its address is taken", others=others,
                     helps=["use a `.local` variable, and copy it"])  # fmt: skip
    return error("misused-parameter",
                 f"`{variable.name}` is a parameter of a call, so it is not accessed under a guard", span,
                 "the access has a guard", others=others,
                 helps=["guard the value with `selp`, or branch around the whole call"])  # fmt: skip
