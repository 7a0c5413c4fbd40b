"""A kernel declares more shared memory than the target lets it have.

Shared variables with a size count, those of the functions that the kernel calls too: 48 KB is the limit, whatever the
hardware has. Targets with an `a` have all of it, 227 KB (99 KB on `sm_120a` and `sm_121a`). To use more elsewhere,
declare one `.extern .shared` array of open size and ask for its bytes at launch.

Wrong:

```ptx
.version 8.0
.target sm_80
.shared .align 16 .b8 tile[65536];
.entry k() {
    .reg .u32 %r<2>;
    mov.u32 %r1, 1;
    st.shared.u32 [tile], %r1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.extern .shared .align 16 .b8 tile[];
.entry k() {
    .reg .u32 %r<2>;
    mov.u32 %r1, 1;
    st.shared.u32 [tile], %r1;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.isa.targets import Target
from ptxlab.report import Diagnostic, Label, error

from ..program import FunctionFacts, Program
from ..storage import size_of

KILOBYTE = 1024


def check(program: Program) -> Iterator[Diagnostic]:
    most = limit(program.target)
    module = program.module
    shared = [variable for variable in module.variables if _is_shared(variable)]
    if sum(map(_bytes, [*shared, *(v for facts in program.functions for v in _declared(facts))])) <= most:
        return
    calls = program.calls
    named = {id(facts): [*_declared(facts), *_named(facts)] for facts in program.functions}
    for kernel in program.functions:
        if kernel.function.kind != "entry":
            continue
        used = {id(v): v for facts in calls.reached_from(kernel) for v in named[id(facts)]}
        total = sum(map(_bytes, used.values()))
        if total > most:
            largest = max(used.values(), key=_bytes)
            declared = module.span(largest)
            yield error(
                "excessive-shared-memory",
                f"`{kernel.function.title}` uses {total} bytes of shared memory, `{program.target_name}` has {most}",
                module.name_span(kernel.function),
                "too much shared memory",
                others=[Label(declared, f"{_bytes(largest)} bytes")] if declared else [],
                helps=["declare an `.extern .shared` array of open size, and give its bytes at launch"],
            )


def limit(target: Target) -> int:
    """The bytes of shared memory that ptxas lets a kernel declare."""
    return target.shared_memory if target.suffix == "a" else 48 * KILOBYTE


def _is_shared(variable: ir.Variable) -> bool:
    return variable.state_space.partition("::")[0] == "shared"


def _bytes(variable: ir.Variable) -> int:
    return size_of(variable) or 0


def _declared(facts: FunctionFacts) -> Iterator[ir.Variable]:
    """The shared variables that a function declares, used or not."""
    for statement in facts.others:
        if isinstance(statement, ir.Declaration):
            yield from filter(_is_shared, statement.variables)


def _named(facts: FunctionFacts) -> Iterator[ir.Variable]:
    """The shared variables that instructions of a function name."""
    # Operands are shared between instructions.
    operands = {id(operand): operand for instruction in facts.instructions for operand in instruction.operands}
    for operand in operands.values():
        base = operand.base if isinstance(operand, (ir.Address, ir.Element, ir.Sum)) else operand
        base = base.base if isinstance(base, ir.Element) else base
        if isinstance(base, ir.VariableReference) and _is_shared(base.variable):
            yield base.variable
