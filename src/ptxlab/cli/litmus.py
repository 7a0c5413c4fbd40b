"""`ptxlab litmus`: what the memory model allows a litmus test, and what is observed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.files import STANDARD_INPUT, name_of, paths_argument, read_text
from ptxlab.cli.findings import show_findings, status_of
from ptxlab.cli.table import table
from ptxlab.report import Diagnostic, KernelError, PtxError

if TYPE_CHECKING:
    from ptxlab.litmus.report import Outcome, Report

WEAKER = (
    "The emulator runs one interleaving a seed: an outcome that is allowed and not observed may need a weaker machine."
)


@click.command("litmus", short_help="Judge litmus tests by the PTX memory model.")
@paths_argument
@click.option("--device", type=click.Choice(["cpu", "cuda", "none"]), default="cpu", show_default=True,
              help="Run on the emulator, on a GPU, or only ask the model.")  # fmt: skip
@click.option("--seeds", metavar="N", type=click.IntRange(min=1), default=20, show_default=True,
              help="Runs on the emulator, in each placement.")  # fmt: skip
@click.option("--explore", is_flag=True, help="Run under all schedules that differ instead.")
@click.option("--launches", metavar="N", type=click.IntRange(min=1), default=10, show_default=True,
              help="Launches on a GPU, in each placement, of 16384 instances each.")  # fmt: skip
@click.option("--placements", type=click.Choice(["first", "all"]), default="first", show_default=True,
              help="Threads as warps with global variables, or every way that is as the test says.")  # fmt: skip
@click.option("--unroll", metavar="N", type=click.IntRange(min=0), default=1, show_default=True,
              help="How often a loop may jump back, in the model.")  # fmt: skip
@click.option("--format", "format", type=click.Choice(["full", "concise", "json"]),
              help="A table for each test (of one file), one line each (of several), or JSON.")  # fmt: skip
@click.pass_context
def command(
    context: click.Context,
    paths: Sequence[Path],
    device: str,
    seeds: int,
    explore: bool,
    launches: int,
    placements: str,
    unroll: int,
    format: str | None,
) -> None:
    """Judge litmus tests by the axioms of the PTX memory model, and run them.

    A PATH is a test, or a directory that means all `*.litmus` below it. For each outcome the table says whether
    the axioms allow it, whether executions that end in it have a data race, how often it was observed, and in how many
    of these runs a race was reported.

    Exits 0 when all conditions hold and all that was observed is as the model says, 1 when not, 2 when a test could not
    be run as asked.

    \b
    Examples:
      ptxlab litmus mp.litmus
      ptxlab litmus tests/ --placements all --seeds 100
      ptxlab litmus mp.litmus --device cuda --launches 100 --format json
    """
    from ptxlab.litmus import read
    from ptxlab.litmus.report import report

    files = list(_files(paths))
    shape = format or ("full" if len(files) == 1 else "concise")
    reports: list[Report] = []
    faults: list[Diagnostic] = []
    for file in files:
        try:
            test = read(read_text(file), name_of(file))
            made = report(
                test,
                device=device,
                seeds=None if explore else seeds,
                launches=launches,
                every=placements == "all",
                bound=unroll,
            )
        except (PtxError, KernelError) as failure:
            faults.extend(failure.diagnostics)
            if status_of(failure.diagnostics) == 2:
                break  # no test can be run here
            continue
        reports.append(made)
        if shape != "json":
            click.echo(_full(made) if shape == "full" else _line(made))
    if shape == "json":
        found = [{"code": one.code, "message": one.message, "file": one.file, "line": one.line} for one in faults]
        click.echo(json.dumps({"tests": [made.as_object() for made in reports], "diagnostics": found}, indent=2))
    elif faults:
        show_findings(faults, name_of(files[0]) if len(files) == 1 else f"{len(files)} files")
    if shape == "concise" and len(reports) > 1:
        click.echo(_summary(reports))
    context.exit(max(status_of(faults), int(any(made.failed for made in reports))))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path == STANDARD_INPUT or not path.is_dir():
            yield path
            continue
        below = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        tests = [file for file in below if file.suffix == ".litmus"]
        if not tests:
            raise click.UsageError(f"there is no `.litmus` file in `{path}` or below it")
        yield from tests


def _full(made: Report) -> str:
    """A table of outcomes, and what comes of it."""
    from ptxlab.litmus.report import TOO_MANY, condition_text, spell_name

    lines = [f"{made.test.name}: {condition_text(made.test)}"]
    if made.judgement is None:
        return "\n".join([*lines, f"  {TOO_MANY}", *_notes(made)])
    heads = [spell_name(name) for name in made.names] + ["allowed", "data race"]
    ran = bool(made.runs)
    heads += ["observed"] * ran + ["reported"] * (ran and made.detects)
    rows = [[*map(str, one.values), *_cells(one, ran, made.detects)] for one in made.outcomes()]
    lines += [f"  {line}" for line in table([heads, *rows])]
    return "\n".join([*lines, *_notes(made)])


def _cells(one: Outcome, ran: bool, detects: bool) -> list[str]:
    cells = ["yes" if one.allowed else "no", one.race if one.allowed else ""]
    return cells + [str(one.observed)] * ran + [str(one.reported)] * (ran and detects)


def _notes(made: Report) -> Iterator[str]:
    verdict = made.verdict
    if verdict is not None:
        racy = "some executions have a data race" if verdict.racy else "no execution has a data race"
        yield f"  the condition {'holds' if verdict.holds else 'does not hold'}; {racy}"
        if made.judgement is not None and made.judgement.cut:
            yield "  loops were left after `--unroll` iterations: there may be more executions"
        if made.judgement is not None and made.judgement.hangs:
            yield "  some runs wait at a barrier for ever; these have no outcome"
    if made.not_run is not None:
        yield f"  not run: {made.not_run}"
    for placement, seen in made.runs:
        ended = f", {seen.endless} did not end" if seen.endless else ""
        runs = {None: f"{seen.runs} runs", True: f"all {seen.runs} executions that differ"}
        yield f"  {runs.get(seen.explored, f'{seen.runs} of the executions that differ')}, as {placement}{ended}"
    yield from (f"  differs from the model: {problem}" for problem in made.problems())
    if made.detects and made.judgement is not None and any(one.allowed and not one.observed for one in made.outcomes()):
        yield f"  {WEAKER}" if made.runs else ""


def _line(made: Report) -> str:
    from ptxlab.litmus.report import TOO_MANY

    verdict = made.verdict
    if verdict is None:
        said = TOO_MANY
    else:
        said = (
            f"the condition {'holds' if verdict.holds else 'does not hold'}, {'racy' if verdict.racy else 'race-free'}"
        )
        if made.runs:
            outcomes = [one for one in made.outcomes() if one.allowed]
            said += f", {sum(one.observed > 0 for one in outcomes)} of {len(outcomes)} allowed outcomes observed"
    ran = f"; not run: {made.not_run}" if made.not_run else ""
    wrong = "".join(f"\n  differs from the model: {problem}" for problem in made.problems())
    return f"{made.test.source.name}: {said}{ran}{wrong}"


def _summary(reports: Sequence[Report]) -> str:
    held = sum(made.verdict is not None and made.verdict.holds for made in reports)
    differ = sum(any(made.problems()) for made in reports)
    runs = sum(seen.runs for made in reports for _, seen in made.runs)
    return f"{len(reports)} tests, {held} conditions hold, {runs} runs, {differ} tests differ from the model"
