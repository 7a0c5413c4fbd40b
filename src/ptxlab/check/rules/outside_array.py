"""A constant address is outside the variable that it names.

The distance from the start of a `.shared`, `.local`, `.global` or `.const` variable and the bytes of the access are
both known, and together they leave the variable. ptxas assembles it without a warning; the kernel reads or overwrites
whatever is there.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    .shared .u32 tile[32];
    ld.shared.u32 %r1, [tile+128];
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    .shared .u32 tile[32];
    ld.shared.u32 %r1, [tile+124];
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.report import Diagnostic, Label, warning

from ..program import Program
from ..storage import size_of


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        for instruction, _, access, variable, offset in facts.known_accesses:
            size = None if variable is None or variable.linkage == "extern" else size_of(variable)
            if variable is None or size is None or 0 <= offset <= size - access.size:
                continue
            declared = program.module.span(variable)
            yield warning(
                "outside-array",
                f"bytes {offset} to {offset + access.size} of `{variable.name}` are accessed, it has {size}",
                program.module.operand_span(instruction, access.operand),
                "outside the variable",
                others=[Label(declared, _bytes(size))] if declared else [],
                helps=[f"an access of {_bytes(access.size)} is inside up to offset {size - access.size}"]
                if size >= access.size
                else [f"declare it with {_bytes(access.size)} or more"],
            )


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
