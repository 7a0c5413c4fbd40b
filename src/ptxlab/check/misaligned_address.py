"""A constant address is not aligned as the instruction needs it.

An access of n bytes must lie at a multiple of n, `cp.async` at a multiple of the bytes it copies, `ldmatrix` rows and
bulk copies at multiples of 16, an mbarrier at a multiple of 8. ptxas assembles such an address without a word; the GPU
stops the kernel with `misaligned address`. A variable is only as aligned as its `.align` or, without one, its type.

Wrong:

```ptx
.version 8.0
.target sm_80
.shared .align 4 .b8 tile[64];
.entry k() {
    .reg .f32 %f<5>;
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+8];
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.shared .align 16 .b8 tile[64];
.entry k() {
    .reg .f32 %f<5>;
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+16];
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, warning

from .accesses import accesses
from .program import Program

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "mbarrier")


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        for instruction, match in facts.named(*MEMORY):
            for access in accesses(instruction, match):
                pointer = facts.pointers.of_address(instruction.operands[access.operand])
                if pointer is None or pointer.variable.state_space.startswith("param"):
                    continue
                alignment = alignment_of(pointer.variable)
                if alignment % access.align == 0 and pointer.offset % access.align == 0:
                    continue
                declared = program.module.span(pointer.variable)
                by_offset = bool(pointer.offset % access.align)
                yield warning(
                    "misaligned-address",
                    f"`{instruction.opcode.text}` needs an address that is a multiple of {access.align}",
                    program.module.operand_span(instruction, access.operand),
                    f"`{pointer.variable.name}` plus {pointer.offset}"
                    if by_offset
                    else f"`{pointer.variable.name}` is only aligned to {alignment}",
                    others=[Label(declared, f"aligned to {alignment} bytes")] if declared else [],
                    notes=["ptxas does not see it; the GPU stops the kernel with `misaligned address`"],
                    helps=[f"use an offset that is a multiple of {access.align}"]
                    if by_offset
                    else [f"declare it `.align {access.align}`"],
                )


def alignment_of(variable: ir.Variable) -> int:
    """The alignment that a variable's declaration promises."""
    return variable.align or max(1, variable.type.width * variable.vector // 8)
