"""The files that arguments name: paths, directories searched for `*.ptx`, `-` for standard input; read and written.

A `.cu` file is read as the PTX that a compiler makes of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.compiling import (
    CUDA,
    compile_file,
    options_given,
    project_of,
    refuse_options,
    refuse_other_languages,
    source_folders,
)
from ptxlab.report import Diagnostic, PtxError, Source
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from ptxlab.ir import Module
    from ptxlab.toolchain import EmbeddedProgram

# Work that is over in a moment needs no bar.
MANY_FILES, MANY_BYTES = 20, 4_000_000

paths_argument = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True, path_type=Path), metavar="PATH..."
)
path_argument = click.argument(
    "path", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), metavar="PATH"
)

STANDARD_INPUT = Path("-")


def _known_target(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from ptxlab.isa.targets import TARGETS

    if value is None or value in TARGETS:
        return value
    close = nearest(value, TARGETS)
    raise click.BadParameter(f"there is no target `{value}`{f'; did you mean `{close}`?' if close else ''}")


def _known_targets(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str | None]:
    if value is None:
        return [None]
    return [_known_target(context, parameter, name.strip()) for name in value.split(",")]


target_option = click.option(
    "--target",
    metavar="TARGET",
    callback=_known_target,
    help="Use this target, such as sm_90a, instead of the module's own.",
)
cuda_target_option = click.option(
    "--target",
    metavar="TARGET",
    callback=_known_target,
    help="Compile CUDA C++ for this target, such as sm_90a; PTX names its own.",
)
chosen_target_option = click.option(
    "--target",
    metavar="TARGET",
    callback=_known_target,
    help="Compile CUDA C++ for this target, such as sm_90a, or choose what a built file has for it.",
)
targets_option = click.option(
    "--target",
    "--targets",
    "targets",
    metavar="TARGET,...",
    callback=_known_targets,
    help="Use these targets, such as sm_80,sm_90a, instead of the module's own.",
)


def name_of(path: Path) -> str:
    """The name a file has in messages."""
    return "<stdin>" if path == STANDARD_INPUT else str(path)


def ptx_name_of(path: Path) -> str:
    """The name that the PTX of a file has in messages: `kernel.ptx` for `kernel.cu`."""
    return name_of(path.with_suffix(".ptx") if path.suffix == CUDA else path)


def read_module(
    path: Path, target: str | None = None, entry: str | None = None, *, debug_info: bool = False
) -> tuple[Module, list[Diagnostic]]:
    """The program in a file or on standard input, and the compiler's warnings; raises `PtxError` where it is wrong."""
    refuse_options([path])
    module, faults, warnings = read_program(path, target, entry=entry, debug_info=debug_info)
    if faults:
        raise PtxError(faults)
    return module, warnings


def read_program(
    path: Path,
    target: str | None = None,
    progress: Callable[[int], None] | None = None,
    entry: str | None = None,
    *,
    debug_info: bool = False,
) -> tuple[Module, list[Diagnostic], list[Diagnostic]]:
    """The program in a file as far as it can be read, every syntax error, and what the compiler of CUDA C++ warns of.

    Errors in PTX that was compiled from CUDA C++ are on its lines.
    """
    from ptxlab.ir.origin import at_origin
    from ptxlab.syntax import read

    text, warnings = read_ptx(path, target, entry, debug_info=debug_info)
    module, faults = read(text, ptx_name_of(path), progress)
    if path.suffix == CUDA:
        from ptxlab.toolchain import trace

        trace(module, Source(str(path), read_text(path)), source_folders(path, options_given()))
    return module, at_origin(module, faults), warnings


def read_ptx(
    path: Path, target: str | None = None, entry: str | None = None, *, debug_info: bool = False
) -> tuple[str, list[Diagnostic]]:
    """PTX from a file or from standard input; CUDA C++ is compiled for `target`, with the warnings of its compiler."""
    refuse_other_languages(path)
    if path.suffix != CUDA:
        return read_text(path), []
    compilation = compile_file(path, target, entry, debug_info=debug_info)
    assert compilation.text is not None
    return compilation.text, list(compilation.diagnostics)


def read_text(path: Path) -> str:
    """The text of a file or of standard input; raises `PtxError` where it is not text."""
    from ptxlab import syntax

    if path == STANDARD_INPUT:
        return syntax.decode(syntax.read_bytes(sys.stdin.buffer, name_of(path)), name_of(path))
    return syntax.read_text(path)


def read_object(path: Path) -> list[EmbeddedProgram] | None:
    """The PTX and the cubins in a file that nvcc built; None for one that is not such a file."""
    from ptxlab.toolchain import is_object, parts_of

    if path == STANDARD_INPUT:
        return None
    try:
        with path.open("rb") as file:
            return parts_of(path.read_bytes()) if path.is_file() and is_object(file.read(8)) else None
    except OSError:
        return None  # which is said where it is read as text


def write_file(file: Path, data: bytes) -> None:
    """Write a file; a path that can't be written is a usage error."""
    try:
        file.write_bytes(data)
    except OSError as problem:
        raise click.UsageError(f"`{file}` can't be written: {(problem.strerror or str(problem)).lower()}") from None


def find_files(paths: Sequence[Path], exclude: Sequence[str] = ()) -> list[Path]:
    """The files the user means, in the order given, each once; a directory means all `*.ptx` below it.

    Without those that the project or the patterns `exclude` leave out, be they named or found: what runs before a
    commit names each.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path == STANDARD_INPUT or not path.is_dir():
            files[path] = None
            continue
        # Unlike rglob, walk continues past a directory that is closed to us or vanishes meanwhile.
        below = sorted(
            Path(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(".ptx")
        )
        if not below:
            raise click.UsageError(f"there is no `.ptx` file in `{path}` or below it")
        files.update(dict.fromkeys(below))
    return [file for file in files if file == STANDARD_INPUT or not project_of(file).is_excluded(file, exclude)]


def size_of(file: Path) -> int:
    """Bytes to read, as far as that is known before reading."""
    try:
        return 0 if file == STANDARD_INPUT else file.stat().st_size
    except OSError:
        return 0


def _advance(bar: Bar, task: TaskID, done: int, size: int, part: float) -> None:
    bar.update(task, completed=done + part * size)


Progress = Callable[[float], None]


def with_progress(files: Sequence[Path]) -> Iterator[tuple[Path, Progress]]:
    """The files one by one, each with a function that takes which part of it is done.

    On a terminal that moves a progress bar when there is much to do.
    """
    sizes = [size_of(file) for file in files]
    if not sys.stderr.isatty() or (len(files) < MANY_FILES and sum(sizes) < MANY_BYTES):
        for file in files:
            yield file, lambda part: None
        return
    from rich import progress
    from rich.console import Console

    columns = (progress.TextColumn("{task.description}", markup=False), progress.BarColumn())
    console = Console(stderr=True)
    with progress.Progress(
        *columns,
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task("", total=sum(sizes))
        done = 0
        for number, (file, size) in enumerate(zip(files, sizes, strict=True), 1):
            bar.update(task, completed=done, description=f"{number}/{len(files)} {file.name}")
            yield file, partial(_advance, bar, task, done, size)
            done += size
