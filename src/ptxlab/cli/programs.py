"""Whole programs on the command line: what `ptxlab run program.cu` and `ptxlab exec ./program` share."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.compiling import PROGRAMS, options_given, project_of, show_compiler_warnings, source_folders
from ptxlab.cli.files import STANDARD_INPUT
from ptxlab.cli.findings import show_failure, show_findings, status_of
from ptxlab.cli.gates import failing, wanted
from ptxlab.cli.outcome import ALIKE
from ptxlab.cli.trying import progress_bar, with_replay
from ptxlab.report import Diagnostic, Format, PtxError, render

if TYPE_CHECKING:
    from ptxlab.programs.program import ProgramOptions, ProgramResult
    from ptxlab.prove import LaunchedKernel

_OF_KERNELS = ("entry", "grid", "block", "cluster", "arguments", "settings", "shared")
_OF_BOTH = ("path", "target", "seed", "detectors", "only", "timeout", "gpu", "format", "nvcc", "device", "max_repeats",
            "gpus", "machines", "seeds", "record", "prove")  # fmt: skip
SECONDS_OF_PROOF = 60.0  # of a kernel
_NOT_RUN = ("unsupported-call", "no-ptx", "stripped-program", "low-limit")

nvcc_option = click.option("--nvcc", metavar="OPTIONS", default="", help="Options for the compiler of a whole program.")

gpus_option = click.option(
    "--gpus", metavar="N", type=click.IntRange(min=1, max=16), default=1,
    help="How many GPUs a whole program sees. One that calls NVSHMEM has so many processes, each a PE with a GPU.",
)  # fmt: skip

machines_option = click.option(
    "--machines", metavar="N", type=click.IntRange(min=1, max=16), default=1,
    help="On how many machines the PEs are of a program that calls NVSHMEM; a network is between these.",
)  # fmt: skip

repeats_option = click.option(
    "--max-repeats", metavar="N", type=click.IntRange(min=1),
    help="Run a launch that a program repeats with the same arguments N times at most, as in a benchmark's loop. The "
    "others are counted and left out: what they would compute is missing.",
)  # fmt: skip


prove_option = click.option(
    "--prove", is_flag=True,
    help="Of a whole program, prove each kernel that it launches for all inputs and all grids, as `ptxlab prove` does.",
)  # fmt: skip


def is_program(context: click.Context, path: Path) -> bool:
    """Whether a file is to run as a program: it has a `main()`, or `--nvcc` adds one, and no kernel is asked for."""
    if path == STANDARD_INPUT or path.suffix not in PROGRAMS or _given(context, _OF_KERNELS):
        return False
    if _given(context, ["nvcc"]):
        return True
    from ptxlab.programs.building import has_main

    try:
        return has_main(path)
    except PtxError:  # which reading the file reports
        return False


def _given(context: click.Context, names: Sequence[str]) -> list[str]:
    """Those of the options that are on the command line."""
    said = click.core.ParameterSource.COMMANDLINE
    return [name for name in names if context.get_parameter_source(name) is said]


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM stop what Ctrl-C stops, and then end ptxlab: nothing is left in the folder for temporary files.

    A second one ends it at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_ended = False

    def interrupt(number: int, _: object) -> None:
        nonlocal is_ended
        is_ended = True
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_ended:
            sys.stdout.flush()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)


def check_proofs(given: dict[str, Any]) -> None:
    """Say before a program is built what would be in the way of proofs after it has run."""
    if not given["prove"]:
        return
    from ptxlab.prove import MissingSolverError, require_solver

    if given["format"] not in ("full", "json"):
        raise click.UsageError(f"`--prove` is for `--format full` and `--format json`, not `{given['format']}`")
    try:
        require_solver()
    except MissingSolverError as missing:
        raise click.UsageError(str(missing).removeprefix("prove: ")) from None


@ended_by_sigterm()
def run_source(context: click.Context, nvcc: str, given: dict[str, Any]) -> int:
    """Build a file and run it; the exit status."""
    from ptxlab.programs.building import build

    path: Path = given["path"]
    others = [one for one in context.params if one not in _OF_BOTH]
    if wrong := _given(context, others):
        raise click.UsageError(
            f"`--{wrong[0]}` is for one kernel, and `{path}` runs as a program: name it by `--entry`"
        )
    if given["device"] not in ("auto", "cpu"):
        raise click.UsageError("`--device` is for one kernel: a program runs on the emulator")
    check_proofs(given)
    project = project_of(path)
    try:
        options = [*project.options, *shlex.split(nvcc)]
    except ValueError as problem:
        raise click.UsageError(f"`--nvcc {nvcc}`: {problem}") from None
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        program = Path(folder) / path.stem
        try:
            warnings = build(path, program, given["target"] or project.target, options)
        except PtxError as wrong_source:
            show_failure(wrong_source.diagnostics, str(path), given["format"])
            return status_of(failing(wrong_source.diagnostics, path))
        show_compiler_warnings(warnings, str(path))
        folders = source_folders(path, shlex.split(nvcc))
        return run_and_show([str(program), *options_given()], given, str(path), folders)


def run_and_show(command: Sequence[str], given: dict[str, Any], name: str, folders: Sequence[Path]) -> int:
    """Run a program and show what was found; the exit status."""
    from ptxlab.programs.program import ProgramInterrupted, ProgramOptions

    format: Format = given["format"]
    launch = {"seed": given["seed"], "timeout": given["timeout"],
              "detectors": (given["only"] or True) if given["detectors"] else False}  # fmt: skip
    folder: Path | None = given["record"]
    if folder is not None:
        _make_folder(folder, given["seeds"])
    options = ProgramOptions(given["gpu"], launch, folders, format != "full", gpus=given["gpus"],
                             machines=given["machines"], max_repeats=given["max_repeats"], folder=folder,
                             keep_examples=given["prove"])  # fmt: skip
    sys.stdout.flush()
    is_interrupted = False
    try:
        result = _try_seeds(command, options, given["seeds"] or 1)
    except ProgramInterrupted as stopped:
        result, is_interrupted = stopped.result, True
    except PtxError as wrong:
        show_failure(wrong.diagnostics, name, format)
        if any(one.code in _NOT_RUN for one in wrong.diagnostics):
            return 2
        return status_of(failing(wrong.diagnostics, Path(name)))
    found = wanted(result.findings, Path(name))
    proved = iter(()) if is_interrupted else _proofs(result, given["timeout"])
    proofs: list[LaunchedKernel] = []
    if format == "json":
        proofs += proved
        click.echo(json.dumps(_as_object(result, found, proofs), indent=2))
    else:
        if format == "full":
            click.echo()  # the program's last line may have no end
            click.echo(_summary(result))
            for line in _recorded(folder, result.unrecorded):
                click.echo(line)
            click.echo()
        show_findings(found, name, format, alike=ALIKE)
        for one in proved:
            proofs.append(one)
            click.echo(f"\n{one}")
    if is_interrupted:
        return 130
    return _status(failing(found, Path(name)), result) or int(
        any(one.verdict.level == "counterexample" for one in proofs)
    )


def _proofs(result: ProgramResult, timeout: float | None) -> Iterator[LaunchedKernel]:
    """What is shown of each kernel that a program launched, where that is asked for."""
    if result.examples:
        from ptxlab.prove import prove_launched

        yield from prove_launched(result.examples, timeout or SECONDS_OF_PROOF)


def _make_folder(folder: Path, seeds: int | None) -> None:
    """A folder for recordings, without those of another run; what else is there stays."""
    if seeds is not None:
        raise click.UsageError("`--record` is for one run of a program: choose it by `--seed`")
    if folder.is_file():
        raise click.UsageError(f"`--record {folder}`: of a program, this is a folder, and there is a file of that name")
    folder.mkdir(parents=True, exist_ok=True)
    for old in _recordings(folder):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    for other in folder.glob("[0-9][0-9][0-9]"):
        raise click.UsageError(f"`--record {folder}`: `{other}` is not of ptxlab, and has a name that it would use")


def _recordings(folder: Path) -> list[Path]:
    """What programs recorded to a folder: a file for a launch, a folder with nothing but files of those."""
    parts = [part for part in folder.glob("[0-9][0-9][0-9]") if part.is_dir()]
    full = [part for part in parts if {one.suffix for one in part.iterdir()} == {".ptxtrace"}]
    return sorted([*folder.glob("[0-9][0-9][0-9].ptxtrace"), *full])


def _recorded(folder: Path | None, left_out: int) -> Iterator[str]:
    """How to see what was recorded."""
    for path in _recordings(folder) if folder is not None else ():
        files = len(list(path.iterdir())) if path.is_dir() else 1
        what = f"{files} operations that ran at the same time" if path.is_dir() else "a launch"
        yield f"recorded {what}: ptxlab lab {path}"
    if left_out:
        yield f"{left_out:,} operations were not recorded: there were too many"


def _try_seeds(command: Sequence[str], options: ProgramOptions, count: int) -> ProgramResult:
    """Run a program with each of so many seeds, until one finds something."""
    from ptxlab.programs.program import modules_of, run_program

    modules = modules_of(Path(command[0]), options)
    launch = options.launch or {}
    first = launch["seed"]
    for seed in range(first, first + count):
        with progress_bar(f"seed {seed}, " if count > 1 else "") as progress:
            own = launch | {"seed": seed, "progress": progress}
            result = run_program(command, replace(options, launch=own), modules)
        if result.status or any(one.level != "note" for one in result.findings):
            break
    found = [with_replay(one, seed) for one in result.findings] if count > 1 else result.findings
    return replace(result, findings=found)


def _status(failing: Sequence[Diagnostic], result: ProgramResult) -> int:
    """2 where the program could not run as it is, 1 with findings that fail, else the program's own."""
    if any(one.code in _NOT_RUN for one in result.findings):
        return 2
    return status_of(failing) or (result.status if result.status >= 0 else 1)


def _summary(result: ProgramResult) -> str:
    """`the program ended with status 0: 3 launches of 2 kernels in 0.5 s, as on an H200`"""
    launches = sum(one.count for one in result.launches.values())
    seconds = sum(one.seconds for one in result.launches.values())
    kernels = f" of {len(result.launches)} kernels" if len(result.launches) > 1 else ""
    from ptxlab.programs.findings import signal_name

    ended = f"ended with status {result.status}" if result.status >= 0 else f"was ended by {signal_name(result.status)}"
    work = f"{launches:,} launch{'es' * (launches != 1)}{kernels} in {seconds:.2f} s, as {result.gpu}"
    skipped = f"; {result.skipped:,} of them were not run (--max-repeats)" if result.skipped else ""
    return f"the program {ended}: {work}{skipped}"


def _as_object(
    result: ProgramResult, found: Sequence[Diagnostic], proofs: Sequence[LaunchedKernel]
) -> dict[str, object]:
    whole: dict[str, object] = {
        "status": result.status,
        "gpu": result.gpu,
        "seconds": result.seconds,
        "skipped_launches": result.skipped,
        "kernels": {name: {"launches": one.count, "seconds": one.seconds} for name, one in result.launches.items()},
        "diagnostics": json.loads(render(found, "json")),
    }
    return whole | ({"proofs": [one.as_dict() for one in proofs]} if proofs else {})
