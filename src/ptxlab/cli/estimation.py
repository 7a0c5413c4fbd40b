"""An estimate on the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ptxlab.report import Format

if TYPE_CHECKING:
    from ptxlab.estimate import Estimate


def show(found: Estimate, format: Format) -> None:
    """Print an estimate, as text or for programs."""
    click.echo(json.dumps(asdict(found), indent=2) if format == "json" else str(found))
