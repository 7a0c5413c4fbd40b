"""A branch goes to something that is not code, or an indexed branch to something that is not a list of targets.

`bra` takes a label in front of an instruction. `brx.idx` takes the label of a `.branchtargets` list, which must
precede it.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u32 n) {
    .reg .u32 %r<2>;
    ld.param.u32 %r1, [n];
first:
    brx.idx %r1, first;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u32 n) {
    .reg .u32 %r<2>;
    ld.param.u32 %r1, [n];
choices: .branchtargets first, second;
    brx.idx %r1, choices;
first:
    ret;
second:
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.isa import Jump
from ptxlab.report import Diagnostic, Label, error

from ..program import FunctionFacts, Program

_LISTS = (ir.BranchTargets, ir.CallTargets, ir.CallPrototype)  # what has a name as a label has, but is not code


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        if Jump.INDEXED_BRANCH in facts.by_jump or any(isinstance(part, _LISTS) for part in facts.others):
            yield from _check(program, facts)


def _check(program: Program, facts: FunctionFacts) -> Iterator[Diagnostic]:
    labels = facts.function.labels()
    for at in sorted((*facts.by_jump.get(Jump.BRANCH, ()), *facts.by_jump.get(Jump.INDEXED_BRANCH, ()))):
        instruction = facts.instructions[at]
        if facts.matches[at] is None:
            continue
        index = len(instruction.operands) - 1
        operand = instruction.operands[index]
        found = labels.get(operand.name) if isinstance(operand, ir.LabelReference) else None
        if found is None:
            continue
        indexed = instruction.opcode.jump is Jump.INDEXED_BRANCH
        too_late = found.start is not None and instruction.start is not None and found.start > instruction.start
        if isinstance(found, ir.BranchTargets if indexed else ir.Label) and not (indexed and too_late):
            continue
        span, other = program.module.operand_span(instruction, index), program.module.span(found)
        wanted = "a list of `.branchtargets`" if indexed else "a label in front of an instruction"
        yield error(
            "illegal-branch",
            f"`{found.name}` is not {wanted}" if not (indexed and too_late) else f"`{found.name}` comes too late",
            span,
            f"{wanted} belongs here",
            others=[Label(other, "it is declared here")] if other else [],
        )
