"""A constant address is not aligned as the instruction needs it.

An access of n bytes must be at a multiple of n: all elements of a vector together, all the bytes of a `cp.async`. Rows
of `ldmatrix` and bulk copies are at multiples of 16, an mbarrier at a multiple of 8, a tile of a tensor copy in shared
memory at a multiple of 128, a tensor map at a multiple of 64. ptxas assembles any other address without a warning; the
GPU stops the kernel. A variable is only as aligned as its `.align` or, without one, its type.

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
from ptxlab.isa import Match
from ptxlab.isa.extent import TENSOR_MAP
from ptxlab.report import Diagnostic, Label, Span, warning

from ..accesses import AddressOperand
from ..program import Program
from ..storage import alignment_of


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        for instruction, match, access, variable, offset in facts.known_accesses:
            span = program.module.operand_span(instruction, access.operand)
            if variable is None:
                if offset % access.align:
                    yield _explain(instruction, access, span, f"{offset} is not", [], _by_offset(access))
                continue
            # ptxas cuts loads of parameters into what their alignment allows; a tensor map is used in place.
            is_map = match.effects.extents[match.expected[access.operand].name] == TENSOR_MAP
            if variable.state_space.startswith("param") and not is_map:
                continue
            alignment = alignment_of(variable)
            # Memory that the launch adds starts at a multiple of more than its declaration says, and what nvcc gives to
            # `wmma` is declared with the alignment of an element.
            is_vague = variable.linkage == "extern" or _is_matrix(match)
            needed = min(access.align, alignment) if is_vague else access.align
            declared = program.module.span(variable)
            others = [Label(declared, f"aligned to {alignment} bytes")] if declared else []
            if offset % needed:
                text = f"`{variable.name}` plus {offset}"
                yield _explain(instruction, access, span, text, others, _by_offset(access))
            elif alignment % needed:
                text = f"`{variable.name}` is only aligned to {alignment}"
                yield _explain(instruction, access, span, text, others, f"declare it `.align {access.align}`")


def _is_matrix(match: Match) -> bool:
    """Whether the lanes of a warp access a matrix, of which the text of the instruction shows where it starts only."""
    return match.effects.converges and any(access.bytes is None for access in match.effects.accesses)


def _by_offset(access: AddressOperand) -> str:
    return f"use an offset that is a multiple of {access.align}"


def _explain(
    instruction: ir.Instruction, access: AddressOperand, span: Span | None, label: str, others: list[Label], help: str
) -> Diagnostic:
    return warning(
        "misaligned-address",
        f"`{instruction.opcode.text}` needs an address that is a multiple of {access.align}",
        span,
        label,
        others=others,
        notes=["ptxas does not see it; the GPU stops the kernel with `misaligned address`"],
        helps=[help],
    )
