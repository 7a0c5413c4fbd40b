"""`ptxlab grade`: submissions for problems, with scores."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ptxlab.cli.verify import sizes_option

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("grade", short_help="Judge submissions for a problem, with a score.")
@click.argument("problem", required=False)
@click.argument("files", type=_FILE, nargs=-1, metavar="[FILE]...")
@click.option("--list", "lists", is_flag=True, help="List the problems that come with ptxlab.")
@click.option("--table", "shows_table", is_flag=True, help="Show the best grades of the history.")
@click.option("--history", type=click.Path(dir_okay=False, path_type=Path), default="grades.jsonl", show_default=True,
              help="Where grades are kept.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same data again.  [default: new data]")
@click.option("--size", "sizes", metavar="NAME=N,...", callback=sizes_option, help="Try these sizes alone.")
@click.option("--schedule", type=click.IntRange(min=0), metavar="SEED", help="Run threads in this order.")
@click.option("--measure/--no-measure", default=True,
              help="Time right submissions on the GPU, where there is one for their target.")  # fmt: skip
@click.option("--timeout", metavar="SECONDS", default=300.0, show_default=True, type=click.FloatRange(0, min_open=True),
              help="What a submission may take.")  # fmt: skip
@click.option("--format", "format", type=click.Choice(["full", "json", "markdown"]), default="full", show_default=True,
              help="Text for people, JSON for programs, or a table.")  # fmt: skip
@click.pass_context
def command(
    context: click.Context, problem: str | None, files: tuple[Path, ...], lists: bool, shows_table: bool, history: Path,
    seed: int | None, sizes: dict[str, int] | None, schedule: int | None, measure: bool, timeout: float, format: str,
) -> None:  # fmt: skip
    """Judge submissions for a problem, and give each a score.

    PROBLEM is one of `--list`, or a file with a task, as `ptxlab verify` takes it. FILE is a submission: .ptx, .cu or
    .py. A submission that `verify` rejects has 0; one that is right has the part, of 100, of what the GPU can do at
    best: as measured on a GPU that runs it, else by the estimate on an H200, or for other targets by a bound of what it
    did. Grades are kept in a file;
    `--table` shows the best.

    Exits 0 if all submissions are right, 1 if one is rejected, 2 if one could not be judged.

    \b
    Examples:
      ptxlab grade --list
      ptxlab grade softmax softmax.ptx
      ptxlab grade --table --format markdown
    """
    from ptxlab.grade import grade, problems
    from ptxlab.grade import problem as named
    from ptxlab.grade.history import append, best, markdown, read
    from ptxlab.verify import TaskError

    try:
        if lists:
            for name in problems():
                click.echo(f"{name:17} {' '.join(named(name).title.split())}")
            context.exit(0)
        if shows_table:
            records = best(read(history)) if history.is_file() else []
            chosen = [one for one in records if problem in (None, one.problem)]
            click.echo(json.dumps([asdict(one) for one in chosen], indent=2) if format == "json" else markdown(chosen))
            context.exit(0)
        if problem is None or not files:
            raise click.UsageError("name a problem and a submission; `--list` shows the problems")
        how: dict[str, Any] = {"seed": seed, "sizes": sizes, "schedule": schedule, "measure": measure}
        found = [grade(problem, file, **how, timeout=timeout) for file in files]
    except (TaskError, ValueError) as wrong:
        raise click.UsageError(str(wrong)) from None
    if sizes is None:
        for one in found:
            append(history, one.record())
    if format == "json":
        click.echo(json.dumps([one.as_dict() for one in found], indent=2))
    elif format == "markdown":
        click.echo(markdown([one.record() for one in found]))
    else:
        click.echo("\n\n".join(map(str, found)))
    statuses = {one.status for one in found}
    context.exit(2 if "undecided" in statuses else 1 if "rejected" in statuses else 0)
