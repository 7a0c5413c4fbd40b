"""`ptxlab assemble`: an object from PTX, and what it needs of the GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.compiling import Compiling, ptxas_options, show_compiler_warnings
from ptxlab.cli.files import (
    name_of,
    path_argument,
    ptx_name_of,
    read_ptx,
    target_option,
    write_file,
)
from ptxlab.cli.findings import format_option, show_failure, show_findings, status_of
from ptxlab.report import Diagnostic, Format, PtxError, render

if TYPE_CHECKING:
    from ptxlab.toolchain import Assembly, Occupancy, Resources

ptxas_option = click.option("--ptxas", metavar="PATH", help="The ptxas to run, instead of the first one found.")


@click.command("assemble", cls=Compiling)
@path_argument
@target_option
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write the object to this file.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Size of a block in threads, for the occupancy.")
@ptxas_option
@format_option
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    target: str | None,
    output: Path | None,
    threads: int | None,
    ptxas: str | None,
    format: Format,
) -> None:
    """Assemble PTX, and report what each kernel uses.

    The object is kept only where --output says. `-` is standard input.

    \b
    Examples:
      ptxlab assemble kernel.ptx
      ptxlab assemble kernel.ptx --output kernel.cubin
      ptxlab assemble --target sm_90a --threads 384 kernel.ptx
      ptxlab assemble kernel.ptx -- -O1 -maxrregcount 32
      ptxlab assemble kernel.cu -- -Iinclude -Xptxas -O1
    """
    try:
        text, warnings = read_ptx(path, target)
        show_compiler_warnings(warnings, name_of(path))
        assembly = run_ptxas(text, target, ptx_name_of(path), ptxas_options(path), ptxas)
    except PtxError as wrong:
        show_failure(wrong.diagnostics, name_of(path), format)
        context.exit(status_of(wrong.diagnostics))
    found = assembly.diagnostics
    if assembly.cubin is not None and output is not None:
        write_file(output, assembly.cubin)
    if format == "json":
        click.echo(json.dumps(as_object(assembly, text, threads), indent=2))
    elif format != "full" or assembly.cubin is None:
        show_findings(found, name_of(path), format)
    else:
        if found:
            show_findings(found, name_of(path), format)
            click.echo()
        click.echo("\n".join(describe(assembly, text, threads)))
        if output is not None:
            click.echo(f"wrote {output}")
    context.exit(0 if assembly.cubin is not None else 1)


def run_ptxas(text: str, target: str | None, name: str, options: Sequence[str], ptxas: str | None) -> Assembly:
    """Assemble with the ptxas the user named, or the first that is new enough."""
    from ptxlab.toolchain import assemble, find

    return assemble(text, target, name, options, tool=find("ptxas", ptxas) if ptxas else None)


def describe(assembly: Assembly, text: str, threads: int | None) -> list[str]:
    """What each function needs, as a table, and which tool said so."""
    from ptxlab.cli.table import table
    from ptxlab.ir.mangled import titles

    names = titles([needs.function for needs in assembly.resources])
    rows = [["function", "registers", "spilled", "shared", "stack", "barriers", "occupancy"]]
    for name, needs in zip(names, assembly.resources, strict=True):
        spilled = needs.spill_stores + needs.spill_loads
        sizes = [f"{size} B" for size in (spilled, needs.shared, needs.stack)]
        registers = "-" if needs.registers is None else str(needs.registers)
        held = spell_occupancy(*occupancy_of(assembly, needs, text, threads))
        rows.append([name, registers, *sizes, str(needs.barriers), held])
    return [f"{assembly.tool.name} {assembly.tool.version} for {assembly.target}", "", *table(rows)]


def occupancy_of(
    assembly: Assembly, needs: Resources, text: str, threads: int | None
) -> tuple[Occupancy | None, int, bool]:
    """The occupancy of a kernel, the threads of its blocks, and whether these are only assumed."""
    from ptxlab.toolchain import ASSUMED_THREADS, block_threads, occupancy

    stated = threads or block_threads(text, needs.function)
    count = stated or ASSUMED_THREADS
    if not needs.entry or needs.registers is None or assembly.target is None:
        return None, count, False
    return occupancy(assembly.target, count, needs.registers, needs.shared), count, stated is None


def spell_occupancy(held: Occupancy | None, threads: int, assumed: bool) -> str:
    """`75%: 6 blocks of 256 threads, limited by registers`."""
    if held is None:
        return "-"
    blocks = f"{held.blocks} block{'s' * (held.blocks != 1)} of {threads} threads{' (assumed)' * assumed}"
    return f"{held.fraction:.0%}: {blocks}, limited by {held.limiter}"


def as_object(assembly: Assembly, text: str, threads: int | None) -> dict[str, object]:
    """All that is known of an assembly, for programs."""
    from ptxlab.ir.mangled import plain

    functions = []
    for needs in assembly.resources:
        held, count, assumed = occupancy_of(assembly, needs, text, threads)
        occupancy = None if held is None else {**asdict(held), "threads": count, "threads_assumed": assumed}
        functions.append({**asdict(needs), "title": plain(needs.function), "occupancy": occupancy})
    return {
        "assembled": assembly.cubin is not None,
        "target": assembly.target,
        "tool": {"name": assembly.tool.name, "version": assembly.tool.version, "origin": assembly.tool.origin},
        "functions": functions,
        "diagnostics": as_list(assembly.diagnostics),
    }


def as_list(found: Sequence[Diagnostic]) -> Any:
    """Diagnostics as values of JSON."""
    return json.loads(render(found, "json"))
