"""`ptxlab lab`: a recorded launch in the browser."""

from __future__ import annotations

import os
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli import lessons
from ptxlab.cli.bench import read_size
from ptxlab.cli.compiling import Compiling
from ptxlab.cli.debug import Session, device_debug_option, launch_option
from ptxlab.cli.files import cuda_target_option
from ptxlab.cli.findings import show_failure, status_of
from ptxlab.cli.launching import block_indices, launch_options
from ptxlab.cli.programs import nvcc_option
from ptxlab.report import KernelError, PtxError
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.device.record import Record
    from ptxlab.lab import NodeViews, Views
    from ptxlab.launch.launches import Launch
    from ptxlab.measure.entry import Entry
    from ptxlab.trace import Trace

_LIMIT = 20_000_000


def _list(context: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    """Print what opens by its name, and end."""
    if not is_asked or context.resilient_parsing:
        return
    from ptxlab import kernels

    click.echo("kernels of the gallery:")
    for name in kernels.names():
        click.echo(f"  {name:<32} {kernels.readme(name).partition(chr(10))[0].lstrip('# ')}")
    click.echo("pages of the documentation (`--variant` chooses the launch: wrong, wrong-2, right):")
    for page in lessons.pages().values():
        click.echo(f"  {page.name:<32} {page.title}")
    context.exit()


@click.command("lab", cls=Compiling, short_help="Inspect a run of a kernel in the browser.")
@click.argument("what", metavar="PATH|NAME")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list,
              help="List the kernels and the lessons that open by their names.")  # fmt: skip
@cuda_target_option
@launch_options
@click.option("--blocks", metavar="'X,Y X,Y'", callback=block_indices, help="Record only these blocks of the grid.")
@click.option("--warp", "warps", metavar="N", type=click.IntRange(0, 31), multiple=True,
              help="Record only this warp of each block; may be repeated.")  # fmt: skip
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=_LIMIT, show_default=True,
              help="Steps of threads that are recorded at most.")  # fmt: skip
@device_debug_option
@nvcc_option
@launch_option
@click.option("--variant", metavar="NAME", help="Of a kernel of the gallery, or the launch of a lesson.")
@click.option("--size", "sizes", metavar="NAME=VALUE,...", multiple=True, callback=read_size,
              help="Of a kernel of the gallery; by default the first that its tests have.")  # fmt: skip
@click.option("--sources", metavar="FOLDER", multiple=True,
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Show source files of this folder, too; by default those of the folder of PATH.")  # fmt: skip
@click.option("--beside", metavar="TRACE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Show another recorded launch to the right, such as one of the next optimization step.")  # fmt: skip
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the page with all it shows to one file, instead of serving it.")  # fmt: skip
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="Serve here; by default at a free port.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.pass_context
def command(
    context: click.Context, /, what: str, variant: str | None, sizes: Sequence[dict[str, object]],
    sources: Sequence[Path],
    beside: Path | None, html: Path | None, port: int | None, no_browser: bool, **given: object,
) -> None:  # fmt: skip
    """Inspect a run of a kernel in the browser: step by step, lane by lane, forwards and backwards.

    PATH is PTX, CUDA C++, a .ptxtrace of `ptxlab run --record`, or a folder of several that ran at the same time, as
    `node.synchronize(record=...)` writes it; NAME is a kernel of the gallery or a lesson of the
    documentation, of which `--list` has the names. The kernel runs once on the emulator and is recorded; the page is
    served on this machine alone until Ctrl-C. Arguments are as for `ptxlab run`. PTX names the source that it was
    compiled from; the page has it where it is in the folder of PATH, or of --sources. A .cu file with a `main()` runs
    as a program where nothing is said of how a kernel is launched; the page has one launch of it, by --launch.

    \b
    Examples:
      ptxlab lab saxpy.ptx --grid 4 --block 256 --arg f32[1024]=random \\
          --arg f32[1024]=zeros --arg f32=2.0 --arg u32=1024
      ptxlab lab run.ptxtrace
      ptxlab lab run.ptxtrace --beside next.ptxtrace
      ptxlab lab mma_gemm --size type=bf16,m=64,n=128,k=256
      ptxlab lab tcgen05_gemm --blocks 0 --html tile.html
      ptxlab lab lessons/08-phases --variant right
    """
    path, page = Path(what), lessons.named(what)
    if page is not None:
        trace, owner = _lesson(page, variant, sizes, given)
    elif not path.exists() and not path.suffix:
        trace, owner = _gallery(what, variant, sizes, given)
    elif path.is_dir():
        if beside is not None:
            raise click.UsageError("`--beside` is for one launch beside another, not for a folder of several")
        show(_together(path, [path, *sources]), html, port, no_browser)
        return
    elif not path.is_file():
        raise click.UsageError(f"there is no file `{what}`")
    else:
        if variant or sizes:
            raise click.UsageError("`--variant` and `--size` are for what opens by its name: see `--list`")
        trace, owner = _recorded(context, path, given)
    from ptxlab import kernels
    from ptxlab.debug.adapter import Opened
    from ptxlab.lab import Views

    own = page.path.parent if page is not None else path.parent if path.is_file() else Path(kernels.__path__[0])
    opened = owner if isinstance(owner, Opened) else None
    views = Views(trace, [own, *sources], None if opened is None else opened.debugger.declarations)
    other = None if beside is None else Views(_opened(beside), [own, beside.parent, *sources])
    show(views, html, port, no_browser, other)
    del owner


def _together(folder: Path, sources: Sequence[Path]) -> NodeViews:
    """The launches of a folder, which ran at the same time."""
    from ptxlab.device.trace_file import TraceError
    from ptxlab.lab import NodeViews
    from ptxlab.trace import Traces

    try:
        return NodeViews(Traces.open(folder), sources)
    except TraceError as wrong:
        raise click.UsageError(str(wrong)) from None


def show(
    views: Views | NodeViews, html: Path | None, port: int | None, no_browser: bool, beside: Views | None = None
) -> None:
    """Write the page to a file, or serve it."""
    click.echo(views.title)
    if html is not None:
        write(views, html, beside)
    else:
        serve(views, port, no_browser, beside)


def _opened(path: Path) -> Trace:
    from ptxlab.device.trace_file import TraceError
    from ptxlab.trace import Trace

    try:
        return Trace.open(path)
    except TraceError as wrong:
        raise click.UsageError(f"`--beside`: {wrong}") from None


def _recorded(context: click.Context, path: Path, given: dict[str, Any]) -> tuple[Trace, object]:
    """The trace of a file, recorded now unless it is one; and what keeps it."""
    names = {field.name for field in fields(Session)}
    session = Session(path=path, **{name: value for name, value in given.items() if name in names})
    try:
        opened = session.open()
    except (PtxError, KernelError) as wrong:
        show_failure(wrong.diagnostics, str(path), "full")
        context.exit(status_of(wrong.diagnostics))
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    click.echo(opened.output, nl=False)
    return opened.debugger.trace, opened


def _gallery(
    name: str, variant: str | None, sizes: Sequence[dict[str, Any]], given: dict[str, Any]
) -> tuple[Trace, object]:  # fmt: skip
    """A kernel of the gallery, recorded at a small size."""
    from ptxlab import kernels

    known = kernels.names()
    if name not in known:
        close = nearest(name, known)
        meant = f"did you mean `{close}`?" if close else f"those of the gallery are {', '.join(known)}"
        raise click.UsageError(f"there is no file or kernel `{name}`; {meant}")
    if given["arguments"]:
        raise click.UsageError(
            f"`{name}` is of the gallery, which has its arguments; `--size` chooses how large they are"
        )
    entry = kernels.entry(name)
    chosen = variant or next(iter(entry.variants))
    if chosen not in entry.variants:
        raise click.UsageError(f"`{name}` has no variant `{chosen}`; it has {', '.join(map(repr, entry.variants))}")
    *first, last = _launches(entry, chosen, sizes, given["seed"])
    for launch in first:
        launch.run(device="cpu", detectors=False)
    result = last.run(device="cpu", on_error="collect", seed=given["seed"], record=_record(given))
    assert result.trace is not None
    return result.trace, result


def _launches(entry: Entry, variant: str, sizes: Sequence[dict[str, object]], seed: int) -> list[Launch]:
    """What a variant launches at the first small size that it can do, or at the one that is asked for."""
    from ptxlab.launch.launches import UnsuitedError
    from ptxlab.measure import Host

    for size in entry.small:
        try:
            return list(entry.launches(variant, entry.arrays(Host(seed), **{**size, **(sizes[0] if sizes else {})})))
        except UnsuitedError as wrong:
            reason = str(wrong)
    raise click.UsageError(f"variant `{variant}`: {reason}; choose another by `--variant`, or a `--size`")


def _lesson(
    page: lessons.LessonPage, variant: str | None, sizes: Sequence[dict[str, object]], given: dict[str, object]
) -> tuple[Trace, object]:  # fmt: skip
    """A launch of a page of the documentation."""
    if given["arguments"] or sizes:
        raise click.UsageError(f"`{page.name}` has its own arguments; `--variant` chooses the launch: wrong, right")
    result = lessons.launch_of(page, variant, _record(given))
    assert result.trace is not None
    return result.trace, result


def _record(given: dict[str, Any]) -> Record:
    from ptxlab.device.record import Record

    return Record(blocks=given["blocks"], warps=given["warps"] or None, limit=given["limit"])


def write(views: Views | NodeViews, path: Path, beside: Views | None = None) -> None:
    """Write the page to a file."""
    from ptxlab.lab import TooLargeError, write_page, write_pair

    try:
        path.write_text(write_page(views) if beside is None else write_pair(views, beside), encoding="utf-8")
    except TooLargeError as wrong:
        raise click.UsageError(str(wrong)) from None
    except OSError as wrong:
        raise click.UsageError(f"`{path}` cannot be written: {wrong.strerror}") from None
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def serve(views: Views | NodeViews, port: int | None, no_browser: bool, beside: Views | None = None) -> None:
    """Serve the page until Ctrl-C."""
    from ptxlab.lab import Server
    from ptxlab.toolchain.process import absolute_entries

    try:
        server = Server(views, port, beside)
    except OSError as wrong:
        reason = wrong.strerror.lower() if wrong.strerror else str(wrong)
        raise click.UsageError(f"port {port} cannot be served: {reason}; leave `--port` out for a free one") from None
    with server:
        click.echo(server.url)
        os.environ["PATH"] = os.pathsep.join(absolute_entries("PATH"))  # no browser of a stranger's folder
        if no_browser or not webbrowser.open(server.url):
            click.echo("open this address in a browser; Ctrl-C ends it", err=True)
        server.start()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            click.echo("", err=True)
        finally:
            server.shutdown()
