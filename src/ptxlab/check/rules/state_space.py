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
from ptxlab.isa import Match, opcode
from ptxlab.report import Diagnostic, Label, error, warning

from ..program import Program


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
            helps=_helps(failure.instruction, variable, expected.space),
        )
    yield from _misplaced(program)


def _helps(instruction: ir.Instruction, variable: ir.Variable | None, wanted: str | None) -> list[str]:
    """The state space of the variable, where the instruction has a form for it; else a generic address, if one is."""
    if variable is None:
        return []
    words = instruction.opcode.text.split(".")
    there = ".".join(variable.state_space if word == wanted else word for word in words)
    if wanted not in words or opcode(there).candidates:
        return [f"use `.{variable.state_space}` in the instruction"]
    if not variable.state_space.startswith("param"):
        return []
    name = variable.name
    return [f"take its generic address: `mov.b64 %rd, {name}; cvta.param.u64 %rd, %rd;` (in Python, `{name}.generic`)"]


def _misplaced(program: Program) -> Iterator[Diagnostic]:
    """`.param::entry` is for parameters of kernels, `.param::func` for those of functions and calls.

    ptxas minds only `.param::func` for a parameter of a kernel, since PTX 9.1.
    """
    if not any("param::" in spelling for spelling in program.spellings):
        return
    for facts in program.functions:
        parameters = {id(variable) for variable in facts.function.parameters}
        for at in facts.where(lambda match: _parameter_space(match) is not None):
            instruction, match = facts.instructions[at], facts.matches[at]
            word = match and _parameter_space(match)
            address = next((at for at, o in enumerate(instruction.operands) if isinstance(o, ir.Address)), 0)
            variable = _variable(instruction.operands[address])
            if variable is None:
                continue
            of_kernel = facts.function.kind == "entry" and id(variable) in parameters
            if of_kernel != (word == "param::entry"):
                right = "param::entry" if of_kernel else "param::func"
                report = error if of_kernel and program.version > (9, 0) else warning
                yield report(
                    "state-space",
                    f"`{variable.name}` is a parameter of a {'kernel' if of_kernel else 'function'}, not in `.{word}`",
                    program.module.operand_span(instruction, address),
                    f"`.{right}` belongs to it",
                    helps=[f"use `.{right}`, or plain `.param`"],
                )


def _parameter_space(match: Match) -> str | None:
    """The state space of parameters that an instruction accesses, if it says of which."""
    spaces = (access.space for access in match.effects.accesses)
    return next((space for space in spaces if space is not None and space.startswith("param::")), None)


def _variable(operand: ir.Operand) -> ir.Variable | None:
    base: object = operand
    while isinstance(base, (ir.Address, ir.Element)):
        base = base.base
    return base.variable if isinstance(base, ir.VariableReference) else None
