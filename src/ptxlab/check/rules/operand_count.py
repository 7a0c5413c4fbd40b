"""An instruction has too many or too few operands.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    mov.u32 %r2, 1;
    add.u32 %r1, %r2;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    mov.u32 %r2, 1;
    add.u32 %r1, %r2, 1;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.isa import Match
from ptxlab.report import Diagnostic, error, warning

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["operand-count"]:
        assert failure.mismatch is not None
        instruction = failure.instruction
        counts = sorted({n for c in instruction.opcode.candidates for n in _counts(c.expected)})
        wanted = " or ".join(map(str, counts))
        given = len(instruction.operands)
        last = program.module.operand_span(instruction, given - 1) if given > counts[-1] else None
        yield error(
            "operand-count",
            f"`{instruction.opcode.text}` takes {wanted} operand{'s' if wanted != '1' else ''}, {given} given",
            last or program.module.opcode_span(instruction),
            f"{given} operand{'s' if given != 1 else ''} where {wanted} belong" if last is None else "too many",
            notes=[f"legal: `{c.form.syntax}`" for c in instruction.opcode.candidates[:2]],
        )
    yield from _without_barrier(program)


def _without_barrier(program: Program) -> Iterator[Diagnostic]:
    """Asynchronous stores that ptxas takes without the barrier they should report to."""
    for facts in program.functions:
        for at in facts.where(_lacks_barrier):
            instruction = facts.instructions[at]
            yield warning(
                "operand-count",
                f"`{instruction.opcode.text}` names no mbarrier, so it has no completion mechanism",
                program.module.opcode_span(instruction),
                "the third operand is missing",
                helps=["add the address of the mbarrier, `[mbar]`, in the same block's shared memory"],
            )


def _lacks_barrier(match: Match) -> bool:
    """Whether it completes on an mbarrier, and has no operand for it."""
    completes = match.candidate.modifiers.mbarrier_complete_tx_bytes
    return bool(completes) and all(expected.name != "mbar" for expected in match.expected)


def _counts(expected: tuple[object, ...]) -> range:
    required = sum(not getattr(e, "optional", False) for e in expected)
    return range(required, len(expected) + 1)
