"""A constant address lies outside the variable that it names.

The distance from the start of a `.shared`, `.local`, `.global` or `.const` variable and the bytes of the access are
both known, and together they leave the variable. ptxas assembles it without a word; the kernel reads or overwrites
whatever lies there.

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

from ..accesses import MEMORY, accesses
from ..program import Program
from ..storage import size_of


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        for instruction, match in facts.named(*MEMORY):
            for access in accesses(instruction, match):
                pointer = facts.pointers.of_address(instruction.operands[access.operand])
                if pointer is None or pointer.variable.linkage == "extern":
                    continue
                size = size_of(pointer.variable)
                if size is None:
                    continue
                if pointer.offset >= 0 and pointer.offset + access.size <= size:
                    continue
                declared = program.module.span(pointer.variable)
                yield warning(
                    "outside-array",
                    f"bytes {pointer.offset} to {pointer.offset + access.size} of `{pointer.variable.name}` "
                    f"are accessed, it has {size}",
                    program.module.operand_span(instruction, access.operand),
                    "outside the variable",
                    others=[Label(declared, f"{size} bytes")] if declared else [],
                    helps=[f"the last {access.size} bytes of it begin at offset {size - access.size}"]
                    if size >= access.size
                    else [f"declare it with {access.size} bytes or more"],
                )
