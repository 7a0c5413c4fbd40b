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

from ptxlab.isa.targets import Since, Target, Version
from ptxlab.report import Diagnostic, Label, Span, error

from .program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["unavailable-instruction"]:
        assert failure.match is not None
        instruction = failure.instruction
        part, needed = failure.match.candidate.unavailable(program.version, program.target)[0]
        index = instruction.opcode.modifiers.index(part) if part in instruction.opcode.modifiers else None
        module = program.module
        span = module.opcode_span(instruction) if index is None else module.modifier_span(instruction, index)
        what = f"`{instruction.opcode.text}`" if index is None else f"`.{part}` of `{instruction.opcode.mnemonic}`"
        yield explain(program, what, needed, span)


def explain(
    program: Program, what: str, needed: Since, span: Span | None, code: str = "unavailable-instruction"
) -> Diagnostic:
    """Say what `what` needs, what the module has, and the smallest change that suffices."""
    version, chip = nearest_home(needed, program.version, program.target)
    short_of_target = not program.target.has(chip)
    header = "target" if short_of_target else "version"
    wanted = f".target {chip}" if short_of_target else f".version {version[0]}.{version[1]}"
    had = program.target_name if short_of_target else f"{program.version[0]}.{program.version[1]}"
    others = []
    place = program.module.span_of(program.module.places.get(header))
    if place is not None:
        others = [Label(place, f"this module {'targets' if short_of_target else 'is PTX'} `{had}`")]
    older = program.version < version
    remedy = f"raise the target to `{chip}`" if short_of_target else f"raise the version to `{version[0]}.{version[1]}`"
    if short_of_target and chip.suffix and program.target.number == chip.number:
        remedy = f"say `.target {chip}`; `sm_{chip.number}` without the suffix leaves this out"
    if short_of_target and older:
        remedy += f" and the version to `{version[0]}.{version[1]}`"
    return error(
        code,
        f"{what} needs `{wanted}`, this module says `{had}`",
        span,
        f"available since {needed}" if len(needed.alternatives) <= 3 else f"available since {_short(needed)}",
        others=others,
        helps=[remedy],
    )


def nearest_home(needed: Since, version: Version, target: Target) -> tuple[Version, Target]:
    """The alternative that asks for the least change."""

    def cost(alternative: tuple[Version, Target]) -> tuple[bool, int, bool, Version]:
        at, chip = alternative
        return not target.has(chip), abs(chip.number - target.number), at > version, at

    return min(needed.alternatives, key=cost)


def _short(needed: Since) -> str:
    chips = ", ".join(dict.fromkeys(str(chip) for _, chip in needed.alternatives))
    first = min(version for version, _ in needed.alternatives)
    return f"PTX {first[0]}.{first[1]}, on {chips}"
