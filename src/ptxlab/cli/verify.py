"""`ptxlab verify`: does a kernel do what a task says?"""

from __future__ import annotations

import json
from pathlib import Path

import click

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FORMATS = ("full", "json", "markdown", "html", "log")


def sizes_option(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, int] | None:
    """`rows=3,columns=70` as sizes."""
    if not value:
        return None
    pairs = [one.partition("=") for one in value.split(",")]
    if any(not number.isdigit() for _, _, number in pairs):
        raise click.BadParameter("expected NAME=NUMBER,...")
    return {name: int(number) for name, _, number in pairs}


@click.command("verify", short_help="Say whether a kernel does what a task says.")
@click.argument("task", type=click.Path(exists=True, path_type=Path), metavar="TASK.py", required=False)
@click.option("--kernel", type=_FILE, help="The submission: .ptx, .cu or .py.  [default: the task's name]")
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same data again.  [default: new data]")
@click.option("--size", "sizes", metavar="NAME=N,...", callback=sizes_option, help="Try these sizes alone.")
@click.option("--schedule", type=click.IntRange(min=0), metavar="SEED", help="Run threads in this order.")
@click.option("--timeout", metavar="SECONDS", default=300.0, show_default=True, type=click.FloatRange(0, min_open=True),
              help="What all of it may take.")  # fmt: skip
@click.option("--memory", metavar="GB", default=8.0, show_default=True, type=click.FloatRange(0.5),
              help="Memory of the process that runs a submission in Python.")  # fmt: skip
@click.option("--no-estimate", is_flag=True, help="Leave out the estimate of the time.")
@click.option("--prove", is_flag=True, help="Prove that it has no race and no bad access, at any size.")
@click.option("--format", "format", type=click.Choice(FORMATS), default="full", show_default=True,
              help="Text for people, JSON for programs, a page, or one line.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the answer to a file as well.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --format json, and end.")
@click.pass_context
def command(
    context: click.Context, task: Path | None, kernel: Path | None, seed: int | None, sizes: dict[str, int] | None,
    schedule: int | None, timeout: float, memory: float, no_estimate: bool, prove: bool, format: str,
    output: Path | None, schema: bool,
) -> None:  # fmt: skip
    """Say whether a kernel does what a task says.

    TASK.py has a reference in NumPy or torch, the schemas of the arguments, and tolerances: see docs/verify.md. A
    problem of KernelBench, or a folder of GPU MODE with its task.yml, is a task, too. It is run, and must be trusted.
    The submission need not be: PTX stays in the emulator, and Python is run in a process of its own, from which only
    PTX and launches come back.

    The verdict has parts: it assembles; it is safe; it has no races and hangs; its outputs are those of the reference
    at sizes that it does not know; it writes all that it must, from its inputs, and nothing else; it computes in the
    types that were asked for; and how long it takes. What is wrong has a code, what shows it, and a command that shows
    it again.

    Exits 0 if the submission is accepted, 1 if it is rejected, 2 if that is not decided or could not be tried.

    \b
    Examples:
      ptxlab verify softmax_task.py --kernel softmax.ptx
      ptxlab verify softmax_task.py --kernel softmax.py --format json
    """
    from ptxlab.verify import SCHEMA, TaskError, verify
    from ptxlab.verify.pages import html, markdown

    if schema:
        click.echo(json.dumps(SCHEMA, indent=2))
        context.exit(0)
    if task is None:
        raise click.UsageError("name the file of a task")
    chosen = kernel or next((one for suffix in (".ptx", ".cu") if (one := task.with_suffix(suffix)).is_file()), None)
    if chosen is None:
        raise click.UsageError("name the submission by `--kernel`")
    try:
        verdict = verify(task, chosen, seed=seed, sizes=sizes, schedule=schedule, timeout=timeout, memory=memory,
                         estimate=not no_estimate, prove=prove)  # fmt: skip
    except TaskError as wrong:
        raise click.UsageError(str(wrong)) from None
    said = {"full": lambda: str(verdict), "json": lambda: json.dumps(verdict.as_dict(), indent=2),
            "markdown": lambda: markdown(verdict), "html": lambda: html(verdict),
            "log": lambda: verdict.log_line}[format]()  # fmt: skip
    if output is not None:
        output.write_text(said + "\n", encoding="utf-8")
        said = verdict.log_line
    click.echo(said)
    context.exit({"accepted": 0, "rejected": 1, "undecided": 2}[verdict.status])
