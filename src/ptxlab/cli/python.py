"""`ptxlab python`: PTX as Python that writes it."""

from __future__ import annotations

from pathlib import Path

import click

from ptxlab.cli.compiling import Compiling, show_compiler_warnings
from ptxlab.cli.files import name_of, path_argument, read_module, write_file
from ptxlab.cli.findings import show_findings, status_of
from ptxlab.report import PtxError


@click.command("python", cls=Compiling)
@path_argument
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of printing."
)
@click.pass_context
def command(context: click.Context, path: Path, output: Path | None) -> None:
    """Turn PTX into Python that writes it.

    The Python uses `ptxlab.author`: each instruction is one call, and the module that it makes assembles to the same
    machine code. `-` is standard input.

    \b
    Examples:
      ptxlab python kernel.ptx
      ptxlab python kernel.ptx -o kernel.py
    """
    try:
        module, warnings = read_module(path)
        show_compiler_warnings(warnings, name_of(path))
    except PtxError as wrong:
        show_findings(wrong.diagnostics, name_of(path), to_stderr=True)
        context.exit(status_of(wrong.diagnostics))
    from ptxlab.author.convert import to_python

    text = to_python(module, name_of(path))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_file(output, text.encode())
        click.echo(f"wrote {output}", err=True)
