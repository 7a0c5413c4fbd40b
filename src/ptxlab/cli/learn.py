"""`ptxlab learn`: the course in the terminal: chapters, exercises, checks, hints, solutions."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from ptxlab.cli.findings import has_color

if TYPE_CHECKING:
    from ptxlab.device.result import Result
    from ptxlab.ir import Module
    from ptxlab.learn import Chapter, ExerciseFile, ExerciseVerdict, Folder, Report

WIDEST = 100  # columns of prose

file_argument = click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))


class LearnGroup(click.Group):
    """A group whose commands say what is asked for and does not exist."""

    def invoke(self, context: click.Context) -> object:
        """Run a command."""
        from ptxlab import learn

        try:
            return super().invoke(context)
        except learn.LearnError as wrong:
            raise click.UsageError(str(wrong), context) from None


@click.group("learn", cls=LearnGroup, invoke_without_command=True, short_help="Learn PTX: a course with exercises.")
@click.pass_context
def command(context: click.Context) -> None:
    """Learn PTX from zero, without a GPU: chapters to read, and exercises that the emulator checks.

    Without a subcommand, list the chapters and what is done. `ptxlab docs course/01-mental-model` shows the page of a
    chapter.

    \b
    Examples:
      ptxlab learn
      ptxlab learn start 1
      ptxlab learn check
      ptxlab learn hint
    """
    if context.invoked_subcommand is None:
        show_chapters()


def show_chapters() -> None:
    """List the chapters with what is done of each, and say what comes next."""
    from ptxlab import learn

    folder, known = learn.find_folder(Path()), learn.chapters()
    if not known:
        raise click.ClickException("the course was not installed with ptxlab")
    done = folder.done if folder is not None else set()
    count = sum(len(chapter.exercises) for chapter in known)
    color = has_color(sys.stdout)
    state = f", {len(done)} done in `{folder.path}`" if folder is not None else ""
    click.echo(f"PTX from zero: {len(known)} chapters, {count} exercises{state}\n")
    width, most = max(len(chapter.guide) for chapter in known), get_terminal_size().columns
    for chapter in known:
        finished = sum(one.name in done for one in chapter.exercises)
        of = f"{finished}/{len(chapter.exercises)}" if chapter.exercises else ""
        line = f"{chapter.number:>3}  {of:>3}  {chapter.guide:<{width}}  {chapter.title}"
        is_done = bool(chapter.exercises) and finished == len(chapter.exercises)
        shown = line if len(line) <= most or not sys.stdout.isatty() else f"{line[: most - 1]}…"
        click.secho(shown, fg="green" if is_done else None, color=color)
    click.echo("\n`ptxlab docs NAME` shows a page.", nl=False)
    click.echo(f" {what_next(folder, known)}")


def columns() -> int:
    """The width of prose."""
    return min(get_terminal_size().columns, WIDEST)


def what_next(folder: Folder | None, known: Sequence[Chapter]) -> str:
    """What to do now, in a sentence."""
    if folder is None:
        return "Begin with `ptxlab learn start 1`."
    file = folder.next_file()
    if file is not None:
        return f"Next: edit `{file}`, then `ptxlab learn check`."
    left = [one for one in known if any(exercise.name not in folder.done for exercise in one.exercises)]
    if left:
        return f"Next: read `ptxlab docs {left[0].guide}`, then `ptxlab learn start {left[0].number}`."
    return "All exercises are done."


@command.command("start")
@click.argument("chapter", required=False)
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--again", is_flag=True, help="Write the files anew, and forget what was done of them.")
def start(chapter: str | None, directory: Path | None, again: bool) -> None:
    """Write the files of a chapter's exercises; those that exist stay as they are.

    CHAPTER is a number, a name, or the file of a teacher's exercise; by default the first that is not done. DIRECTORY
    is by default the one where the course was started, or `ptx-course`.

    \b
    Examples:
      ptxlab learn start 2
      ptxlab learn start shuffles ~/ptx
      ptxlab learn start my_exercise.py
    """
    from ptxlab import learn

    folder = learn.Folder.read(directory) if directory is not None else learn.find_folder(Path())
    folder = folder or learn.Folder(Path(learn.DEFAULT))
    try:
        chosen = None if chapter is not None and chapter.endswith(".py") else choose(chapter, folder)
        exercises = (learn.exercise_of(str(chapter)),) if chosen is None else chosen.exercises
        folder.path.mkdir(parents=True, exist_ok=True)
        files = folder.prepare(exercises, again)
    except OSError as wrong:
        raise click.UsageError(f"`{folder.path}` can't be written: {(wrong.strerror or str(wrong)).lower()}") from None
    if chosen is not None:
        click.echo(f"chapter {chosen.number}: {chosen.title}")
        click.echo(f"read it: `ptxlab docs {chosen.guide}`")
    if not files:
        click.echo("it has no exercises yet")
    for file, one in zip(files, exercises, strict=True):
        click.echo(f"  {file}  {one.exercise.title}{' (done)' if one.name in folder.done else ''}")
    if files:
        click.echo("edit the first file; `ptxlab learn check` says what is missing, `ptxlab learn hint` helps")


def choose(asked: str | None, folder: Folder) -> Chapter:
    """The chapter that is asked for, or the first that is not done."""
    from ptxlab import learn

    if asked is not None:
        return learn.chapter_of(asked)
    known = learn.chapters()
    left = [one for one in known if any(exercise.name not in folder.done for exercise in one.exercises)]
    return (left or known)[0]


@command.command("check")
@file_argument
@click.option("--exercise", "name", metavar="NAME", help="Of a file that is not in the folder of the course.")
@click.option("--watch", is_flag=True, help="Check again each time a file is saved, until Ctrl-C.")
@click.pass_context
def check(context: click.Context, file: Path | None, name: str | None, watch: bool) -> None:
    """Say what is missing in a file, by default the first that is not done.

    The kernel runs on the emulator at several sizes with all detectors, and its results are compared with those of
    NumPy. Exits 0 where it is right, 1 where something is missing.

    \b
    Examples:
      ptxlab learn check
      ptxlab learn check ptx-course/02-first-kernel/1-double.ptx
      ptxlab learn check kernel.ptx --exercise double
    """
    if not watch:
        context.exit(0 if check_once(file, name) else 1)
    while True:
        chosen, _, _ = find(file, name)
        saved = chosen.stat().st_mtime_ns
        click.clear()
        if check_once(chosen, name) and file is None:
            time.sleep(2)
            continue
        click.echo(f"\nwatching {chosen}; Ctrl-C ends it", err=True)
        while chosen.is_file() and chosen.stat().st_mtime_ns == saved:
            time.sleep(0.3)


def check_once(file: Path | None, name: str | None) -> bool:
    """Check a file, show what comes of it, and keep it if it is right."""
    from ptxlab import learn

    chosen, one, folder = find(file, name)
    color = has_color(sys.stdout)
    report = judged(one, chosen)
    click.echo(f"{chosen}\n{report.text(columns(), color)}", color=color)
    if not report.is_right:
        shown = folder.hints.get(one.name, 0) if folder is not None else 0
        if shown < len(one.exercise.hints):
            click.echo("\n`ptxlab learn hint` has a hint; `ptxlab learn lab` shows this launch step by step.")
    elif folder is not None:
        folder.done.add(one.name)
        folder.write()
        click.echo(f"\n{what_next(folder, learn.chapters())}")
    return report.is_right


def judged(one: ExerciseFile, file: Path) -> Report:
    """What a check says of a file."""
    from ptxlab import learn

    module = module_of(one, file)
    verdict = module if isinstance(module, learn.ExerciseVerdict) else one.exercise.check(module)
    return learn.Report(one.exercise.title, verdict)


def module_of(one: ExerciseFile, file: Path) -> Module | ExerciseVerdict:
    """What a file has, PTX, CUDA C++ or Python, or why it has nothing."""
    from ptxlab import learn
    from ptxlab.cli.files import read_module
    from ptxlab.report import PtxError

    if one.suffix == ".py":
        return learn.read(one.exercise, file)
    try:
        return read_module(file)[0]
    except PtxError as wrong:
        return one.exercise.refuse(wrong)


def find(file: Path | None, name: str | None) -> tuple[Path, ExerciseFile, Folder | None]:
    """The file, its exercise, and the folder that it is in."""
    from ptxlab import learn

    if name is not None:
        if file is None:
            raise click.UsageError("`--exercise` is of a file: name it, too")
        return existing(file), learn.exercise_of(name), None
    folder = learn.find_folder(Path() if file is None else file.parent)
    if folder is None:
        raise click.UsageError("there is no course in this folder: `ptxlab learn start 1` writes the first files")
    chosen = file or folder.next_file()
    if chosen is None:
        raise click.UsageError(f"all files are done. {what_next(folder, learn.chapters())}")
    return existing(chosen), folder.exercise_at(chosen), folder


def existing(file: Path) -> Path:
    """The file, if there is one."""
    if not file.is_file():
        raise click.UsageError(f"there is no file `{file}`; `ptxlab learn start` writes those that are missing")
    return file


@command.command("hint")
@file_argument
@click.option("--all", "everything", is_flag=True, help="Show all hints.")
def hint(file: Path | None, everything: bool) -> None:
    """Show the next hint for a file, by default the first that is not done.

    \b
    Example:
      ptxlab learn hint
    """
    chosen, one, folder = find(file, None)
    assert folder is not None
    hints = one.exercise.hints
    shown = folder.hints.get(one.name, 0)
    upto = len(hints) if everything else min(shown + 1, len(hints))
    click.echo(f"{chosen}: {one.exercise.title}")
    for number in range(1 if everything or shown >= len(hints) else upto, upto + 1):
        click.echo("\n" + textwrap.fill(f"hint {number} of {len(hints)}: {hints[number - 1]}", columns()))
    folder.hints[one.name] = upto
    folder.write()
    if upto == len(hints):
        click.echo("\nThis was the last; `ptxlab learn solution` shows a solution.")


@command.command("solution")
@file_argument
def solution(file: Path | None) -> None:
    """Print a solution of a file, by default the first that is not done.

    \b
    Example:
      ptxlab learn solution > solution.ptx
    """
    _, one, _ = find(file, None)
    click.echo(one.exercise.solution, nl=False)


@command.command("lab")
@file_argument
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the page to a file, instead of serving it.")  # fmt: skip
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="Serve here; by default at a free port.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def lab(file: Path | None, html: Path | None, port: int | None, no_browser: bool) -> None:
    """Show the launch that went wrong in the browser, step by step; of a file that is right, its first launch.

    \b
    Example:
      ptxlab learn lab
    """
    from ptxlab.cli.lab import serve, write
    from ptxlab.lab import Views

    chosen, one, _ = find(file, None)
    result = recorded(one, chosen)
    assert result.trace is not None
    click.echo(repr(result.trace).strip("<>"))
    views = Views(result.trace, [chosen.parent])
    if html is not None:
        write(views, html)
    else:
        serve(views, port, no_browser)


def recorded(one: ExerciseFile, file: Path) -> Result:
    """The launch of a file that went wrong, or its first."""
    from ptxlab import learn
    from ptxlab.device.record import Record

    task = one.exercise.task
    module = module_of(one, file)
    kernel = module if isinstance(module, learn.ExerciseVerdict) else learn.kernel_of(module, task)
    if isinstance(kernel, learn.ExerciseVerdict):
        raise click.ClickException(f"there is no launch to show yet: {learn.Report(one.exercise.title, kernel)}")
    assert not isinstance(module, learn.ExerciseVerdict)
    number = one.exercise.check(module).size or 0
    return learn.run(kernel, task.case(number), seed=number, record=Record())
