"""`ptxlab check`: report every problem in PTX files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ptxlab.cli.compiling import CUDA, PYTHON, Compiling, refuse_options
from ptxlab.cli.files import (
    STANDARD_INPUT,
    Progress,
    find_files,
    name_of,
    paths_argument,
    read_program,
    size_of,
    target_option,
    with_progress,
    write_file,
)
from ptxlab.cli.findings import format_option, show_findings, show_statistics, status_of
from ptxlab.cli.gates import exclude_option, exclusions, failing, gate_options, wanted
from ptxlab.report import Diagnostic, Format, PtxError, apply_edits, certain_edits

_PASSES = 2  # a byte order mark hides all that follows it


@click.command("check", cls=Compiling)
@paths_argument
@target_option
@click.option("--fix", is_flag=True, help="Apply safe fixes, and report what is left.")
@click.option(
    "--ptxas",
    type=click.Choice(["13.0", "13.4"]),  # `isa.releases` has them, and takes long to import
    help="Call legal what this release accepts; without it, what releases judge differently is a warning.",
)
@gate_options
@exclude_option
@click.option("--diff", metavar="BASE", help="Report only what was introduced since this branch, tag or commit of git.")
@click.option("--statistics", is_flag=True, help="Show how many findings of each code there are, instead of them.")
@format_option
@click.pass_context
def command(
    context: click.Context,
    paths: Sequence[Path],
    target: str | None,
    fix: bool,
    ptxas: str | None,
    diff: str | None,
    statistics: bool,
    format: Format,
) -> None:
    """Report every problem in PTX files.

    Directories are searched for *.ptx; `-` is standard input. A .cu file is compiled first, by nvcc or else by NVRTC,
    whose warnings are among the findings; options for that follow `--`. A .py file is executed, and the kernels of
    `ptxlab.author` that it defines are checked; those that lack a compile-time argument are left out.

    `[tool.ptxlab]` of pyproject.toml may set `select`, `ignore`, `per-file-ignores`, `exclude` and `fail-on`; the
    command line is applied after it. Exits 0 if nothing was found, 1 if something was, 2 if a tool is missing or no
    file can be read.

    \b
    Examples:
      ptxlab check kernel.ptx
      ptxlab check --target sm_90a --format concise kernels/
      ptxlab check --fix kernel.ptx
      ptxlab check --fail-on error --ignore unreachable-code kernels/
      ptxlab check --diff origin/main kernels/
      ptxlab check --ptxas 13.0 kernel.ptx
      ptxlab check gemm.cu --target sm_90a -- -Iinclude -DTILE=128
      ptxlab check kernels.py
    """
    files = find_files(paths, exclusions())
    if not files:
        click.echo("nothing to check: all files are excluded", err=True)
        context.exit(0)
    refuse_options(files)
    if fix and any(file.suffix in (CUDA, PYTHON) for file in files):
        raise click.UsageError("`--fix` mends PTX, so it can't be used with CUDA C++ and Python")
    if fix and STANDARD_INPUT in files:
        raise click.UsageError("`--fix` writes files back, so it can't be used with standard input")
    if fix and diff is not None:
        raise click.UsageError("`--fix` mends all of a file, `--diff` is about a part of it")
    if statistics and format not in ("full", "json"):
        raise click.UsageError(f"`--statistics` has no findings to show as {format}")
    found: list[Diagnostic] = []
    failed: list[Diagnostic] = []
    fixed = 0
    with ExitStack() as stack:
        leave_new = only_introduced(diff, files, target, ptxas, stack) if diff is not None else None
        for file, progress in with_progress(files):
            in_file = wanted(check_file(file, target, progress, ptxas), file)
            for _ in range(_PASSES if fix else 0):
                edits = fix_file(file, in_file)
                in_file = wanted(check_file(file, target, progress, ptxas), file) if edits else in_file
                fixed += edits
            in_file = leave_new(file, in_file) if leave_new is not None else in_file
            found += in_file
            failed += failing(in_file, file)
    if fix:
        count = f"{fixed or 'no'} {'fix' if fixed == 1 else 'fixes'}"
        click.echo(f"applied {count}", err=format != "full")
    name = name_of(files[0]) if len(files) == 1 else f"{len(files)} files"
    if statistics:
        show_statistics(found, name, format)
    else:
        show_findings(found, name, format)
    context.exit(status_of(failed))


def only_introduced(
    base: str, files: Sequence[Path], target: str | None, ptxas: str | None, stack: ExitStack
) -> Callable[[Path, Sequence[Diagnostic]], list[Diagnostic]]:
    """What leaves those of a file's findings that it did not have where `base` and HEAD have parted."""
    from ptxlab.cli.introduced import introduced
    from ptxlab.cli.revision import Revision

    in_repository = [file.absolute().parent for file in files if file != STANDARD_INPUT] or [Path.cwd()]
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="ptxlab-")))
    revision = Revision.before(base, in_repository[0], folder)

    def check_before(file: Path) -> Sequence[Diagnostic]:
        try:
            return check_file(file, target, lambda part: None, ptxas)
        except click.UsageError:  # of a pyproject.toml that was wrong then
            return []

    return lambda file, found: (
        list(found) if file == STANDARD_INPUT else introduced(file, found, revision, check_before)
    )


def check_file(file: Path, target: str | None, progress: Progress, ptxas: str | None = None) -> list[Diagnostic]:
    """All that is wrong with one file, from whether it can be read to the last lint.

    What syntax errors leave of a file is still checked, so that one run reports every wrong instruction.
    """
    from ptxlab.check import check, check_partly

    if file.suffix == PYTHON:
        return check_python(file, target)
    size = max(1, size_of(file))
    try:
        # Reading takes about a third of the time, finding the form of each instruction another.
        module, faults, warnings = read_program(file, target, lambda at: progress(at / size / 3))
    except PtxError as wrong:
        return wrong.diagnostics
    if not faults:
        return [*warnings, *check(module, target, lambda at: progress((1 + at / size) / 3), ptxas)]
    found = [*warnings, *faults, *check_partly(module, target)]
    return sorted(found, key=lambda diagnostic: diagnostic.labels[0].span.start if diagnostic.labels else 0)


def check_python(file: Path, target: str | None) -> list[Diagnostic]:
    """All that is wrong with the kernels that a file of Python defines, once each."""
    from ptxlab.author.kernel import Kernel
    from ptxlab.author.module import Module
    from ptxlab.check import check
    from ptxlab.cli.ptx import NO_KERNEL, execute, raising_usage_errors

    found: dict[Diagnostic, None] = {}
    kernels = [one for one in execute(file) if isinstance(one, Kernel | Module)]
    if not kernels:
        raise click.UsageError(NO_KERNEL.format(file))
    for one in kernels:
        try:
            with raising_usage_errors(file):
                found |= dict.fromkeys(check(one.module, target))
        except PtxError as wrong:  # while it is written
            found |= dict.fromkeys(each for each in wrong.diagnostics if each.code != "missing-argument")
    return list(found)


def fix_file(file: Path, found: Sequence[Diagnostic]) -> int:
    """Write back what the safe fixes make of a file; the number of edits."""
    edits = certain_edits(found)
    if not edits:
        return 0
    before = edits[0].span.source.text
    if file.read_bytes() != before.encode():
        raise click.UsageError(f"`{file}` is not in UTF-8, so `--fix` leaves it alone")
    write_file(file, apply_edits(before, edits).encode())
    return len(edits)
