"""`ptxlab explain`: the page of a rule, the forms of an instruction, or what a descriptor says."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.encoded_input import is_encoded, read_encoded
from ptxlab.cli.findings import has_color
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.isa.form import Form, Slot
    from ptxlab.isa.targets import Since, Target
    from ptxlab.toolchain import Advisory

WIDTH = 100  # of lines that are not for a terminal


@click.command("explain", short_help="Print the page of a rule or of an instruction.")
@click.argument("subject", required=False)
@click.option("--as", "form", type=click.Choice(["descriptor", "instruction", "tensor-map"]),
              help="What a number is; by default, its length says it.")  # fmt: skip
@click.option("--target", type=click.Choice(["sm_90a", "sm_100a", "sm_103a"]),
              help="Whose matrix descriptor it is: of wgmma or tcgen05.")  # fmt: skip
@click.option("--kind", metavar="KIND", help="Of an instruction descriptor, such as f16 or mxf4nvf4.")
@click.option("--cta-group", type=click.Choice(["1", "2"]), help="Of an instruction descriptor.")
@click.option("--ws", is_flag=True, help="It is the instruction descriptor of a tcgen05.mma.ws.")
@click.option("--format", "format", type=click.Choice(["full", "json"]), default="full", show_default=True,
              help="Of a number: text for people, or JSON for programs.")  # fmt: skip
def command(subject: str | None, form: str | None, format: str, **how: Any) -> None:
    """Print the page of a rule, the forms of an instruction, or what a descriptor or a tensor map says.

    SUBJECT is the code of a diagnostic, an opcode with as many of its modifiers as you like, or a number: a matrix
    descriptor of wgmma or tcgen05, an instruction descriptor, or a tensor map as 256 digits or in a file. A number that
    violates a constraint exits 1. Without it, the rules are listed.

    \b
    Examples:
      ptxlab explain divergent-barrier
      ptxlab explain mma.sync
      ptxlab explain cvt.e4m3x2
      ptxlab explain 0x4000404000010040
    """
    lines: Iterator[str]
    if subject is None:
        lines = list_rules()
    elif form is not None or is_encoded(subject):
        explain_number(subject, form, format, how)
        return
    elif page := pages().get(subject):
        lines = iter([fit(page, get_terminal_size().columns) if sys.stdout.isatty() else page])
    elif forms := find_forms(subject):
        lines = explain_forms(forms)
    elif Path(subject).is_file():
        explain_number(subject, form, format, how)
        return
    else:
        raise click.UsageError(f"there is no rule and no instruction `{subject}`{question(subject)}")
    color = has_color(sys.stdout)
    for line in lines:
        click.echo(line, color=color)


def explain_number(subject: str, form: str | None, format: str, how: dict[str, Any]) -> None:
    """Print what a number or a tensor map says, and exit 1 where it violates a constraint."""
    from ptxlab import explain

    group = how.pop("cta_group")
    try:
        said = explain(read_encoded(subject, form), form, cta_group=int(group) if group else None, **how)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    if format == "json":
        click.echo(json.dumps(said.as_dict(), indent=2))
    else:
        click.echo(said.text(get_terminal_size().columns if sys.stdout.isatty() else WIDTH))
    if said.violations:
        click.get_current_context().exit(1)


def fit(page: str, width: int) -> str:
    """A page with its paragraphs and lists in lines of this width; examples stay as they are.

    >>> print(fit("one two three\\n\\n- four\\n  five six", 9))
    one two
    three
    <BLANKLINE>
    - four
      five
      six
    """
    found: list[str] = []
    paragraph: list[str] = []
    in_example = False
    for line in [*page.split("\n"), ""]:
        is_fence = line.startswith("```")
        if paragraph and (not line or is_fence or line.startswith("- ")):
            indent = "  " if paragraph[0].startswith("- ") else ""
            found.append(_filled(" ".join(part.strip() for part in paragraph), width, indent))
            paragraph = []
        if in_example or is_fence or not line:
            found.append(line)
        else:
            paragraph.append(line)
        in_example ^= is_fence
    return "\n".join(found[:-1])


def _filled(text: str, width: int, indent: str) -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def pages() -> dict[str, str]:
    """The page of each code that a diagnostic can have."""
    from ptxlab.author.pages import PAGES as IN_PYTHON
    from ptxlab.check.rules import rules_by_code
    from ptxlab.emulate.explain.pages import pages as findings
    from ptxlab.estimate.pages import PAGES as OF_ESTIMATES
    from ptxlab.gpu.pages import PAGES as OF_GPUS
    from ptxlab.litmus.pages import PAGES as OF_LITMUS
    from ptxlab.measure.pages import PAGES as OF_MEASURING
    from ptxlab.programs.pages import PAGES as OF_PROGRAMS
    from ptxlab.syntax.pages import PAGES as OF_FILES
    from ptxlab.toolchain import ADVISORIES
    from ptxlab.toolchain.pages import PAGES as OF_TOOLS

    own = {code: cleandoc(rule.__doc__ or "") for code, rule in rules_by_code().items()}
    advised = {advisory.code: advisory_page(advisory) for advisory in ADVISORIES}
    others = IN_PYTHON | OF_ESTIMATES | OF_GPUS | OF_LITMUS | OF_MEASURING | OF_PROGRAMS | OF_TOOLS | OF_FILES
    return advised | others | findings() | own


def advisory_page(advisory: Advisory) -> str:
    """What ptxas says, what that means, and what to do."""
    parts = (advisory.message, advisory.explanation, advisory.help)
    return "\n\n".join(part if part.startswith("ptxas") else part[0].upper() + part[1:] for part in parts if part)


def list_rules() -> Iterator[str]:
    """One line a rule: its code and the first sentence of its page."""
    found = pages()
    width = max(map(len, found), default=0)
    for code, page in sorted(found.items()):
        yield f"{click.style(code.ljust(width), bold=True)}  {page.partition(chr(10))[0]}"


def find_forms(spelling: str) -> list[Form]:
    """The forms that an opcode can be; it may leave out modifiers, have them in any order, and operands after it."""
    from ptxlab.isa import opcode
    from ptxlab.isa.table import forms_of

    spelling = spelling.partition(" ")[0].rstrip(";")
    head, *rest = spelling.split(".")
    if complete := [candidate.form for candidate in opcode(spelling).candidates]:
        return complete
    return [form for form in forms_of(head) if all(part in words(form) for part in rest)]


def words(form: Form) -> set[str]:
    """Every modifier that a form can have."""
    return {*form.name, *(value for slot in form.slots for value in slot.values)}


def explain_forms(forms: Iterable[Form]) -> Iterator[str]:
    """What the forms do, how each is spelled, and since when it is there."""
    for number, (text, group) in enumerate(groupby(forms, key=lambda form: form.text)):
        if number:
            yield ""
        yield text
        for form in group:
            yield ""
            yield "    " + click.style(f"{form.syntax};", bold=True)
            for slot in form.slots:
                if not slot.flag:
                    yield from explain_slot(slot)
            yield f"        since {spell_since(form.since)}"


def explain_slot(slot: Slot) -> Iterator[str]:
    """The values of a slot; those that came later than the form are on lines of their own."""
    from ptxlab.isa.targets import ALWAYS

    by_since: dict[Since, list[str]] = {}
    for value, since in slot.values.items():
        by_since.setdefault(since, []).append(f".{value}")
    left = f"        .{slot.name} = "
    for since in sorted(by_since, key=lambda since: since != ALWAYS):
        later = "" if since == ALWAYS else f" (since {spell_since(since)})"
        yield f"{left}{', '.join(by_since[since])}{later}"
        left = " " * len(left)


def spell_since(since: Since) -> str:
    """Availability as text: `PTX 8.0 on sm_90 or later`, `PTX 8.0 on sm_90a`, `PTX 8.8 on the family of sm_100f`."""
    by_version = groupby(since.alternatives, key=lambda alternative: alternative[0])
    return "; ".join(
        f"PTX {major}.{minor} on {', '.join(spell_target(target) for _, target in group)}"
        for (major, minor), group in by_version
    )


def spell_target(target: Target) -> str:
    """What a target covers: itself, its family, or itself and all later ones."""
    return {"a": f"{target}", "f": f"the family of {target}"}.get(target.suffix, f"{target} or later")


def question(subject: str) -> str:
    """A question that names what the user may have meant."""
    from ptxlab.isa.table import forms_of, heads

    head = subject.partition(".")[0]
    known = heads()
    if head in known:
        there = {word for form in forms_of(head) for word in words(form)}
        unknown = [part for part in subject.split(".")[1:] if part not in there]
        missing = " or ".join(f"`.{part}`" for part in unknown) or "all of these modifiers"
        near = [match for part in unknown if (match := nearest(part, there))]
        meant = f"; did you mean {' and '.join(f'`.{part}`' for part in near)}?" if near else ""
        return f": no form of `{head}` has {missing}{meant}"
    close = nearest(subject.lower(), [*pages(), *known]) or nearest(head.lower(), known)
    return f"; did you mean `{close}`?" if close else ""
