"""The modifiers of an instruction do not go together, or one of them is not a modifier of this instruction.

Each instruction takes the modifiers of its syntax lines, in one of the combinations that those lines allow. The message
names the modifier that is too much, the one that is missing, or the rule that the combination breaks, and lists the
forms that come nearest. `testp.f32` without a property is refused, too; ptxas takes it, and computes nothing.

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
from ptxlab.isa.repairs import additions, completed, fitting
from ptxlab.isa.table import forms_of
from ptxlab.report import Diagnostic, Edit, Help, error
from ptxlab.report.nearest import distance, nearest

from ..program import Program

_LISTED = 8  # words that may be missing


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["illegal-modifier"]:
        yield explain(program, failure.instruction)


def explain(program: Program, instruction: ir.Instruction) -> Diagnostic:
    """The constraint that the nearest form violates, else a modifier that it does not take, else what it misses."""
    opcode = instruction.opcode
    forms = nearest_forms(opcode.text)[:3]
    notes = list(dict.fromkeys(f"legal: `{form.syntax}`" for form in forms[:2]))
    opcode_span = program.module.opcode_span(instruction)
    if opcode.candidates:
        violation = opcode.candidates[0].violation
        return error(
            "illegal-modifier",
            f"`{opcode.text}` is not legal: {violation}" if violation else f"`{opcode.text}` is not legal",
            opcode_span,
            "modifiers that do not go together",
            notes=notes[:1],
        )
    form = forms[0]
    spare = _spare(opcode.modifiers, form)
    if spare is not None:
        return _explain_spare(program, instruction, spare, notes)
    missing = missing_part(form, opcode.modifiers)
    if missing:
        whole = completed(opcode.text)
        if whole is None and 1 < len(words := additions(opcode.text)) <= _LISTED:
            missing = "one of " + ", ".join(f"`.{word}`" for word in words)
        edits = (Edit(opcode_span, whole),) if whole and opcode_span else ()
        return error(
            "illegal-modifier",
            f"`{opcode.text}` lacks a modifier: {missing}",
            opcode_span,
            "a modifier is missing",
            notes=notes,
            helps=[Help(f"write `{whole}`", edits)] if whole else [],
        )
    return error(
        "illegal-modifier",
        f"`{opcode.text}` has its modifiers in the wrong order",
        opcode_span,
        "wrong order",
        notes=notes,
    )


def _explain_spare(program: Program, instruction: ir.Instruction, spare: int, notes: list[str]) -> Diagnostic:
    """A modifier is not one of the form; what fits in its place was probably meant."""
    opcode, word = instruction.opcode, instruction.opcode.modifiers[spare]
    span = program.module.modifier_span(instruction, spare)
    fits = fitting(opcode.text, spare)
    known = {value for form in forms_of(opcode.mnemonic) for slot in form.slots for value in slot.values}
    meant = nearest(word, fits) or nearest(word, known - {word})
    label, helps = "not a modifier of this form", []
    if word in known and len(fits) == 1:
        label, helps = f"with the other modifiers, only `.{fits[0]}` is legal here", [Help(f"write `.{fits[0]}`")]
    elif meant is not None and word not in known:
        is_certain = meant in fits and distance(word, meant) == 1
        edits = (Edit(span, f".{meant}"),) if is_certain and span is not None else ()
        helps = [Help(f"did you mean `.{meant}`?", edits)]
    elif word in opcode.modifiers[:spare]:
        label = "is already there"
    return error(
        "illegal-modifier",
        f"`{opcode.mnemonic}` takes no modifier `.{word}` here",
        span,
        label,
        notes=notes,
        helps=helps,
    )


def _spare(modifiers: tuple[str, ...], form: Form) -> int | None:
    """The first modifier that finds no free slot in the form."""
    free = [*({name} for name in form.name[1:]), *(set(slot.values) for slot in form.slots)]
    for index, word in enumerate(modifiers):
        free_slot = next((values for values in free if word in values), None)
        if free_slot is None:
            return index
        free.remove(free_slot)
    return None
