"""A modifier has no effect on its instruction, or is there twice. ptxas accepts it silently.

ptxas reads the modifiers of some instructions in every instruction and ignores them where they mean nothing; the
author expected an effect.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .f32 %f<3>;
    mov.f32 %f2, 0f00000000;
    add.finite.f32 %f1, %f2, %f2;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .f32 %f<3>;
    .reg .pred %p<2>;
    mov.f32 %f2, 0f00000000;
    add.f32 %f1, %f2, %f2;
    testp.finite.f32 %p1, %f1;
    ret;
}
```
"""

from collections import Counter
from collections.abc import Iterator

from ptxlab.isa import Match
from ptxlab.report import Diagnostic, Edit, Help, warning

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        for instruction, match in zip(facts.instructions, facts.matches, strict=True):
            if match is None or match.candidate.in_order:
                continue
            strays = _strays(instruction.opcode.modifiers, match)
            if not strays:
                continue  # an unusual order; it means what it would mean in the usual one
            usual = match.form.spell(match.candidate.chosen)
            span = program.module.opcode_span(instruction)
            yield warning(
                "ignored-modifier",
                f"`.{strays[0]}` has no effect on `{usual}`",
                program.module.modifier_span(instruction, _last(instruction.opcode.modifiers, strays[0])),
                "ptxas ignores it",
                helps=[Help(f"write `{usual}`", (Edit(span, usual),) if span else ())],
            )


def _strays(modifiers: tuple[str, ...], match: Match) -> list[str]:
    """The modifiers that the form does not have."""
    spare = Counter(modifiers)
    spare.subtract(match.form.name[1:])
    spare.subtract(word for word in match.candidate.chosen.values() if word is not None)
    return [word for word, count in spare.items() if count > 0]


def _last(modifiers: tuple[str, ...], word: str) -> int:
    return len(modifiers) - 1 - modifiers[::-1].index(word)
