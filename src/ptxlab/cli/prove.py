"""`ptxlab prove`: is a kernel right for all inputs and all grids?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ptxlab.cli.arguments import arguments_for
from ptxlab.cli.compiling import Compiling
from ptxlab.cli.files import cuda_target_option, name_of, read_module
from ptxlab.cli.findings import show_failure, status_of
from ptxlab.cli.launching import check_first, choose, launch_options, required_block, time_limit, timeout_option
from ptxlab.cli.plain_arguments import Known
from ptxlab.report import KernelError, PtxError
from ptxlab.report.render import render


@click.command("prove", cls=Compiling, short_help="Prove that a kernel has no race and no bad access, for any size.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@cuda_target_option
@launch_options
@click.option("--assume", metavar="CONDITION", multiple=True,
              help="What may be assumed of the arguments and the grid, as 'n <= len(x)'; may be repeated.")  # fmt: skip
@click.option("--bounds/--no-bounds", default=True, show_default=True,
              help="Show that accesses are in bounds of their array or variable, or assume it.")  # fmt: skip
@click.option("--once", metavar="NAME", multiple=True,
              help="Show that each element of an array is written, by one store; may be repeated.")  # fmt: skip
@click.option("--initialized", is_flag=True, help="Show that shared memory is written before it is read.")
@timeout_option
@click.option("--explain", is_flag=True, help="Print the outline of the proof too.")
@click.option("--format", "format", type=click.Choice(["full", "json", "sarif"]), default="full",
              show_default=True, help="Text for people, JSON for programs, or SARIF for code scanning.")  # fmt: skip
@click.pass_context
def command(context: click.Context, /, file: Path, format: str, explain: bool, **given: Any) -> None:
    """Prove that a kernel has no data race, no access out of bounds or misaligned, and no barrier that is not reached.

    The block is fixed; the proof holds for every grid, all integer arguments, all contents of arrays and any number of
    turns of loops. How long arrays are is said by `--assume`, or guessed from an example launch (`--grid` and
    `--arg`, as for `ptxlab run`), which is run first. The answers: proved, with all that is assumed; a counterexample,
    which is a run on the emulator that goes wrong; or not proved, with the lines and what is in the way.

    Exits 0 if it is proved, 1 if there is a counterexample, 2 if it is not proved.

    \b
    Examples:
      ptxlab prove saxpy.ptx --block 256 --assume 'n <= len(x)' --assume 'n <= len(y)'
      ptxlab prove gemm.ptx --block 32,32 --grid 2,3 \\
          --arg f32[64,80] --arg f32[80,96] --arg f32[64,96] --arg 64 --arg 96 --arg 80
    """
    from ptxlab.prove import ContractError, MissingSolverError, prove

    if given["settings"]:
        raise click.UsageError("a proof does not follow `--set` yet")
    name = name_of(file)
    try:
        with time_limit(given["timeout"], name):
            module, _ = read_module(file, given["target"] if file.suffix == ".cu" else None, given["entry"])
            check_first(module)
            kernel = choose(module, given["entry"], file)
        known: Known = {}
        made = [one.make((given["seed"], number), known) for number, one in
                enumerate(arguments_for(kernel, given["arguments"]))]  # fmt: skip
        found = prove(
            kernel, made or None, grid=given["grid"], block=given["block"] or required_block(kernel),
            shared=given["shared"], cluster=given["cluster"], assume=given["assume"], bounds=given["bounds"],
            once=given["once"], initialized=given["initialized"], timeout=given["timeout"] or 120.0,
        )  # fmt: skip
    except (PtxError, KernelError) as wrong:
        show_failure(wrong.diagnostics, name, "full")
        context.exit(max(status_of(wrong.diagnostics), 2))
    except (ContractError, MissingSolverError) as wrong:
        raise click.UsageError(str(wrong).removeprefix("prove: ")) from None
    if format == "json":
        click.echo(json.dumps(found.as_dict(), indent=2))
    elif format == "sarif":
        source = None if module.origins else module.source  # else lines are those of what it was compiled from
        click.echo(render(found.diagnostics(source), "sarif"), nl=False)
    else:
        click.echo(found.explained() if explain else str(found))
    context.exit({"proved": 0, "counterexample": 1}.get(found.level, 2))
