"""What came of exploring all schedules of a kernel, shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ptxlab.cli.findings import show_findings
from ptxlab.cli.outcome import FIRST, finite, spell_number
from ptxlab.report import Diagnostic, Format, render

if TYPE_CHECKING:
    from ptxlab.emulate.search.explore import Exploration, Outcome
    from ptxlab.ir import Function

SHOWN = 16  # outcomes


def show(kernel: Function, found: Exploration, findings: Sequence[Diagnostic], name: str, format: Format) -> None:
    """Print it in the format that is asked for."""
    if format == "json":
        click.echo(json.dumps(finite(as_object(kernel, found, findings)), indent=2))
        return
    if format == "full":
        for outcome in found.outcomes[:SHOWN]:
            click.echo(f"{outcome.executions:,} of {found.executions:,}: {_spell(kernel, outcome)}")
        if len(found.outcomes) > SHOWN:
            click.echo(f"... and {len(found.outcomes) - SHOWN:,} other outcomes")
        threads = f"{found.threads:,} thread{'s' * (found.threads != 1)}"
        click.echo(f"`{kernel.title}`, {threads}, up to {found.steps:,} accesses: {found.verdict}")
        if findings:
            click.echo()
    show_findings(findings, name, format)


def as_object(kernel: Function, found: Exploration, findings: Sequence[Diagnostic]) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "kernel": kernel.name,
        "verdict": found.verdict,
        "is_complete": found.is_complete,
        "executions": found.executions,
        "redundant": found.redundant,
        "threads": found.threads,
        "steps": found.steps,
        "outcomes": [
            {
                "executions": outcome.executions,
                "schedule": outcome.schedule,
                "arrays": [array.reshape(-1)[:FIRST].tolist() for array in outcome.arrays],
            }
            for outcome in found.outcomes
        ],
        "diagnostics": json.loads(render(findings, "json")),
    }


def _spell(kernel: Function, outcome: Outcome) -> str:
    """`a = 1 0 7, b = 2`"""
    names = [parameter.name for parameter in kernel.parameters]
    parts = []
    for argument, array in zip(outcome.arguments, outcome.arrays, strict=True):
        values = " ".join(map(spell_number, array.reshape(-1)[:FIRST].tolist()))
        parts.append(f"{names[argument]} = {values}{' ...' * (array.size > FIRST)}")
    return ", ".join(parts) or "no array"
