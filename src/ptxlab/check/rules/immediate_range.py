"""A constant operand is outside the range that the instruction allows.

ptxas accepts any count of arrivals of `mbarrier.init`. The manual allows 1 to 2^20 - 1, which is what an mbarrier can
hold; so does this rule. Of the number of a barrier, and of how many threads it waits for, ptxas reads the low 32 bits
alone, and takes `bar.sync 4294967296` for barrier 0; this rule reads all.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    bar.sync 16;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    bar.sync 15;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Match, opcode
from ptxlab.isa.repairs import fitting
from ptxlab.report import Diagnostic, error

from ..program import Failure, Program, is_allowed, limits

_OF_THE_MANUAL = "ptxas accepts it; the manual gives this range, which is what an mbarrier can hold"


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["immediate-range"]:
        assert failure.match is not None
        expected = limits(failure.match, failure.instruction)[failure.operand]
        limited = next((e for e in (expected, *expected.inner) if e.allowed is not None), expected)
        yield error(
            "immediate-range",
            f"operand {failure.operand + 1} of `{failure.instruction.opcode.text}` is out of range",
            program.module.operand_span(failure.instruction, failure.operand),
            f"expected {limited.describe()}",
            notes=[_OF_THE_MANUAL] if failure.match.effects.does("mbarrier", "initialize") else [],
            helps=_other_opcode(failure),
        )


def _other_opcode(failure: Failure) -> list[str]:
    """The one opcode, with another word for a modifier, that takes the operands as they are."""
    instruction = failure.instruction
    shapes = tuple(shape_of(operand) for operand in instruction.operands)
    found = []
    for index in range(len(instruction.opcode.modifiers)):
        for word in fitting(instruction.opcode.text, index):
            words = list(instruction.opcode.modifiers)
            words[index] = word
            other = opcode(".".join((instruction.opcode.mnemonic, *words)))
            match = other.match(shapes)
            if isinstance(match, Match) and all(map(is_allowed, limits(match, instruction), instruction.operands)):
                found.append(f"`{other.text}` takes it")
    return found if len(found) == 1 else []
