"""A function uses tensor memory both for one block and for a pair of blocks.

`.cta_group::1` and `.cta_group::2` of the tcgen05 instructions divide tensor memory in different ways; all of a kernel
must use the same one.

Wrong:

```ptx
.version 8.6
.target sm_100a
.entry k() {
    .shared .b32 slot;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    .reg .b32 %address;
    ld.shared.b32 %address, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %address, 32;
    ret;
}
```

Right:

```ptx
.version 8.6
.target sm_100a
.entry k() {
    .shared .b32 slot;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    .reg .b32 %address;
    ld.shared.b32 %address, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %address, 32;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, error

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        first: tuple[str, ir.Instruction] | None = None
        for at in facts.where(lambda match: match.effects.uses("tensor_memory")):
            instruction = facts.instructions[at]
            group = next((word for word in instruction.opcode.modifiers if word.startswith("cta_group::")), None)
            if group is None:
                continue
            if first is None:
                first = group, instruction
            elif group != first[0]:
                other = program.module.opcode_span(first[1])
                index = instruction.opcode.modifiers.index(group)
                yield error(
                    "mixed-cta-group",
                    f"`{facts.function.title}` uses both `.{first[0]}` and `.{group}`",
                    program.module.modifier_span(instruction, index),
                    f"`.{group}` here",
                    others=[Label(other, f"`.{first[0]}` here")] if other else [],
                    helps=["use one of them in all tcgen05 instructions of the kernel"],
                )
                break
