"""What blocks read and write, from a recorded launch: parts of arrays, which are the tiles, and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.draw.numbers import listed
from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.trace.accesses import GLOBAL, SHARED, Region, Rows, dtype_named
from ptxlab.trace.trace import Trace

MOST = 16  # parts of a dimension
KINDS = {"read": "reads", "written": "writes"}


def blocks(result: object, *names: str, title: str = "", parts: int = MOST) -> Picture:
    """The blocks that read and write each part of the arrays, or of those named; `result` was recorded.

    Rows and columns that the same blocks access are one row or column of the picture; where there are more than `parts`
    of them, an array is cut into equal parts. A cell has the numbers of the blocks.
    """
    trace = _recorded(result)
    regions = {region.short: region for region in trace.accesses.regions if region.dtype and region.shape}
    unknown = [name for name in names if name not in regions]
    if unknown:
        raise ValueError(f"there is no array `{unknown[0]}`; expected one of {', '.join(regions)}")
    panels = [
        panel
        for name in names or regions
        for kind, rows in KINDS.items()
        if (panel := _panel(trace, regions[name], kind, getattr(trace.accesses, rows), parts)) is not None
    ]
    if not panels:
        raise ValueError("no block accessed any of the arrays")
    count = int(np.prod(trace.grid))
    return Picture(title or f"{count} block{'s' * (count != 1)}, and what each reads and writes", panels)


def _panel(trace: Trace, region: Region, kind: str, rows: Rows, parts: int) -> Panel | None:
    """The parts of one array that were read, or written; None if none was."""
    rows = rows.touching(GLOBAL, 0, region.base, region.size)
    if not len(rows):
        return None
    width = dtype_named(region.dtype).itemsize
    down, across = (1, 1, *region.shape)[-2:]
    above = int(np.prod(region.shape[:-2], dtype=np.int64))
    touched = _blocks_at(trace, region, rows, width).reshape(-1, above * down, across)
    heights, widths = (_edges(np.moveaxis(touched, axis, 0), parts) for axis in (1, 2))
    cells = [[_cell(touched[:, top:bottom, left:right]) for left, right in widths] for top, bottom in heights]
    extents = "x".join(map(str, region.shape))
    return Panel(
        f"{region.short}, {extents} {region.dtype}, is {kind} by blocks", cells, _spelled(heights), _spelled(widths)
    )


def _blocks_at(trace: Trace, region: Region, rows: Rows, width: int) -> npt.NDArray[np.bool_]:
    """For each block and element, whether the block accessed it."""
    found = np.zeros((int(np.prod(trace.grid)), region.size // width), np.bool_)
    first = np.maximum(rows.address - region.base, 0) // width
    last = -(-np.minimum(rows.address + rows.size - region.base, region.size) // width)
    accesses = {*zip(_accessing(trace, rows).tolist(), first.tolist(), last.tolist(), strict=True)}
    for block, start, end in accesses:
        found[block, start:end] = True
    return found


def _accessing(trace: Trace, rows: Rows) -> npt.NDArray[np.int64]:
    """The block of each access; of an asynchronous copy, that of the thread that started it."""
    is_event = rows.event >= 0
    thread = np.empty(len(rows), np.int64)
    thread[~is_event] = trace.columns.thread[rows.entry[~is_event]]
    thread[is_event] = trace.columns.events["thread"][rows.event[is_event]]
    return thread // trace.accesses.threads_in_block


def _recorded(result: Any) -> Trace:
    trace: Trace | None = result.trace if hasattr(result, "trace") else result
    if trace is None:
        raise ValueError("nothing was recorded: launch with `record=ptxlab.Record()`")
    return trace


def _cell(touched: npt.NDArray[np.bool_]) -> Cell | None:
    numbers = np.flatnonzero(touched.any((1, 2))).tolist()
    return Cell(listed(numbers), numbers[0]) if numbers else None


def _edges(lines: npt.NDArray[np.bool_], parts: int) -> list[tuple[int, int]]:
    """Rows, or columns, that are equal, together; if those are too many, equal parts."""
    ends = [0, *(np.flatnonzero((lines[1:] != lines[:-1]).any((1, 2))) + 1).tolist(), len(lines)]
    if len(ends) > parts + 1:
        ends = [*range(0, len(lines), -(-len(lines) // parts)), len(lines)]
    return [*pairwise(ends)]


def _spelled(edges: Sequence[tuple[int, int]]) -> list[str]:
    return [str(start) if end == start + 1 else f"{start}-{end - 1}" for start, end in edges]


def cluster(result: object, title: str = "") -> Picture:
    """Whose shared memory each block reads and writes, in bytes; `result` was recorded."""
    trace = _recorded(result)
    names = [f"block {number}" for number in range(int(np.prod(trace.grid)))]
    panels = [_shared_panel(trace, names, kind, getattr(trace.accesses, rows)) for kind, rows in KINDS.items()]
    return Picture(title or "blocks, and whose shared memory each reads and writes", panels)


def _shared_panel(trace: Trace, names: list[str], kind: str, rows: Rows) -> Panel:
    """A row for each block that accesses, a column for each whose memory it is."""
    rows = rows.take(rows.space == SHARED)
    bytes: dict[tuple[int, int], set[int]] = {}
    by = _accessing(trace, rows).tolist()
    for block, owner, address, size in zip(
        by, *(column.tolist() for column in (rows.owner, rows.address, rows.size)), strict=True
    ):
        bytes.setdefault((block, owner), set()).update(range(address, address + size))
    cells = [
        [
            Cell(f"{len(found)} bytes", owner) if (found := bytes.get((block, owner))) else None
            for owner in range(len(names))
        ]
        for block in range(len(names))
    ]
    return Panel(f"shared memory is {kind}", cells, names, [f"of {name}" for name in names])
