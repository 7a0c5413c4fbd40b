"""`ptxlab tour`: a short demonstration of what works.

Each step runs the command it shows, in a directory with the tour's files, so that the tour can't promise too much.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ptxlab.cli.files import write_file
from ptxlab.cli.findings import has_color
from ptxlab.cli.samples import SAMPLES
from ptxlab.report import PtxError


@dataclass(frozen=True, slots=True)
class Scene:
    """A command of the tour, and what it shows."""

    text: str
    arguments: tuple[str, ...]


STEPS = (
    Scene("A correct kernel passes:", ("check", "saxpy.ptx")),
    Scene("A wrong one is explained, every mistake in one run:", ("check", "wrong.ptx")),
    Scene("Editors and scripts read one line each, programs read JSON:", ("check", "--format", "concise", "wrong.ptx")),
    Scene("Each kind of mistake has its page:", ("explain", "operand-type")),
    Scene("So has each word of PTX:", ("explain", "%tid")),
    Scene("And so has each instruction:", ("explain", "cp.async.bulk.commit_group")),
    Scene("A safe fix can be applied:", ("check", "--fix", "typo.ptx")),
    Scene("Any PTX can be printed in its canonical form:", ("format", "ugly.ptx")),
    Scene("And become Python that writes it:", ("python", "saxpy.ptx")),
    Scene("A kernel in Python, CUDA C++ or a built program shows its PTX:", ("ptx", "scale.py")),
    Scene(
        "A kernel runs on this machine, without a GPU:",
        ("run", "saxpy.ptx", "--grid", "4", "--block", "256", "--arg", "f32[1024]=random", "--arg", "f32[1024]=zeros",
         "--arg", "f32=2.0", "--arg", "u32=1024"),
    ),
    Scene(
        "Are two kernels the same function, for all values? Here an `fma` became `mul` and `add`:",
        ("equal", "saxpy.ptx", "split.ptx", "--grid", "4", "--block", "256", "--arg", "x:f32[1024]", "--arg",
         "y:f32[1024]", "--arg", "f32=2.0", "--arg", "u32=1000"),
    ),
    Scene("Does a submission do what a task says, at sizes that it does not know?",
         ("verify", "saxpy_task.py", "--kernel", "submitted.ptx", "--seed", "7")),
    Scene("There are problems to solve, and each solution has a score:", ("grade", "--list")),
    Scene(
        "This one lacks a barrier, and its sum is wrong: 2016 would be right. The race is found in every run:",
        ("run", "sum.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros"),
    ),
    Scene(
        "With the barrier it is right:",
        ("run", "fixed.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros"),
    ),
    Scene(
        "A run can be walked through backwards: who wrote the sum, and what was it before?",
        ("debug", "fixed.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros",
         "--command", "watch total[0]", "--command", "continue", "--command", "reverse-stepi",
         "--command", "print total[0]"),
    ),
    Scene(
        "Or be shown in the browser; here as a file to open:",
        ("lab", "sum.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros", "--html", "sum.html"),
    ),
    Scene("Which outcomes the memory model allows is decided by its axioms, and tried:",
         ("litmus", "mp.litmus")),
    Scene("Layouts are drawn, also as SVG: here a tile without bank conflicts:",
         ("draw", "tile", "8x32", "--type", "f16", "--swizzle", "64B")),
    Scene("A course teaches PTX from zero, with exercises that are checked here:", ("learn",)),
    Scene("The guides are there, too:", ("docs", "--search", "proxy fence")),
    Scene("It would run on a GPU too:", ("devices",)),
    Scene("The gallery has kernels to learn from; each can be measured on a GPU by its name:", ("bench",)),
)  # fmt: skip
WITH_SOLVER = (
    Scene(
        "Can it go wrong at all, for any grid and any size? With the length of `x` unsaid it can; this is proved:",
        ("prove", "saxpy.ptx", "--block", "256", "--assume", "n <= len(x)", "--assume", "n <= len(y)"),
    ),
)
WITH_TOOLS = (
    Scene("NVIDIA's assembler says what a kernel needs:", ("assemble", "saxpy.ptx")),
    Scene("This is the SASS that the GPU executes:", ("sass", "saxpy.ptx")),
    Scene(
        "And this, instruction by instruction, for several targets:",
        ("sass", "--targets", "sm_80,sm_90a,sm_100a", "--instructions", "reduce.ptx"),
    ),
)


@click.command("tour")
@click.option("--write", "folder", metavar="DIRECTORY", type=click.Path(file_okay=False, path_type=Path),
              help="Write the files of the tour and of the README there, to try them yourself.")  # fmt: skip
def command(folder: Path | None) -> None:
    """Show what ptxlab can do, in a minute.

    \b
    Examples:
      ptxlab tour
      ptxlab tour --write samples
    """
    from ptxlab.toolchain import find

    if folder is not None:
        write_samples(folder)
        return
    with TemporaryDirectory(prefix="ptxlab-tour-") as directory, chdir(directory):
        for name, text in SAMPLES.items():
            Path(name).write_text(text)
        for step in (*STEPS, *(WITH_SOLVER if find_spec("z3") else ())):
            show(step)
        try:
            find("ptxas"), find("nvdisasm")
        except PtxError as missing:
            click.echo(f"\nThe rest of the tour needs NVIDIA's tools.\n{missing}")
            return
        for step in WITH_TOOLS:
            show(step)


def write_samples(folder: Path) -> None:
    """Write the files that are not there yet; what someone has changed stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise click.UsageError(f"`{folder}` can't be made: {(problem.strerror or '').lower()}") from None
    for name, text in SAMPLES.items():
        there = folder / name
        if there.exists() and there.read_bytes() != text.encode():
            click.echo(f"{there} is there and is not as it was; it stays", err=True)
            continue
        write_file(there, text.encode())
        click.echo(f"wrote {there}")
    click.echo(f"\ncd {folder}\nptxlab run reverse.ptx --block 64 --arg 'u32[64]=arange'")


def show(step: Scene) -> None:
    """Say what comes, show the command, and run it."""
    from ptxlab.cli.group import ptxlab

    color = has_color(sys.stdout)
    click.secho(f"\n# {step.text}", fg="cyan", color=color)
    words = [f'"{word}"' if " " in word else word for word in step.arguments]
    click.secho(f"$ ptxlab {' '.join(words)}", bold=True, color=color)
    ptxlab.main(step.arguments, prog_name="ptxlab", standalone_mode=False)
