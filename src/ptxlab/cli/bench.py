"""`ptxlab bench`: a kernel of the gallery against the library a user would pick instead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.measure import Record


def read_size(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> list[dict[str, int | str]]:
    """`m=4096,n=4096,k=512` as names and values; what is not a number is a word, such as a type."""
    found = []
    for value in values:
        parts = [part.partition("=") for part in value.split(",")]
        if not all(equals and word for _, equals, word in parts):
            raise click.BadParameter(f"{value!r}: write NAME=VALUE with commas between, such as m=4096,n=4096,k=512")
        found.append({name: int(word) if word.isdigit() else word for name, _, word in parts})
    return found


@click.command("bench", short_help="Measure a kernel of the gallery on the GPU.")
@click.argument("name", required=False)
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="Measure the whole gallery, and print one page; --json and --from then name a folder.",
)
@click.option("--size", "sizes", metavar="NAME=VALUE,...", multiple=True, callback=read_size,
              help="A size; may be given several times. Without it, those that the kernel names.")  # fmt: skip
@click.option("--variant", "variants", metavar="NAME", multiple=True, help="Measure this variant only; several times.")
@click.option("--rounds", type=click.IntRange(min=3), default=21, show_default=True, help="How many turns each takes.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random data.")
@click.option("--json", "kept", metavar="FILE", type=click.Path(path_type=Path),
              help="Keep every sample, with hardware and versions.")  # fmt: skip
@click.option("--from", "source", metavar="FILE", type=click.Path(exists=True, path_type=Path),
              help="Show what `--json` kept instead of measuring; needs no GPU.")  # fmt: skip
@click.option("--plot", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Draw the bars.")
@click.option("--roofline", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Draw the roofline.")
@click.pass_context
def command(
    context: click.Context,
    name: str | None,
    whole: bool,
    sizes: list[dict[str, object]],
    variants: tuple[str, ...],
    rounds: int,
    seed: int,
    kept: Path | None,
    source: Path | None,
    plot: Path | None,
    roofline: Path | None,
) -> None:
    """Measure a kernel of the gallery on the GPU, against the library that you would use instead.

    Every answer is checked against float64 before anything is timed; all take turns on fresh random data that the cache
    does not hold. Without NAME, list the gallery.

    \b
    Examples:
      ptxlab bench
      ptxlab bench sgemm --size m=4096,n=4096,k=4096 \\
          --json sgemm.json --plot sgemm.png
      ptxlab bench --from sgemm.json --roofline roofline.png
      ptxlab bench --all --json records > page.md
    """
    from ptxlab.measure import WrongAnswerError
    from ptxlab.measure.plots import draw_bars, draw_roofline, kinds
    from ptxlab.report import KernelError, render

    if name is None and source is None and not whole:
        list_gallery()
        return
    check_folders(
        name, whole, [path for path in (kept, source) if path is not None], [*sizes, *variants, plot, roofline]
    )
    try:
        if whole:
            click.echo(page_of(kept, source, rounds, seed), nl=False)
            return
        # What can't be written is reported before the measurement, not after it.
        for file in (plot, roofline):
            if file is not None and file.suffix[1:].lower() not in kinds():
                raise click.UsageError(f"`{file}` does not end as a picture; expected one of {', '.join(kinds())}")
        for file in (kept, plot, roofline):
            check_writable(file)
        if source is not None:
            record = read_record(source)
        else:
            assert name is not None
            record = measure_entry(name, sizes, variants, rounds, seed, kept)
        click.echo(str(record))
        if kept is not None and source is not None:
            record.write(kept)
        if plot is not None:
            draw_bars(record, plot)
        if roofline is not None:
            draw_roofline(record, roofline)
    except KernelError as wrong:
        click.echo(render(wrong.diagnostics), err=True, nl=False)
        context.exit(2)
    except WrongAnswerError as wrong:
        click.echo(f"error: {wrong}", err=True)
        context.exit(1)


def check_folders(name: str | None, whole: bool, paths: Sequence[Path], others: Sequence[object]) -> None:
    """Refuse what does not go with --all, files where it wants folders, and folders without it."""
    if whole and (name is not None or any(one is not None for one in others)):
        raise click.UsageError("`--all` goes with --json, --from, --rounds and --seed only")
    for path in paths:
        if whole and not path.is_dir():
            raise click.UsageError(f"`{path}` is not a directory, and `--all` has a file for each kernel")
        if not whole and path.is_dir():
            raise click.UsageError(f"`{path}` is a directory; `--all` measures or shows all kernels")


def page_of(kept: Path | None, source: Path | None, rounds: int, seed: int) -> str:
    """The page of all kernels: measured now, or read from a folder. What cannot run on this GPU is left out."""
    from ptxlab import kernels
    from ptxlab.measure.page import as_page

    if source is not None:
        return as_page([read_record(path) for path in sorted(source.glob("*.json"))])
    records = []
    for name in kernels.names():
        if not runs_here(name):
            click.echo(f"{name}: left out, it is for another GPU", err=True)
            continue
        records.append(measure_entry(name, [], [], rounds, seed, None if kept is None else kept / f"{name}.json"))
    return as_page(records)


def runs_here(name: str) -> bool:
    """Whether this GPU can run every variant of a kernel."""
    from ptxlab import gpu

    return gpu.absence() is not None or all(gpu.gpu(0).architecture_for(target) for target in targets_of(name))


def targets_of(name: str) -> set[str]:
    """The targets of a kernel's variants, as it is launched at its small sizes."""
    from ptxlab import kernels
    from ptxlab.launch.launches import UnsuitedError
    from ptxlab.measure import Host

    entry, found = kernels.entry(name), set()
    for size in entry.small:
        arrays = entry.arrays(Host(0), **size)
        for variant in entry.variants:
            with suppress(UnsuitedError):  # it is for other sizes
                found |= {launch.module.target for launch in entry.launches(variant, arrays)}
    return found


def check_writable(file: Path | None) -> None:
    """Refuse a file that can't be written."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise click.UsageError(f"`{file}` can't be written: there is no directory `{file.parent}`")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise click.UsageError(f"`{file}` can't be written: permission denied")


def list_gallery() -> None:
    """What there is, and what it computes."""
    from ptxlab import kernels
    from ptxlab.cli.table import fold, table

    rows = [[name, kernels.entry(name).title, "; ".join(kernels.entry(name).variants)] for name in kernels.names()]
    lines = table([["name", "computes", "variants"], *rows])
    click.echo("\n".join(fold(lines, lines[0].index("computes"))))


def read_record(path: Path) -> Record:
    """What a file holds that `--json` wrote."""
    from ptxlab.measure import Record

    try:
        return Record.read(path)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise click.BadParameter(f"`{path}` is not a record of `ptxlab bench --json`", param_hint="--from") from None


def measure_entry(
    name: str, sizes: list[dict[str, object]], variants: Sequence[str], rounds: int, seed: int, kept: Path | None
) -> Record:
    """Measure a kernel by its name, and say how far it is; what is measured is kept at once."""
    from ptxlab import kernels
    from ptxlab.measure import measure

    if name not in kernels.names():
        close = nearest(name, kernels.names())
        raise click.BadParameter(
            f"there is no kernel `{name}` in the gallery; "
            + (f"did you mean `{close}`?" if close else "`ptxlab bench` lists it"),
            param_hint="NAME",
        )
    entry = kernels.entry(name)
    check_names(entry.variants, variants, "variant")
    known = [*entry.sizes, *entry.small]
    for size in sizes:
        check_names([name for one in known for name in one], size, "size")
        check_values(known, size)
    try:
        return measure(name, entry, [{**entry.sizes[-1], **size} for size in sizes] or None, rounds=rounds, seed=seed,
                       only=variants or None, keep=kept, progress=show_progress)  # fmt: skip
    finally:
        clear_progress()


def check_names(known: Iterable[str], given: Iterable[str], what: str) -> None:
    """Refuse a name that the kernel does not have."""
    names = list(dict.fromkeys(known))
    for name in given:
        if name not in names:
            raise click.UsageError(f"there is no {what} `{name}`; expected one of {', '.join(names)}")


def check_values(known: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> None:
    """Refuse a word where the kernel takes a number, or one that it does not know."""
    for name, value in given.items():
        words = list(dict.fromkeys(size[name] for size in known if isinstance(size.get(name), str)))
        if words and value not in words:
            raise click.UsageError(f"`{name}` can't be `{value}`; it is one of {', '.join(words)}")
        if not words and isinstance(value, str):
            raise click.UsageError(f"`{name}` can't be `{value}`; it is a number, 0 or more")


def show_progress(text: str) -> None:
    """One line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


def clear_progress() -> None:
    """Leave an empty line for what follows."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
