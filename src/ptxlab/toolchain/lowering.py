"""PTX beside the SASS it becomes: one target line by line, or many targets instruction by instruction.

Everything is shown as `-O3` makes it, because that is what runs: an instruction may become several, share one with its
neighbours, or leave nothing of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic, PtxError
from ptxlab.toolchain.assembly import DEFAULT_TIMEOUT, Assembly, assemble
from ptxlab.toolchain.disassembly import SassFunction, SassInstruction, disassemble
from ptxlab.toolchain.header import stated_target, stated_version
from ptxlab.toolchain.process import run_together
from ptxlab.toolchain.tools import Tool


@dataclass(frozen=True, slots=True)
class LoweredLine:
    """A line of PTX, counted from 1, and the SASS that comes from it."""

    line: int
    text: str
    sass: tuple[SassInstruction, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A PTX text with its SASS; `elsewhere` has no line, such as code of a library function."""

    rows: tuple[LoweredLine, ...]
    elsewhere: tuple[SassInstruction, ...]
    assembly: Assembly


@dataclass(frozen=True, slots=True)
class Lowering:
    """What the lines of a text become on one target; where the target refuses, `diagnostics` say why."""

    target: str
    sass: dict[int, tuple[SassInstruction, ...]]
    diagnostics: tuple[Diagnostic, ...]


def side_by_side(
    text: str,
    target: str | None = None,
    name: str = "module.ptx",
    options: Sequence[str] = (),
    *,
    tool: Tool | None = None,
    disassembler: Tool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Listing:
    """Every line of `text` with the SASS it becomes; text that ptxas refuses raises `PtxError`."""
    assembly = assemble(text, target, name, ["-lineinfo", *options], tool=tool, timeout=timeout)
    if assembly.cubin is None:
        raise PtxError(assembly.diagnostics)
    return Listing(*beside_lines(text, disassemble(assembly.cubin, tool=disassembler, timeout=timeout)), assembly)


def beside_lines(
    text: str, functions: Sequence[SassFunction]
) -> tuple[tuple[LoweredLine, ...], tuple[SassInstruction, ...]]:
    """The lines of `text` with the code of each, and the code that has none."""
    by_line: dict[int | None, list[SassInstruction]] = {}
    for function in functions:
        for instruction in function.instructions:
            by_line.setdefault(instruction.line, []).append(instruction)
    lines = text.split("\n")
    rows = [LoweredLine(number, line, tuple(by_line.pop(number, ()))) for number, line in enumerate(lines, 1)]
    elsewhere = [instruction for instructions in by_line.values() for instruction in instructions]
    return tuple(rows), tuple(elsewhere)


def lower_instructions(
    text: str,
    targets: Sequence[str],
    name: str = "module.ptx",
    options: Sequence[str] = (),
    *,
    tool: Tool | None = None,
) -> list[Lowering]:
    """What each line of `text` becomes on each of `targets`; a target that refuses the text says so for itself."""
    tasks = [partial(_lower, text, target, name, options, tool) for target in targets]
    return run_together(tasks, workers=os.cpu_count() or 1)


def _lower(text: str, target: str, name: str, options: Sequence[str], tool: Tool | None) -> Lowering:
    try:
        listing = side_by_side(_retarget(text, target), target, name, options, tool=tool)
    except PtxError as refusal:
        return Lowering(target, {}, tuple(refusal.diagnostics))
    sass = {row.line: row.sass for row in listing.rows if row.sass}
    return Lowering(target, sass, listing.assembly.diagnostics)


def _retarget(text: str, target: str) -> str:
    """`text` as a module of `target`, so that ptxas names what that target lacks; its lines stay where they are."""
    stated = stated_target(text)
    if stated is None or stated == target:
        return text
    version, needed = stated_version(text), TARGETS.get(target)
    if version and needed and version < needed:
        text = re.sub(r"(\.version\s+)\d+\.\d+", rf"\g<1>{needed[0]}.{needed[1]}", text, count=1)
    return re.sub(rf"(\.target\s+(?:\w+\s*,\s*)*?){stated}\b", rf"\g<1>{target}", text, count=1)
