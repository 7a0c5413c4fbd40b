"""No path from the start of the function leads to these instructions.

They follow an unconditional `bra`, `ret` or `exit`, and no branch goes to a label among them. ptxas drops them
silently, so what they were meant to do does not happen. Usually a guard was forgotten in front of the jump, or a
branch goes to another label than was meant. Remove the code, or add a path to it.

A `ret`, `exit`, `trap` or `bra` left over is not reported, nor is what follows a `trap` or a call that never returns:
compilers write such.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 31;
    bra done;
    st.global.u32 [%rd1], %r1;
done:
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 31;
    @%p1 bra done;
    st.global.u32 [%rd1], %r1;
done:
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.isa import Jump
from ptxlab.report import Diagnostic, Label, warning

from ..program import FunctionFacts, Program

_JUMPS = frozenset((Jump.BRANCH, Jump.INDEXED_BRANCH, Jump.RETURN, Jump.EXIT))
_LEAVING = frozenset((Jump.RETURN, Jump.EXIT, Jump.TRAP, Jump.BRANCH))


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        for start, end in _regions(facts):
            yield _explain(program, facts, start, end)


def _regions(facts: FunctionFacts) -> Iterator[tuple[int, int]]:
    """The ranges of instructions that nothing leads to, without those that only leave."""
    reachable = facts.flow.reachable()
    if all(reachable):
        return
    start = None
    for block, is_reached in zip([*facts.flow.blocks, None], [*reachable, True], strict=True):
        if is_reached and start is not None:
            end = block.start if block is not None else len(facts.instructions)
            jumped = facts.instructions[start - 1].opcode.jump in _JUMPS
            if jumped and any(facts.instructions[at].opcode.jump not in _LEAVING for at in range(start, end)):
                yield start, end
            start = None
        elif not is_reached and start is None:
            assert block is not None
            start = block.start


def _explain(program: Program, facts: FunctionFacts, start: int, end: int) -> Diagnostic:
    module = program.module
    first, last, before = facts.instructions[start], facts.instructions[end - 1], facts.instructions[start - 1]
    count = end - start
    jump = module.span(before)
    helps = [f"put a guard in front of `{before.opcode.text}`, branch to a label here, or remove the instructions"]
    notes = []
    if count > 1 and last.start is not None and module.source is not None:
        line = module.source.position(last.start)[0]
        notes = [f"{count} instructions, up to line {line}"]
    return warning(
        "unreachable-code",
        "no path leads to this code",
        module.span(first),
        "never runs",
        others=[Label(jump, "nothing continues past this")] if jump else [],
        notes=notes,
        helps=helps,
    )
