"""What was found, shown to the user, and the exit status it means."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from ptxlab.report import Diagnostic, Format, render, summary

format_option = click.option(
    "--format",
    "format",
    type=click.Choice(["full", "concise", "json"]),
    default="full",
    show_default=True,
    help="Full text for people, one line each for editors, or JSON for programs.",
)


def has_color(stream: TextIO) -> bool:
    """Whether colour is wanted: on terminals only, and not when NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_findings(found: Sequence[Diagnostic], name: str, format: Format = "full", *, to_stderr: bool = False) -> None:
    """Print the diagnostics; in the full format the last line counts them."""
    color = has_color(sys.stderr if to_stderr else sys.stdout)
    text = render(found, format, color)
    if format == "full":
        text += "\n" * bool(found) + summary(found, name) + "\n"
    click.echo(text, nl=False, err=to_stderr, color=color)
