"""What something needs that the module does not have, and the smallest change that suffices."""

from ptxlab.isa.targets import Since, Target, Version
from ptxlab.report import Diagnostic, Label, Span, error
from ptxlab.report.reader import spell_option

from .program import Program


def explain(
    program: Program,
    what: str,
    needed: Since,
    span: Span | None,
    code: str = "unavailable-instruction",
    instead: str | None = None,
) -> Diagnostic:
    """Say what `what` needs, what the module has, and the smallest change that suffices; `instead` of what is gone."""
    gone = next((step for step in needed.removed if _has_come(step, program)), None)
    if gone is not None:
        return _explain_removal(program, what, gone, span, code, instead)
    version, chip = nearest_home(needed, program.version, program.target)
    short_of_target = not program.target.has(chip)
    header = "target" if short_of_target else "version"
    wanted = f".target {chip}" if short_of_target else f".version {version[0]}.{version[1]}"
    had = program.target_name if short_of_target else f"{program.version[0]}.{program.version[1]}"
    others = []
    declared = program.module.span_of(program.module.header_spans.get(header))
    if declared is not None:
        others = [Label(declared, f"this module {'targets' if short_of_target else 'is PTX'} `{had}`")]
    older = program.version < version
    fix = f"raise the target to `{chip}`" if short_of_target else f"raise the version to `{version[0]}.{version[1]}`"
    if short_of_target and chip.suffix and program.target.number == chip.number:
        fix = f"write `.target {chip}`; `sm_{chip.number}` without the suffix does not have this"
    if short_of_target and program.module.origins:
        fix = f"compile it for `{chip}`: " + spell_option(f"--target {chip}", f'target="{chip}"')
    elif short_of_target and older:
        fix += f" and the version to `{version[0]}.{version[1]}`"
    return error(
        code,
        f"{what} needs `{wanted}`, and this module {'is compiled for' if program.module.origins else 'has'} `{had}`",
        span,
        f"available since {needed}" if len(needed.alternatives) <= 3 else f"available since {_short(needed)}",
        others=others,
        helps=[fix],
    )


def _has_come(step: tuple[Version, Target], program: Program) -> bool:
    version, chip = step
    return program.version >= version and program.target.has(chip)


def _explain_removal(
    program: Program, what: str, gone: tuple[Version, Target], span: Span | None, code: str, instead: str | None
) -> Diagnostic:
    (major, minor), chip = gone
    since = f"PTX {major}.{minor}" + (f" with {chip}" if chip.number > 10 else "")
    declared = program.module.span_of(program.module.header_spans.get("version"))
    had = f"{program.version[0]}.{program.version[1]}"
    return error(
        code,
        f"{what} was removed in {since}, and this module has `.version {had}` and `.target {program.target_name}`",
        span,
        f"removed in {since}",
        others=[] if declared is None else [Label(declared, f"this module is PTX `{had}`")],
        helps=[] if instead is None else [f"use `{instead}`"],
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
