"""`ptxlab equal`: are two kernels the same function?"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from types import FunctionType
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.arguments import arguments_for, parse_argument
from ptxlab.cli.compiling import Compiling
from ptxlab.cli.files import cuda_target_option, name_of, read_module
from ptxlab.cli.findings import show_failure, status_of
from ptxlab.cli.launching import (
    check_first,
    choose,
    extent,
    launch_options,
    required_block,
    time_limit,
    timeout_option,
)
from ptxlab.cli.plain_arguments import Argument, Known
from ptxlab.report import KernelError, PtxError

if TYPE_CHECKING:
    from ptxlab.equal import Verdict
    from ptxlab.ir import Function

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _arguments(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> list[Argument]:
    return [parse_argument(text, "--arg-b") for text in value]


@click.command("equal", cls=Compiling, short_help="Say whether two kernels are the same function.")
@click.argument("a", type=_FILE, metavar="A")
@click.argument("b", type=_FILE, metavar="B")
@cuda_target_option
@launch_options
@click.option("--entry-b", metavar="NAME", help="The kernel of B, or its function, if it has another name.")
@click.option("--grid-b", metavar="X,Y,Z", callback=extent, help="The grid of B, if it is another.")
@click.option("--block-b", metavar="X,Y,Z", callback=extent, help="The block of B, if it is another.")
@click.option("--cluster-b", metavar="X,Y,Z", callback=extent, help="The cluster of B, if it is another.")
@click.option("--shared-b", metavar="BYTES", type=click.IntRange(min=0), help="Dynamic shared memory of B.")
@click.option("--arg-b", "arguments_b", metavar="TYPE=VALUE", multiple=True, callback=_arguments,
              help="An argument of B, if they are others; =x is an array that --arg x:... has named.")  # fmt: skip
@click.option("--output", "outputs", metavar="NAME", multiple=True,
              help="An array to compare, by the name of A's parameter; by default all that are written.")  # fmt: skip
@click.option("--symbol", "symbols", metavar="NAME", multiple=True,
              help="An array of integers whose values are open, too.")  # fmt: skip
@click.option("--tolerance", metavar="X", type=click.FloatRange(min=0), default=1e-5, show_default=True,
              help="How near is near, as a part of the largest element.")  # fmt: skip
@click.option("--assume-paths", is_flag=True,
              help="Where a branch depends on the values of floats, mean those that take the same way.")  # fmt: skip
@click.option("--lab", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
              help="Write a page with both runs side by side, where they part.")  # fmt: skip
@timeout_option
@click.option("--format", "format", type=click.Choice(["full", "json"]), default="full", show_default=True,
              help="Text for people, or JSON for programs.")  # fmt: skip
@click.pass_context
def command(context: click.Context, /, a: Path, b: Path, format: str, **given: Any) -> None:
    """Say whether two kernels are the same function.

    Both run once on the emulator; then what they compute is compared as expressions of their inputs. All arrays of
    floats are open: the answer holds for all their values, at these shapes, integers and numbers. The answers, from
    strong to weak: same bits; same function up to rounding (reassociation, contraction, conversions); numerically near;
    different, with the operations where the two part; or not decided, with the line that is in the way: a branch or an
    address that depends on the value of an input, integer operations on its bits.

    Arguments are as for `ptxlab run`. B has those of A unless `--arg-b` says otherwise. B may be a Python file with a
    function of NumPy or torch, which takes arrays by the names of A's parameters; it is run, and must be trusted.

    Exits 0 if the two are the same function, 1 if they are near or different, 2 if it is not decided or could not be
    run.

    \b
    Examples:
      ptxlab equal naive.ptx tiled.ptx --grid 4,4 --block 16,16 \\
          --arg f32[64,64] --arg f32[64,64] --arg f32[64,64] --arg 64
      ptxlab equal a.ptx b.ptx --block 256 --block-b 128 \\
          --arg x:f32[1024] --arg y:f32[1024] --arg 1024
      ptxlab equal softmax.cu reference.py --block 64 --arg f32[3,70] --arg f32[3,70] --arg 70
    """
    name = name_of(a)
    try:
        with time_limit(given["timeout"], name):
            kernel = _kernel(a, given["target"], given["entry"])
            name = name_of(b)
            other: Function | Callable[..., Any]
            if b.suffix == ".py":
                other = _function(b, given["entry_b"])
            else:
                other = _kernel(b, given["target"], given["entry_b"], given["entry"])
        name = f"{name_of(a)} and {name_of(b)}"
        found = _compare(kernel, other, given)
    except (PtxError, KernelError) as wrong:
        show_failure(wrong.diagnostics, name, "full")
        context.exit(max(status_of(wrong.diagnostics), 2))
    except (ValueError, TypeError, AttributeError) as wrong:
        if not str(wrong).startswith("equal: "):
            raise
        raise click.UsageError(str(wrong).removeprefix("equal: ")) from None
    click.echo(json.dumps(found.as_dict(), indent=2) if format == "json" else _wrapped(str(found)))
    if given["lab"] is not None:
        with redirect_stdout(sys.stderr):
            _write_lab(found, given["lab"])
    context.exit(0 if found.same else 2 if found.level == "refused" else 1)


def _wrapped(text: str) -> str:
    """Text as wide as the terminal, if it goes to one."""
    if not sys.stdout.isatty():
        return text
    width = get_terminal_size().columns
    return "\n".join(fill(line, width, subsequent_indent="      ", break_long_words=False) for line in text.split("\n"))


_PAGE = """<!doctype html><meta charset="utf-8"><title>ptxlab equal</title>
<style>body {{ margin: 0; display: flex; height: 100vh }} iframe {{ flex: 1; border: 0; min-width: 0 }}</style>
{frames}
"""


def _write_lab(found: Verdict, folder: Path) -> None:
    """A page for each run, and one with both, at the step where they part."""
    from ptxlab.cli.lab import write
    from ptxlab.lab import Views

    places = [] if found.witness is None else [one for one in found.witness.places if one is not None]
    recordings = [(one, one.recording) for one in places if one.recording is not None]
    if not recordings:
        click.echo("--lab: the two part nowhere that was recorded; no page is written", err=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for place, (trace, step) in recordings:
        name, steps = f"{'ab'[place.side]}.html", trace.warp_steps
        entry, index = trace.columns.locate(step)
        at = int(steps.first[steps.group_of[entry]]) + index
        thread = int(trace.columns.thread[entry])
        write(Views(trace, []), folder / name)
        warp = int(steps.warps_of(trace.columns.thread[entry : entry + 1])[0])
        frames.append(f'<iframe src="{name}#at={at}&warp={warp}&lane={thread % 32}"></iframe>')
    (folder / "index.html").write_text(_PAGE.format(frames="\n".join(frames)), encoding="utf-8")
    click.echo(f"{folder / 'index.html'}: both runs where they part")


def _kernel(path: Path, target: str | None, entry: str | None, other: str | None = None) -> Function:
    """The kernel of a file; the name of the other file's is used if this one has such a kernel, too."""
    module, _ = read_module(path, target if path.suffix == ".cu" else None, entry or other)
    check_first(module)
    kernels = [one for one in module.functions if one.kind == "entry"]
    if entry is None and other is not None and (len(kernels) != 1 or any(one.name == other for one in kernels)):
        entry = other
    return choose(module, entry, path)


def _function(path: Path, name: str | None) -> Callable[..., Any]:
    """A function of a Python file, which is run."""
    functions: dict[str, Callable[..., Any]] = {
        key: one
        for key, one in runpy.run_path(str(path)).items()
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path) and not key.startswith("_")
    }
    if name is None and len(functions) == 1:
        return next(iter(functions.values()))
    if name not in functions:
        listed = ", ".join(functions) or "none"
        raise click.UsageError(f"name a function of {path} by `--entry-b`; it defines {listed}")
    return functions[name]


def _compare(kernel: Function, other: Function | Callable[..., object], given: dict[str, Any]) -> Verdict:
    from ptxlab.equal import Launch, equal
    from ptxlab.ir import Function

    known: Known = {}
    own = arguments_for(kernel, given["arguments"])
    args = [argument.make((given["seed"], number), known) for number, argument in enumerate(own)]
    _set(kernel, given)
    a = Launch(kernel, given["grid"], given["block"] or required_block(kernel), args, given["shared"], given["cluster"])
    b: Launch | Callable[..., Any]
    if isinstance(other, Function):
        others = arguments_for(other, given["arguments_b"])
        args_b = [argument.make((given["seed"], 1, number), known) for number, argument in enumerate(others)] or args
        _set(other, given)
        b = Launch(
            other,
            given["grid_b"] or given["grid"],
            given["block_b"] or given["block"] or required_block(other),
            args_b,
            given["shared"] if given["shared_b"] is None else given["shared_b"],
            given["cluster_b"] or given["cluster"],
        )
    else:
        b = other
    return equal(
        a, b, outputs=given["outputs"] or None, symbols=given["symbols"] or None,
        tolerance=given["tolerance"], assume_paths=given["assume_paths"], timeout=given["timeout"],
    )  # fmt: skip


def _set(kernel: Function, given: dict[str, Any]) -> None:
    """Give variables of a module their values."""
    from ptxlab import variables

    assert kernel.module is not None
    for name, setting in given["settings"].items():
        variables.set(kernel.module, name, setting.make_typed((given["seed"],)))
