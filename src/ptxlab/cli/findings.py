"""What was found, shown to the user, and the exit status it means."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO, get_args

import click

from ptxlab.report import Diagnostic, Format, render, summary

_MACHINE = ("missing-tool", "no-gpu")  # what is wrong is this machine, not the file
_MISUSE = ("bad-argument", "bad-launch", "no-estimate", *_MACHINE)
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
    """Whether colour is wanted: on terminals, or where FORCE_COLOR is set, and not where NO_COLOR is."""
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
        if not found or any(one.code not in _MACHINE for one in found):
            text += "\n" * bool(found) + summary(found, name) + "\n"
    click.echo(text, nl=False, err=to_stderr, color=color)


def status_of(found: Sequence[Diagnostic]) -> int:
    """The exit status that findings mean: 2 where nothing was checked yet, because of how or where it was asked.

    An error or a warning is something to act on, or to allow on its line; a note is not.
    """
    from ptxlab.syntax import UNREADABLE

    found = [one for one in found if one.level != "note"]
    return (2 if all(one.code in _MISUSE or one.code in UNREADABLE for one in found) else 1) if found else 0


def show_failure(found: Sequence[Diagnostic], name: str, format: Format) -> None:
    """Say why nothing came out; programs get an object, as they do when something does."""
    if format == "json":
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
