"""`ptxlab sass`: PTX and the machine code it becomes."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.assemble import ptxas_option
from ptxlab.cli.compiling import Compiling, ptxas_options, show_compiler_warnings
from ptxlab.cli.files import name_of, path_argument, ptx_name_of, read_ptx, targets_option
from ptxlab.cli.findings import has_color, show_findings, status_of
from ptxlab.report import PtxError

if TYPE_CHECKING:
    from ptxlab.toolchain import Listing, Lowering, Tool

WIDEST = 72
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\b[^/]*$")


@click.command("sass", cls=Compiling)
@path_argument
@targets_option
@click.option("--instructions", is_flag=True, help="Show for each PTX instruction what it becomes on each target.")
@ptxas_option
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    targets: Sequence[str | None],
    instructions: bool,
    ptxas: str | None,
) -> None:
    """Show PTX and its SASS side by side.

    \b
    Examples:
      ptxlab sass kernel.ptx
      ptxlab sass --target sm_90a kernel.ptx
      ptxlab sass --targets sm_80,sm_90a,sm_120a --instructions kernel.ptx
    """
    from ptxlab.toolchain import find, lower_instructions, side_by_side
    from ptxlab.toolchain.header import stated_target

    name, options = ptx_name_of(path), ptxas_options(path)
    color = has_color(sys.stdout)
    try:
        text, warnings = read_ptx(path, targets[0])
        show_compiler_warnings(warnings, name_of(path))
        tool: Tool | None = find("ptxas", ptxas) if ptxas else None
        if instructions:
            wanted = [target or stated_target(text) or "sm_75" for target in targets]
            lowerings = lower_instructions(text, wanted, name, options, tool=tool)
            click.echo("\n".join(by_instruction(text, lowerings)), color=color)
            refusals = [found for lowering in lowerings if not lowering.sass for found in lowering.diagnostics]
            if refusals:
                show_findings(refusals, name, to_stderr=True)
            context.exit(1 if refusals else 0)
        for number, target in enumerate(targets):
            listing = side_by_side(text, target, name, options, tool=tool)
            click.echo("\n" * bool(number) + "\n".join(beside(listing)), color=color)
    except PtxError as wrong:
        show_findings(wrong.diagnostics, name, to_stderr=True)
        context.exit(status_of(wrong.diagnostics))


def beside(listing: Listing) -> Iterator[str]:
    """The lines of the PTX on the left, the SASS of each on the right."""
    tool = listing.assembly.tool
    yield click.style(f"{listing.assembly.target} by {tool.name} {tool.version}", bold=True)
    texts = with_sources([row.text for row in listing.rows])
    rows = [(row.line, shorten(text), row.sass) for row, text in zip(listing.rows, texts, strict=True)]
    while rows and not rows[-1][1]:
        rows.pop()
    width = max((len(text) for _, text, _ in rows), default=0)
    digits = len(str(len(rows)))
    for line, text, sass in rows:
        left = f"{line:>{digits}} | {text}".rstrip()
        if not sass:
            yield left
        for number, instruction in enumerate(sass):
            beside = "" if number else left
            yield f"{beside:<{digits + 3 + width}} | {click.style(instruction.text, fg='green')}"
    if listing.elsewhere:
        yield "code that belongs to no line:"
        for instruction in listing.elsewhere:
            yield f"{'':>{digits}}   {click.style(instruction.text, fg='green')}"


def with_sources(lines: Sequence[str]) -> Iterator[str]:
    """Lines of PTX; a `.loc` is followed by the line of Python or CUDA C++ that it names, where that can be read."""
    files = {found[1]: found[2] for found in map(_FILE.match, lines) if found is not None}
    for line in lines:
        location = _LOC.match(line)
        name = files.get(location[1], "") if location else ""
        source = linecache.getline(name, int(location[2])).strip() if location and Path(name).is_file() else ""
        yield f"{line.rstrip()}  // {source}" if source else line


def by_instruction(text: str, lowerings: Sequence[Lowering]) -> Iterator[str]:
    """Each line of PTX that becomes something, and below it what that is on each target."""
    lines = text.split("\n")
    used = sorted({line for lowering in lowerings for line in lowering.sass})
    width = max(len(lowering.target) for lowering in lowerings)
    digits = len(str(len(lines)))
    for line in used:
        yield f"{line:>{digits}} | {click.style(shorten(lines[line - 1]).strip(), bold=True)}"
        for lowering in lowerings:
            sass = lowering.sass.get(line, ())
            refused = "refused" if not lowering.sass else "nothing of its own"
            for number, becomes in enumerate([one.text for one in sass] or [refused]):
                target = "" if number else lowering.target
                yield f"{'':>{digits}} |     {target:<{width}}  {click.style(becomes, fg='green' if sass else None)}"


def shorten(text: str) -> str:
    """A line of PTX that leaves room for what is beside it."""
    shown = text.rstrip().expandtabs(4)
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 3] + "..."
