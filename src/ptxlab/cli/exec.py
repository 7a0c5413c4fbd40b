"""`ptxlab exec`: run a program that is built already, with the emulator as its GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

from ptxlab.cli.compiling import PROGRAMS
from ptxlab.cli.findings import format_option
from ptxlab.cli.gates import gate_options
from ptxlab.cli.launching import detector_options, gpu_option, timeout_option
from ptxlab.cli.programs import (
    check_proofs,
    ended_by_sigterm,
    gpus_option,
    machines_option,
    prove_option,
    repeats_option,
    run_and_show,
)

_BUILD_OPTIONS = "-g -lineinfo"


@click.command("exec", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("program", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--build", metavar="COMMAND", help="Run this first, such as `make`; nvcc then adds line numbers.")
@click.option("--seed", metavar="N", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
              help="Seed of the schedule.")  # fmt: skip
@click.option("--seeds", metavar="N", type=click.IntRange(min=1), help="Try N seeds, until one finds something.")
@click.option("--record", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Write down what each thread executes, for `ptxlab lab FOLDER/000`.")  # fmt: skip
@detector_options
@timeout_option
@gpu_option
@repeats_option
@gpus_option
@machines_option
@prove_option
@gate_options
@format_option
@click.pass_context
def command(
    context: click.Context, /, program: Path, args: tuple[str, ...], build: str | None, **given: object
) -> None:
    """Run a program that was built by nvcc, with its arguments ARGS; its kernels run on the emulator.

    The program's calls of the CUDA runtime and driver are answered by ptxlab; it must have PTX in it, as nvcc puts it
    there unless `code=sm_...` says otherwise. Build it with `-g -lineinfo`, so that findings name lines. Its host code
    runs on this machine, as if it were started without ptxlab.

    Exits 1 if there is a finding, 2 if the program could not be run as it is, else with the program's own status.

    \b
    Examples:
      ptxlab exec ./vectorAdd
      ptxlab exec --build make ./gemm --size 128
    """
    check_proofs(given)
    if build is not None:
        added = f"{os.environ.get('NVCC_APPEND_FLAGS', '')} {_BUILD_OPTIONS}".strip()
        status = subprocess.run(
            build, shell=True, env=os.environ | {"NVCC_APPEND_FLAGS": added}, check=False
        ).returncode
        if status:
            raise click.UsageError(f"`{build}` ended with status {status}")
    if not program.is_file():
        raise click.UsageError(f"there is no program `{program}`")
    if program.suffix in PROGRAMS:
        raise click.UsageError(f"`{program}` is not built yet: `ptxlab run {program}` does that, and runs it")
    if not os.access(program, os.X_OK):
        raise click.UsageError(f"`{program}` is not executable")
    with ended_by_sigterm():
        status = run_and_show([str(program), *args], given, str(program), [])
    context.exit(status)
