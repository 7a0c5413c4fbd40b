"""A branch goes to a label that is not there, or not in a block around the branch.

A label belongs to the block it stands in: a branch can leave blocks, never enter one. A list of `.branchtargets` must
stand before the `brx.idx` that uses it.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    bra done;
    {
    done:
    }
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    {
        bra done;
    }
done:
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, error

from .program import Program
from .wording import nearest

_BRANCHES = frozenset(("bra", "brx", "call"))


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        yield from _check(program, facts.function)


def _check(program: Program, function: ir.Function) -> Iterator[Diagnostic]:
    chain: list[set[str]] = [set()]
    uses: list[tuple[ir.Instruction | ir.BranchTargets, int, str, tuple[set[str], ...]]] = []
    pending = [iter(function.body or ())]
    while pending:
        for statement in pending[-1]:
            kind = statement.__class__
            if kind is ir.Instruction:
                if statement.opcode.mnemonic in _BRANCHES:
                    for index, operand in enumerate(statement.operands):
                        if isinstance(operand, ir.LabelReference):
                            uses.append((statement, index, operand.name, tuple(chain)))
            elif isinstance(statement, ir.BranchTargets):
                chain[-1].add(statement.name)
                uses += [(statement, 0, name, tuple(chain)) for name in statement.targets]
            elif isinstance(statement, (ir.Label, ir.CallTargets, ir.CallPrototype)):
                chain[-1].add(statement.name)
            elif isinstance(statement, ir.Block):
                chain.append(set())
                pending.append(iter(statement.body))
                break
        else:
            pending.pop()
            chain.pop()
    everywhere = function.labels()
    for statement, index, name, scopes in uses:
        if any(name in scope for scope in scopes):
            continue
        is_instruction = isinstance(statement, ir.Instruction)
        span = program.module.operand_span(statement, index) if is_instruction else program.module.span(statement)
        if name in everywhere:
            yield error("unknown-label", f"label `{name}` stands in a block that this branch is not in", span,
                        "a branch cannot enter a block")  # fmt: skip
        else:
            meant = nearest(name, everywhere)
            yield error("unknown-label", f"there is no label `{name}` in `{function.name}`", span, "not a label here",
                        helps=[f"did you mean `{meant}`?"] if meant else [])  # fmt: skip
