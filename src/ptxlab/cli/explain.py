"""`ptxlab explain`: the page of a rule, the forms of an instruction, a word of PTX, or what a descriptor says."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.encoded_input import is_encoded, read_encoded
from ptxlab.cli.findings import has_color

if TYPE_CHECKING:
    from ptxlab.explain import Page

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
              help="Text for people, or JSON for programs.")  # fmt: skip
def command(subject: str | None, form: str | None, format: str, **how: object) -> None:
    """Print the page of a rule, the forms of an instruction, what a word is, or what a descriptor or tensor map says.

    SUBJECT is the code of a diagnostic, an opcode with as many of its modifiers as you like, a special register, a
    directive, a term of the glossary, or a number: a matrix descriptor of wgmma or tcgen05, an instruction descriptor,
    or a tensor map as 256 digits or in a file. A number that violates a constraint exits 1. Without it, the rules are
    listed.

    \b
    Examples:
      ptxlab explain divergent-barrier
      ptxlab explain mma.sync
      ptxlab explain cvt.e4m3x2
      ptxlab explain %tid
      ptxlab explain "shared memory"
      ptxlab explain 0x4000404000010040
    """
    from ptxlab.explain import explain

    if subject is None:
        list_rules(format)
        return
    if form is not None or is_encoded(subject):
        explain_number(subject, form, format, how)
        return
    try:
        page = explain(subject)
    except LookupError as unknown:
        if Path(subject).is_file():
            explain_number(subject, form, format, how)
            return
        raise click.UsageError(str(unknown.args[0])) from None
    if format == "json":
        _print_json(page.as_dict())
        return
    color = has_color(sys.stdout)
    for line in styled(page):
        click.echo(line, color=color)


def styled(page: Page) -> Iterator[str]:
    """The lines of a page as a terminal shows them: as wide as it is, with the syntax of each form in bold."""
    from ptxlab.explain.instructions import INDENT

    if page.kind == "diagnostic":
        yield fit(page.text, get_terminal_size().columns) if sys.stdout.isatty() else page.text
        return
    if page.kind == "word":
        yield fit(page.text, get_terminal_size().columns if sys.stdout.isatty() else WIDTH)
        return
    for line in page.text.split("\n"):
        is_syntax = line.startswith(INDENT) and line[len(INDENT) :][:1].strip() and line.endswith(";")
        yield INDENT + click.style(line[len(INDENT) :], bold=True) if is_syntax else line


def explain_number(subject: str, form: str | None, format: str, how: dict[str, Any]) -> None:
    """Print what a number or a tensor map says, and exit 1 where it violates a constraint."""
    from ptxlab import explain

    group = how.pop("cta_group")
    try:
        said = explain(read_encoded(subject, form), form, cta_group=int(group) if group else None, **how)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    if format == "json":
        _print_json(said.as_dict())
    else:
        click.echo(said.text(get_terminal_size().columns if sys.stdout.isatty() else WIDTH))
    if said.violations:
        click.get_current_context().exit(1)


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2))


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


def list_rules(format: str) -> None:
    """One line a rule: its code and the first line of its page."""
    from ptxlab.explain import pages, summary_of

    found = sorted(pages().items())
    if format == "json":
        listed = [{"code": code, "summary": summary_of(page)} for code, page in found]
        _print_json(listed)
        return
    width = max(len(code) for code, _ in found)
    color = has_color(sys.stdout)
    for code, page in found:
        click.echo(f"{click.style(code.ljust(width), bold=True)}  {page.partition(chr(10))[0]}", color=color)
