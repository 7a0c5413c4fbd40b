"""The launch as a page shows it first: the kernel, its lines and how often they ran, arrays, blocks, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ptxlab.debug.lines import Lines
from ptxlab.device.layout import shared_variables, size_of_variable
from ptxlab.ir.mangled import title
from ptxlab.isa.held import Held
from ptxlab.lab.copies import is_copy
from ptxlab.lab.findings import findings, start
from ptxlab.lab.memory import PAGE
from ptxlab.lab.tiles import is_tile
from ptxlab.lab.windows import WINDOW
from ptxlab.report import Span
from ptxlab.trace.accesses import dtype_named
from ptxlab.trace.lanes import matrices_of
from ptxlab.trace.operands import uses_of
from ptxlab.trace.tensor_words import kind_of
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json


def describe(steps: WarpSteps, folders: Sequence[Path] | None) -> dict[str, object]:
    """All that does not depend on the position; source is read from `folders` alone, or from anywhere."""
    trace = steps.trace
    lines = Lines(trace.program)
    sources, left_out = _sources(lines, folders)
    found = findings(steps)
    matches = [trace.program.match(number) for number in range(len(trace.program.instructions))]
    return {
        "kernel": title(trace.description["kernel"]),
        "name": trace.description["name"],
        "end": trace.end,
        "complete": trace.is_complete,
        "grid": trace.grid,
        "block": trace.block,
        "seed": trace.seed,
        "steps": steps.count,
        "threadSteps": trace.steps,
        "window": WINDOW,
        "page": PAGE,
        "warpsInBlock": steps.warps_in_block,
        "threadsInBlock": trace.accesses.threads_in_block,
        "blocks": _blocks(steps),
        "text": trace.description["text"],
        "instructions": _instructions(steps, lines),
        "sources": sources,
        "counts": _counts(steps),
        "registers": [{name: register.type.name for name, register in own.items()} for own in trace.program.registers],
        "layouts": _Layouts(steps).found,
        "hasTiles": any(is_tile(match) for match in matches),
        "hasCopies": any(is_copy(match) for match in matches),
        "hasTensorMemory": any(match is not None and kind_of(match) is not None for match in matches),
        "arrays": _arrays(steps),
        "shared": _shared(steps),
        "findings": found,
        "start": start(steps, found),
        "remarks": [*left_out, *_changed(steps, lines)],
    }


def _blocks(steps: WarpSteps) -> list[Json]:
    x, y, _ = steps.trace.grid
    warps: dict[int, list[int]] = {}
    for warp in steps.warps:
        warps.setdefault(warp // steps.warps_in_block, []).append(warp)
    found = []
    for block, own in warps.items():
        first = min(int(steps.first[steps.groups_of(warp)[0]]) for warp in own)
        last = max(int(steps.first[steps.groups_of(warp)[-1] + 1]) for warp in own)
        index = [block % x, block // x % y, block // x // y]
        found.append({"number": block, "index": index, "warps": own, "first": first, "last": last})
    return found


def _instructions(steps: WarpSteps, lines: Lines) -> list[dict[str, object]]:
    program = steps.trace.program
    functions = {id(function): number for number, function in enumerate(program.functions)}
    on_line = Counter(place.line for place in lines.ptx)
    found = []
    for number, (function, instruction) in enumerate(program.instructions):
        match = program.match(number)
        uses = uses_of(instruction, match)
        places = lines.sources[number]
        one: Json = {"line": lines.ptx[number].line, "function": functions[id(function)]}
        read = list(dict.fromkeys(use.name for use in uses if use.role != "result"))
        written = list(dict.fromkeys(use.name for use in uses if use.role == "result"))
        if on_line[one["line"]] > 1 or _is_on_several_lines(program.span(number)):
            one["text"] = program.text(number)
        if read:
            one["reads"] = read
        if written:
            one["writes"] = written
        if places:
            own = lines.own[number]  # the user's line first, whatever header it calls
            one["sources"] = [[place.file, place.line] for place in (*places[own:], *places[:own])]
        if is_tile(match):
            one["tile"] = True
        found.append(one)
    return found


def _is_on_several_lines(span: Span | None) -> bool:
    return span is not None and "\n" in span.source.text[span.start : span.end].rstrip()


class _Layouts:
    """The matrices that instructions hold in registers; layouts are shared between instructions that have the same."""

    def __init__(self, steps: WarpSteps) -> None:
        self.layouts: list[Json] = []
        self._known: dict[tuple[int, ...], int] = {}
        self.instructions: dict[int, list[Json]] = {}
        program = steps.trace.program
        for number, (_, instruction) in enumerate(program.instructions):
            match = program.match(number)
            uses = uses_of(instruction, match)
            for operand, held in matrices_of(match).items():
                role = "result" if operand == "d" else "value"
                names = {use.index: use.name for use in uses if use.operand == operand and use.role == role}
                if names:
                    self.instructions.setdefault(number, []).append({
                        "operand": operand, "title": held.title, "layout": self._number(held),
                        "registers": [names.get(index, "") for index in range(max(names) + 1)],
                        "result": role == "result",
                    })  # fmt: skip
        self.found = {"layouts": self.layouts, "instructions": self.instructions}

    def _number(self, held: Held) -> int:
        layout = held.layout
        key = (layout.rows, layout.columns, layout.bits, layout.copies, held.is_transposed, hash(layout.positions))
        if key not in self._known:
            self._known[key] = len(self.layouts)
            self.layouts.append({
                "rows": layout.rows, "columns": layout.columns, "bits": layout.bits, "copies": layout.copies,
                "transposed": held.is_transposed and layout.copies == 1, "positions": layout.positions,
            })  # fmt: skip
        return self._known[key]


def _sources(lines: Lines, folders: Sequence[Path] | None) -> tuple[list[Json], list[str]]:
    """The files that the PTX was compiled from, where they can be read, and a remark on those that are left out.

    PTX may name any file of this machine; a page that is sent to someone else must not have it.
    """
    used = {place.file for places in lines.sources for place in places}
    outer = [places[-1].file for places in lines.sources if places]  # first the file that the kernel starts in
    found, outside = [], []
    for name in sorted(used, key=lambda name: (name != outer[0], name)):
        path = Path(name)
        if not path.is_file() or path.stat().st_size >= 1 << 20:
            continue
        if folders is not None and not any(path.resolve().is_relative_to(folder.resolve()) for folder in folders):
            outside.append(name)
            continue
        found.append({"file": name, "text": path.read_text(encoding="utf-8", errors="replace")})
    names = ", ".join(outside)
    why = f"not shown, since the kernel's folder does not have it: {names}; `--sources FOLDER` shows files of another"
    return found, [why] if outside else []


def _counts(steps: WarpSteps) -> dict[int, list[int]]:
    """By line of the PTX: how many warps and how many threads have executed it."""
    warps = np.bincount(steps.segment, minlength=len(steps.tables))
    threads = np.bincount(steps.trace.columns.segment, minlength=len(steps.tables))
    found: dict[int, list[int]] = {}
    for number, table in enumerate(steps.tables):
        for instruction in table.tolist():
            counts = found.setdefault(steps.trace.program.line(instruction), [0, 0])
            counts[0] += int(warps[number])
            counts[1] += int(threads[number])
    return {line: counts for line, counts in sorted(found.items()) if counts[0]}


def _arrays(steps: WarpSteps) -> list[Json]:
    return [
        {"name": one.short, "size": one.size, "shape": one.shape, "dtype": one.dtype.rpartition(".")[2],
         "itemsize": dtype_named(one.dtype).itemsize if one.dtype else 1, "base": one.base}
        for one in steps.trace.accesses.regions
    ]  # fmt: skip


def _shared(steps: WarpSteps) -> Json:
    variables = [
        {"name": variable.title, "start": start, "size": size_of_variable(variable), "type": variable.type.name}
        for variable, start in shared_variables(steps.trace.program.variables)
    ]
    return {"size": steps.trace.accesses.shared_size, "variables": variables}


def _changed(steps: WarpSteps, lines: Lines) -> list[str]:
    """Files that are not what they were when the launch was recorded."""
    found = []
    trace = steps.trace
    path = Path(trace.description["name"])
    is_there = path.suffix == ".ptx" and path.is_file()
    if is_there and path.read_text(encoding="utf-8", errors="replace") != trace.description["text"]:
        found.append(f"{path} has changed since this launch was recorded; the recorded text is shown")
    recorded = trace.path.stat().st_mtime if trace.path is not None and trace.path.is_file() else None
    for name in sorted({place.file for places in lines.sources for place in places}):
        source = Path(name)
        if recorded is not None and source.is_file() and source.stat().st_mtime > recorded:
            found.append(f"{name} has changed since this launch was recorded; its lines may not fit")
    return found
