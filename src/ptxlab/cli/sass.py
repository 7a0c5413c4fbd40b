"""`ptxlab sass`: PTX and the machine code it becomes, or the machine code in a built file."""

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
from ptxlab.cli.files import name_of, path_argument, ptx_name_of, read_object, read_ptx, targets_option
from ptxlab.cli.findings import has_color, show_findings, status_of
from ptxlab.cli.launching import listed
from ptxlab.report import PtxError

if TYPE_CHECKING:
    from ptxlab.toolchain import EmbeddedProgram, Listing, LoweredLine, Lowering, SassFunction, SassInstruction, Tool

WIDEST = 72
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\b[^/]*$")


@click.command("sass", cls=Compiling)
@path_argument
@targets_option
@click.option("--entry", "--kernel", metavar="NAME", help="Of a built file: show this kernel only.")
@click.option("--instructions", is_flag=True, help="Show for each PTX instruction what it becomes on each target.")
@ptxas_option
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    targets: Sequence[str | None],
    entry: str | None,
    instructions: bool,
    ptxas: str | None,
) -> None:
    """Show PTX and its SASS side by side.

    PATH is PTX, CUDA C++, or a built file: a cubin, an object, a library, an executable or a fat binary, whose machine
    code is shown; with its PTX beside it, if it was built with -lineinfo.

    \b
    Examples:
      ptxlab sass kernel.ptx
      ptxlab sass --target sm_90a kernel.ptx
      ptxlab sass --targets sm_80,sm_90a,sm_120a --instructions kernel.ptx
      ptxlab sass --entry 'gemm<128>' program.o
    """
    from ptxlab.toolchain import find, lower_instructions, side_by_side
    from ptxlab.toolchain.header import stated_target

    name, options = ptx_name_of(path), ptxas_options(path)
    color = has_color(sys.stdout)
    built = read_object(path)
    if built is None and entry is not None:
        raise click.UsageError("`--entry` is for built files: PTX is shown whole")
    if built is not None and (instructions or ptxas or options):
        raise click.UsageError(f"`{path}` is built already: only `--target` and `--entry` choose what is shown")
    try:
        if built is not None:
            click.echo("\n".join(of_object(path, built, targets, entry)), color=color)
            return
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
    yield from beside_rows(listing.rows, listing.elsewhere)


def beside_rows(lines: Sequence[LoweredLine], elsewhere: Sequence[SassInstruction]) -> Iterator[str]:
    """Lines of PTX on the left, the SASS of each on the right."""
    texts = with_sources([row.text for row in lines])
    rows = [(row.line, shorten(text), row.sass) for row, text in zip(lines, texts, strict=True)]
    first = next((number for number, row in enumerate(rows) if row[1]), 0)  # PTX in a cubin starts with empty lines
    rows = rows[first:]
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
    if elsewhere:
        yield "code that belongs to no line:"
        for instruction in elsewhere:
            yield f"{'':>{digits}}   {click.style(instruction.text, fg='green')}"


def of_object(
    path: Path, parts: Sequence[EmbeddedProgram], targets: Sequence[str | None], entry: str | None
) -> Iterator[str]:
    """The machine code in a built file, function by function."""
    from ptxlab.ir.mangled import matches, plain
    from ptxlab.toolchain import beside_lines, disassemble

    cubins = [part for part in parts if part.kind == "cubin" and part.functions]
    if not cubins:
        has_ptx = "only PTX, which `ptxlab ptx` shows" if parts else "neither PTX nor machine code of a GPU"
        raise click.UsageError(f"`{path}` holds {has_ptx}")
    names = [name for part in cubins for name in part.functions]
    wanted = set(names if entry is None else matches(entry, names) if entry not in names else [entry])
    if not wanted:
        raise click.UsageError(f"there is no kernel `{entry}`; expected one of {listed(names)}")
    shown, found = 0, []
    for part in cubins:
        functions = disassemble(part.data) if wanted & set(part.functions) else []
        target = functions[0].target if functions else None
        found += [target] if target else []
        if not functions or (targets != [None] and target not in targets):
            continue
        yield from [""] * bool(shown)
        chosen = [one for one in functions if one.name in wanted or entry is None]
        yield click.style(f"{target}: {', '.join(plain(one.name) for one in chosen)}", bold=True)
        if part.text is not None and entry is None:
            yield from beside_rows(*beside_lines(part.text, chosen))
        else:
            yield from _code(chosen)
        shown += 1
    if not shown:
        raise click.UsageError(f"`{path}` has no code for {', '.join(map(str, targets))}, only for {', '.join(found)}")


def _code(functions: Sequence[SassFunction]) -> Iterator[str]:
    """The instructions of functions with their addresses."""
    from ptxlab.ir.mangled import demangle

    for function in functions:
        yield f"{demangle(function.name)}:"
        for one in function.instructions:
            if one.label:
                yield f"{one.label}:"
            yield f"    {one.address:04x}  {click.style(one.text, fg='green')}"


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
