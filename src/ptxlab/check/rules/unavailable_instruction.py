"""An instruction, or one of its modifiers, needs a later PTX version or another target than the module declares.

Features come in three kinds: `sm_80` features are on that chip and all later ones, `sm_90a` features only on that very
chip and only when the module says `sm_90a`, `sm_100f` features on the family of that chip.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    cp.async.bulk.commit_group;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_90
.entry k() {
    cp.async.bulk.commit_group;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.isa import opcode
from ptxlab.isa.nearest import nearest_forms
from ptxlab.isa.repairs import additions
from ptxlab.isa.targets import Target, Version
from ptxlab.report import Diagnostic

from ..availability import explain
from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["unavailable-instruction"]:
        assert failure.match is not None
        instruction = failure.instruction
        has = program.version, program.target
        part, needed = failure.match.candidate.unavailable(*has)[0]
        index = instruction.opcode.modifiers.index(part) if part in instruction.opcode.modifiers else None
        module = program.module
        span = module.opcode_span(instruction) if index is None else module.modifier_span(instruction, index)
        what = f"`{instruction.opcode.text}`" if index is None else f"`.{part}` of `{instruction.opcode.mnemonic}`"
        yield explain(
            program, what, needed, span, instead=_instead(instruction.opcode.text, *has) if needed.removed else None
        )


def _instead(text: str, version: Version, target: Target) -> str | None:
    """What to write: the opcode with a modifier more, or the nearest form that there is."""
    for spelling in additions(text).values():
        form = opcode(spelling).candidates[0].form
        if form.since.holds(version, target):
            return f"{spelling} {form.syntax.partition(' ')[2]}".strip()
    forms = (form.syntax for form in nearest_forms(text) if form.since.holds(version, target))
    return next(forms, None)
