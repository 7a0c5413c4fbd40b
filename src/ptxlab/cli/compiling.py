"""CUDA C++ on the command line: its compiler's options, after `--` and in pyproject.toml, and the PTX it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.project import Project, ProjectError
from ptxlab.report import Diagnostic, PtxError

if TYPE_CHECKING:
    from ptxlab.toolchain import Compilation

CUDA, PYTHON = ".cu", ".py"
PROGRAMS = (CUDA, ".cpp", ".cc", ".cxx", ".c")  # what nvcc makes a program of, if it has a `main()`
_NOT_PTX = {*PROGRAMS, ".CU", ".cuh", ".h", ".hpp"} - {CUDA}
_GIVEN = "ptxlab.options"  # in the context: the words after `--`
_TO_PTXAS = ("-Xptxas", "--ptxas-options")


class Compiling(click.Command):
    """A command that takes options of a compiler after `--`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the words after `--` from the command's own options and arguments."""
        own, given = args, []
        if "--" in args:
            own, given = args[: args.index("--")], args[args.index("--") + 1 :]
        context.meta[_GIVEN] = tuple(given)
        return super().parse_args(context, own)

    def collect_usage_pieces(self, context: click.Context) -> list[str]:
        """Show that there is something after `--`."""
        return [*super().collect_usage_pieces(context), "[-- COMPILER OPTIONS]"]


def options_given() -> tuple[str, ...]:
    """The words after `--` of this command."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_GIVEN, ()) if context is not None else ()


def refuse_options(files: Sequence[Path]) -> None:
    """Refuse words after `--` where nothing is compiled."""
    if options_given() and not any(file.suffix == CUDA for file in files):
        raise click.UsageError("what follows `--` goes to the compiler of CUDA C++, and there is no `.cu` file")


def refuse_other_languages(path: Path) -> None:
    """Refuse a file of Python or C++ where PTX or CUDA C++ is expected."""
    if path.suffix == PYTHON:
        raise click.UsageError(
            f"`{path}` is Python: `ptxlab ptx {path}` writes the PTX of its kernels; `ptxlab check` reads it as it is"
        )
    if path.suffix in _NOT_PTX:
        raise click.UsageError(
            f"`{path}` is C++ by its name: kernels are compiled from files that end in `.cu`, and `ptxlab run` takes a "
            "`main()` in `.cpp` and `.c` too"
        )


def ptxas_options(path: Path) -> list[str]:
    """The options for ptxas after `--`: all of them for PTX, those after `-Xptxas` for CUDA C++."""
    given = options_given()
    if path.suffix != CUDA:
        return list(given)
    return [word for flag, word in pairwise(given) if flag in _TO_PTXAS]


def has_debug_info() -> bool:
    """Whether the words after `--` of this command ask for debug information."""
    from ptxlab.toolchain.compilation import DEBUG_INFO

    return not DEBUG_INFO.isdisjoint(options_given())


def compile_file(path: Path, target: str | None, entry: str | None, *, debug_info: bool = False) -> Compilation:
    """The PTX of a `.cu` file; raises `PtxError` where it is wrong.

    `entry` with template arguments is made of its template; with `debug_info` it is not optimized, and names variables.
    """
    from ptxlab.ir.mangled import ELLIPSIS
    from ptxlab.toolchain import compile_cuda
    from ptxlab.toolchain.compilation import DEFAULT_TARGET

    project = project_of(path)
    options = ["-G" if debug_info else "-lineinfo", *project.options, *_without_ptxas(options_given())]
    wanted = [entry] if entry is not None and entry.endswith(">") and ELLIPSIS not in entry else []
    compilation = compile_cuda(path, target or project.target or DEFAULT_TARGET, options, instantiate=wanted)
    if compilation.text is None:
        raise PtxError(compilation.diagnostics)
    return compilation


def show_compiler_warnings(found: Sequence[Diagnostic], name: str) -> None:
    """Print what the compiler of CUDA C++ warned of, beside an output that is not about findings."""
    from ptxlab.cli.findings import show_findings

    if found:
        show_findings(found, name, to_stderr=True)


def project_of(path: Path) -> Project:
    """What the project of a file sets; a table that is wrong is a usage error."""
    try:
        return Project.of(path)
    except ProjectError as wrong:
        raise click.UsageError(str(wrong)) from None


def source_folders(path: Path, options: Sequence[str]) -> list[Path]:
    """Where sources are whose text may be shown: beside a file, in folders of its project, and that `options` name."""
    from ptxlab.toolchain.source_files import named_folders

    project = project_of(path)
    root = None if project.folder is None else project.folder.resolve()
    below = [one for one in named_folders(project.options) if root is not None and one.is_relative_to(root)]
    return [path.resolve().parent, *below, *named_folders(options)]


def _without_ptxas(options: Sequence[str]) -> list[str]:
    """The options that are the compiler's own."""
    return [
        word
        for at, word in enumerate(options)
        if word not in _TO_PTXAS and (at == 0 or options[at - 1] not in _TO_PTXAS)
    ]
