"""`ptxlab format`: print PTX in its canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ptxlab.cli.compiling import CUDA, refuse_other_languages
from ptxlab.cli.files import (
    STANDARD_INPUT,
    find_files,
    name_of,
    paths_argument,
    read_text,
    with_progress,
    write_file,
)
from ptxlab.cli.findings import show_findings, status_of
from ptxlab.cli.gates import exclude_option, exclusions
from ptxlab.report import PtxError


@click.command("format")
@paths_argument
@click.option("--write", is_flag=True, help="Write the files back instead of printing.")
@click.option("--check", is_flag=True, help="Name the files that are not in canonical form, and change nothing.")
@exclude_option
@click.pass_context
def command(context: click.Context, paths: Sequence[Path], write: bool, check: bool) -> None:
    """Print PTX in its canonical form.

    The text is printed from the program that was read, so it means exactly the same. `-` is standard input.

    \b
    Examples:
      ptxlab format kernel.ptx
      ptxlab format --write kernels/
      ptxlab format --check kernels/
    """
    files = find_files(paths, exclusions())
    if not files:
        click.echo("nothing to format: all files are excluded", err=True)
        context.exit(0)
    for file in files:
        if file.suffix == CUDA:
            raise click.UsageError(f"`format` is for PTX: `{file}` is CUDA C++")
        refuse_other_languages(file)
    if write and check:
        raise click.UsageError("`--write` and `--check` exclude each other")
    if write and STANDARD_INPUT in files:
        raise click.UsageError("standard input can't be written back; leave out `--write`")
    if len(files) > 1 and not (write or check):
        raise click.UsageError(f"there are {len(files)} files: give `--write` or `--check`")
    import ptxlab

    status = 0
    for file, _ in with_progress(files):
        try:
            before = read_text(file)
            text = ptxlab.format(ptxlab.parse(before, name_of(file)))
        except PtxError as wrong:
            show_findings(wrong.diagnostics, name_of(file), to_stderr=True)
            status = max(status, status_of(wrong.diagnostics))
            continue
        changed = text != before
        if check and changed:
            click.echo(f"{name_of(file)} is not in canonical form")
            status = max(status, 1)
        elif write and changed:
            write_file(file, text.encode())
            click.echo(f"formatted {name_of(file)}", err=True)
        elif not (write or check):
            click.echo(text, nl=False)
    context.exit(status)
