"""The modifiers of an instruction do not go together, or one of them is not a modifier of this instruction.

Each instruction takes the modifiers of its syntax lines, in one of the combinations that those lines allow. The message
names the modifier that is too much, the one that is missing, or the rule that the combination breaks, and lists the
forms that come nearest.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .f32 %f<3>;
    mov.f32 %f2, 0f00000000;
    add.wide.f32 %f1, %f2, %f2;
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

from ptxlab import ir
from ptxlab.isa.form import Form
from ptxlab.isa.nearest import missing_part, nearest_forms
from ptxlab.report import Diagnostic, error
from ptxlab.report.nearest import nearest

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["illegal-modifier"]:
        yield explain(program, failure.instruction)


def explain(program: Program, instruction: ir.Instruction) -> Diagnostic:
    """The complaint of the nearest form's own rule, else a modifier that it does not take, else what it misses."""
    opcode = instruction.opcode
    forms = nearest_forms(opcode.text)[:3]
    notes = [f"legal: `{form.syntax}`" for form in forms[:2]]
    opcode_span = program.module.opcode_span(instruction)
    if opcode.candidates:
        complaint = opcode.candidates[0].complaint
        return error(
            "illegal-modifier",
            f"`{opcode.text}` is not legal: {complaint}" if complaint else f"`{opcode.text}` is not legal",
            opcode_span,
            "modifiers that do not go together",
            notes=notes[:1],
        )
    form = forms[0]
    spare = _spare(opcode.modifiers, form)
    if spare is not None:
        word = opcode.modifiers[spare]
        values = [value for slot in form.slots for value in slot.values]
        meant = nearest(word, values)
        again = word in opcode.modifiers[:spare]
        return error(
            "illegal-modifier",
            f"`{opcode.mnemonic}` takes no modifier `.{word}`" + (" twice" if again else " here"),
            program.module.modifier_span(instruction, spare),
            "stands here already" if again else "not a modifier of this form",
            notes=notes,
            helps=[f"did you mean `.{meant}`?"] if meant and not again else [],
        )
    missing = missing_part(form, opcode.modifiers)
    if missing:
        return error(
            "illegal-modifier",
            f"`{opcode.text}` lacks a modifier: {missing}",
            opcode_span,
            "a modifier is missing",
            notes=notes,
        )
    return error(
        "illegal-modifier",
        f"`{opcode.text}` has its modifiers in the wrong place",
        opcode_span,
        "wrong order",
        notes=notes,
    )


def _spare(modifiers: tuple[str, ...], form: Form) -> int | None:
    """The first modifier that finds no free slot in the form."""
    free = [*({name} for name in form.name[1:]), *(set(slot.values) for slot in form.slots)]
    for index, word in enumerate(modifiers):
        place = next((values for values in free if word in values), None)
        if place is None:
            return index
        free.remove(place)
    return None
