"""The guard in front of an instruction is not a predicate.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    mov.u32 %r1, 1;
    @%r1 bra done;
done:
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
done:
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.report import Diagnostic, error

from ..program import Program
from ..wording import described


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["guard-type"]:
        guard = failure.instruction.guard
        assert guard is not None
        yield error(
            "guard-type",
            f"the guard is {described(guard.register)}, expected a `.pred` register",
            program.module.guard_span(failure.instruction),
            "a predicate belongs here",
            helps=["compare it first: `setp.ne.u32 %p1, ..., 0;`"],
        )
