"""`ptxlab ptx`: the PTX of CUDA C++, of a kernel in Python, or in a built file."""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.compiling import CUDA, PYTHON, Compiling, compile_file, refuse_options, show_compiler_warnings
from ptxlab.cli.files import STANDARD_INPUT, chosen_target_option, name_of, path_argument, read_object, write_file
from ptxlab.cli.findings import show_findings, status_of
from ptxlab.cli.launching import listed
from ptxlab.report import PtxError

if TYPE_CHECKING:
    from ptxlab.toolchain import EmbeddedProgram

NO_KERNEL = "`{}` has no kernel: none of its names is one of `ptxlab.author`"
_KERNEL = re.compile(r"^\s*(?:\.\w+\s+)*\.entry\s+([\w$%]+)", re.MULTILINE)


@click.command("ptx", cls=Compiling, short_help="Show the PTX of CUDA C++, Python or a built file.")
@path_argument
@chosen_target_option
@click.option("--entry", "--kernel", metavar="NAME", help="The kernel that is meant, where there are several.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
              help="Write to this file instead of printing.")  # fmt: skip
@click.pass_context
def command(context: click.Context, path: Path, target: str | None, entry: str | None, output: Path | None) -> None:
    """Show the PTX of CUDA C++, of a kernel in Python, or in a built file.

    PATH is a .cu file, a .py file with kernels of `ptxlab.author`, which is executed, or a cubin, an object, a library,
    an executable or a fat binary. Of a built file with several, --target and --entry choose one. A cubin has PTX only
    if it was built with -lineinfo.

    \b
    Examples:
      ptxlab ptx kernel.cu --target sm_90a -- -Iinclude
      ptxlab ptx kernels.py --entry saxpy
      ptxlab ptx program -o program.ptx
    """
    try:
        text = ptx_of(path, target, entry)
    except PtxError as wrong:
        show_findings(wrong.diagnostics, name_of(path), to_stderr=True)
        context.exit(status_of(wrong.diagnostics))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_file(output, text.encode())
        click.echo(f"wrote {output}", err=True)


def ptx_of(path: Path, target: str | None, entry: str | None) -> str:
    """The PTX of a file; a usage error says what it needs."""
    if path.suffix == CUDA:
        compilation = compile_file(path, target, entry)
        show_compiler_warnings(compilation.diagnostics, name_of(path))
        assert compilation.text is not None
        return compilation.text
    refuse_options([path])
    if path.suffix == PYTHON:
        return written_by(path, target, entry)
    parts = read_object(path)
    if parts is None:
        kinds = f"expected a `{CUDA}` or `{PYTHON}` file, or one that nvcc built"
        raise click.UsageError(f"`{name_of(path)}` is not compiled to PTX: {kinds}")
    return held_by(path, parts, target, entry)


def held_by(path: Path, parts: Sequence[EmbeddedProgram], target: str | None, entry: str | None) -> str:
    """The PTX in a built file that is meant."""
    from ptxlab.ir.mangled import matches
    from ptxlab.toolchain.header import stated_target

    texts = list(dict.fromkeys(part.text.lstrip("\n") for part in parts if part.text is not None))
    if not texts:
        what = (
            "no PTX, only machine code, which `ptxlab sass` shows" if parts else "neither PTX nor machine code of a GPU"
        )
        raise click.UsageError(f"`{path}` holds {what}")
    named = {text: _KERNEL.findall(text) for text in texts}
    found = [
        text
        for text, names in named.items()
        if target in (None, stated_target(text)) and (entry is None or entry in names or matches(entry, names))
    ]
    if len(found) != 1:
        held = "; ".join(
            f"{stated_target(text)}: {listed(names) if names else 'no kernel'}" for text, names in named.items()
        )
        problem = "none of these is meant" if not found else "choose by `--target` and `--entry`"
        raise click.UsageError(f"`{path}` holds PTX for {held}; {problem}")
    return found[0]


def written_by(path: Path, target: str | None, entry: str | None) -> str:
    """The PTX that a file of Python writes."""
    from ptxlab.author.kernel import Kernel
    from ptxlab.author.module import Module

    if target is not None:
        raise click.UsageError("`--target` is for CUDA C++ and built files: a kernel in Python names its own")
    made = execute(path)
    meant = [one for one in made if isinstance(one, Kernel) and entry in (None, one.name)]
    with raising_usage_errors(path):
        kernels = {id(one.program): one for one in meant}
    modules = [one for one in made if isinstance(one, Module) and id(one.program) not in kernels]
    found = {one.name: one.ptx for one in kernels.values()}
    found |= {", ".join(one.module.entries): one.ptx for one in modules}
    if entry is not None:
        found = {name: text for name, text in found.items() if entry in name.split(", ")}
    if len(found) != 1:
        names = ", ".join(f"`{one.name}`" for one in made if isinstance(one, Kernel))
        raise click.UsageError(f"`--entry` is required: the kernels are {names}" if names else
                               NO_KERNEL.format(path))  # fmt: skip
    return next(iter(found.values()))


def execute(path: Path) -> list[object]:
    """What a file of Python defines; what it raises is a usage error with its line."""
    if path == STANDARD_INPUT or not path.is_file():
        raise click.UsageError(f"`{path}` is not a file")
    sys.path.insert(0, str(path.parent.absolute()))  # as `python PATH` has it
    try:
        with raising_usage_errors(path), redirect_stdout(sys.stderr):  # standard output is for what is asked
            return list(runpy.run_path(str(path), run_name=path.stem).values())
    finally:
        sys.path.pop(0)


@contextmanager
def raising_usage_errors(path: Path) -> Iterator[None]:
    """Have what code of a file of Python raises be a usage error with its line; a `PtxError` says more already."""
    try:
        yield
    except (PtxError, click.UsageError):
        raise
    except Exception as wrong:
        lines = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == str(path)]
        line = getattr(wrong, "lineno", None) or (lines[-1] if lines else None)
        where = f"`{path}`, line {line}" if line else f"`{path}`"
        raise click.UsageError(f"{where}: {type(wrong).__name__}: {wrong}") from None
