"""The modifiers stand in another order than the manual's, or one stands twice. ptxas lets it pass.

The program means what it would mean in the usual order, but other tools that read PTX may refuse it.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .f32 %f<3>;
    mov.f32 %f2, 0f00000000;
    add.f32.rn %f1, %f2, %f2;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .f32 %f<3>;
    mov.f32 %f2, 0f00000000;
    add.rn.f32 %f1, %f2, %f2;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.report import Diagnostic, Edit, Help, Label, warning

from .program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        for instruction, match in zip(facts.instructions, facts.matches, strict=True):
            if match is None or match.candidate.in_order:
                continue
            usual = match.form.spell(match.candidate.chosen)
            span = program.module.opcode_span(instruction)
            edits = (Edit(span, usual),) if span else ()
            strays = [word for word in instruction.opcode.modifiers if f".{word}" not in f".{usual}."]
            if strays:
                index = instruction.opcode.modifiers.index(strays[0])
                yield warning(
                    "modifier-order",
                    f"`.{strays[0]}` has no effect on `{usual}`",
                    program.module.modifier_span(instruction, index),
                    "ptxas ignores it",
                    helps=[Help(f"write `{usual}`", edits)],
                )
                continue
            yield Diagnostic(
                "note",  # legal, and common in CUDA's own headers
                "modifier-order",
                f"`{instruction.opcode.text}` is usually written `{usual}`",
                (Label(span, "modifiers in an unusual order"),) if span else (),
                helps=(Help(f"write `{usual}`", edits),),
            )
