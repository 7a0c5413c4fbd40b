"""What was found, shown to the user, and the exit status it means."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TextIO, get_args

import click

from ptxlab.explain.rendering import render
from ptxlab.project.selection import MACHINE, MISUSE
from ptxlab.report import Diagnostic, Format, summary

LISTED = 12  # of many: lines, or kernels, that are named

format_option = click.option(
    "--format",
    "format",
    type=click.Choice(get_args(Format)),
    default="full",
    show_default=True,
    help="Full text for people, one line each for editors, JSON for programs, SARIF for code scanning, or the "
    "annotations of GitHub Actions.",
)


def has_color(stream: TextIO) -> bool:
    """Whether color is wanted: on terminals, or where FORCE_COLOR is set, and not where NO_COLOR is."""
    if os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR"):
        return True
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_findings(
    found: Sequence[Diagnostic],
    name: str,
    format: Format = "full",
    *,
    to_stderr: bool = False,
    alike: int | None = None,
) -> None:
    """Print the diagnostics; the full format counts them at its end, and shows `alike` of those that say the same."""
    color = has_color(sys.stderr if to_stderr else sys.stdout)
    shown, more = first_of_each(found, alike) if format == "full" and alike is not None else (found, [])
    text = render(shown, format, color)
    if format == "full":
        text += "".join(f"\n{line}\n" for line in more)
        if not found or any(one.code not in MACHINE for one in found):
            text += "\n" * bool(found) + summary(found, name) + "\n"
    click.echo(text, nl=False, err=to_stderr, color=color)


def show_statistics(found: Sequence[Diagnostic], name: str, format: Format = "full") -> None:
    """Print how many findings of each code there are, most first."""
    from ptxlab.cli.table import table

    count = Counter((one.code, one.level) for one in found)
    fixable = Counter((one.code, one.level) for one in found if any(help.edits for help in one.helps))
    ordered = sorted(count.items(), key=lambda one: (-one[1], one[0]))
    if format == "json":
        import json

        listed = [{"code": code, "level": level, "count": number, "fixable": fixable[code, level]}
                  for (code, level), number in ordered]  # fmt: skip
        click.echo(json.dumps(listed, indent=2))
        return
    rows = [[f"{number:,}", level, code, f"{fixable[code, level]:,} fixable" if fixable[code, level] else ""]
            for (code, level), number in ordered]  # fmt: skip
    if rows:
        click.echo("\n".join(table([["count", "level", "code", ""], *rows])) + "\n")
    click.echo(summary(found, name))


def status_of(found: Sequence[Diagnostic]) -> int:
    """The exit status that findings mean: 2 where nothing was checked yet, because of how or where it was asked.

    An error or a warning is something to act on, or to allow on its line; a note is not.
    """
    found = [one for one in found if one.level != "note"]
    return (2 if all(map(is_misuse, found)) else 1) if found else 0


def is_misuse(found: Diagnostic) -> bool:
    """Whether a finding means that nothing was checked, because of how or where it was asked."""
    from ptxlab.syntax import UNREADABLE

    return found.code in MISUSE or found.code in UNREADABLE


def show_failure(found: Sequence[Diagnostic], name: str, format: Format) -> None:
    """Say why nothing came out; programs get an object, as they do when something does."""
    if format == "json":
        import json

        click.echo(json.dumps({"diagnostics": json.loads(render(found, "json"))}, indent=2))
    else:
        show_findings(found, name, format)


def first_of_each(found: Sequence[Diagnostic], most: int) -> tuple[list[Diagnostic], list[str]]:
    """The first `most` of those that say the same, and for each group a text on where the others are."""
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    shown = []
    for one in found:
        group = groups.setdefault((one.code, one.message), [])
        group.append(one)
        if len(group) <= most:
            shown.append(one)
    return shown, [_spell_others(group[most:]) for group in groups.values() if len(group) > most]


def _spell_others(group: Sequence[Diagnostic]) -> str:
    lines = [str(line) for line in sorted({one.line for one in group if one.line is not None})]
    named = ", ".join(lines[:LISTED]) + ", ..." * (len(lines) > LISTED)
    where = f"on line{'s' * (len(lines) > 1)} {named}; " if lines else ""
    return f"{len(group)} more of `{group[0].code}`: {group[0].message}\n  {where}`--format concise` lists them"
