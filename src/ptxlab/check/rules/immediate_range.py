"""A constant operand is outside the range that the instruction allows.

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

from ptxlab.report import Diagnostic, error

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["immediate-range"]:
        assert failure.match is not None
        expected = failure.match.expected[failure.operand]
        limits = next((e for e in (expected, *expected.inner) if e.allowed is not None), expected)
        yield error(
            "immediate-range",
            f"operand {failure.operand + 1} of `{failure.instruction.opcode.text}` is out of range",
            program.module.operand_span(failure.instruction, failure.operand),
            f"expected {limits.describe()}",
        )
