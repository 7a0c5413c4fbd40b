"""Pictures of a schedule: the order of blocks over the result, the elements of each thread, who copies what and when.

All is read from the plan that the kernel is written from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxlab.draw.accesses import accesses
from ptxlab.draw.palette import apart
from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.measure import Launch
from ptxlab.schedule.emit import memory_of
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Store
from ptxlab.schedule.synchronize import copied
from ptxlab.schedule.tree import Buffer, Plan
from ptxlab.schedule.walk import WARP, places

MOST = 16  # rows and columns of a panel
WAVEFRONTS = "wavefronts", "ideal_wavefronts"
Owners = NDArray[np.int64]


def draw(plan: Plan, sizes: Mapping[str, int]) -> Picture:
    """The picture of a plan, for a result of some sizes."""
    state = plan.state
    stores = [one for one in state.algorithm.statements if isinstance(one, Store)]
    panels = [_blocks(plan, sizes)] if state.blocks else []
    panels += [_panel(f"{one.array}: threads of the first block", _owners(plan, one)) for one in stores]
    panels += [_copies(plan, buffer) for buffer in plan.buffers]
    panels += [_ring(plan, sizes)] if state.pipeline.at else []
    return Picture(f"{state.algorithm.name}: {', '.join(state.steps) or 'one thread does all of it'}", panels)


def draw_banks(plan: Plan, launch: Launch, title: str) -> Picture:
    """The costliest requests of warps at stages: of what writes them, and of what reads them; it runs the launch."""
    result = launch.run(device="cpu", profile=True)
    lines, patterns = result.counters["lines"], result.counters["patterns"]
    kinds: dict[int, str] = {}
    for one in launch.function.instructions():
        span, effects = launch.module.span(one), one.opcode.candidates[0].effects
        found = [access.kind for access in effects.accesses if access.space == "shared"]
        kinds |= {span.source.position(span.start)[0]: found[0]} if span is not None and found else {}
    panels: list[Panel] = []
    for buffer, piece in zip(plan.buffers, memory_of(plan), strict=False):  # what threads combine is after these
        own = range(piece.start, piece.start + piece.size)
        for does in ("store", "load"):
            at = [n for n, kind in kinds.items() if kind == does and n in patterns and _starts(patterns[n]) in own]
            if not at:
                continue
            worst = max(at, key=lambda n: lines[n]["wavefronts"] / lines[n]["ideal_wavefronts"])
            made, ideal = (lines[worst][name] / lines[worst]["shared_requests"] for name in WAVEFRONTS)
            said = f"{buffer.stage.array}, {does}s of {patterns[worst]['size']} bytes a lane: {made:g} wavefront"
            said += f"{'s' * (made != 1)} a warp, {ideal:g} without bank conflicts"
            first = accesses(result, worst).panels[0]
            panels.append(replace(first, title=said, note=first.title))
    return Picture(title if panels else f"{title}: no warp has bank conflicts at a stage", panels)


def _starts(pattern: Mapping[str, Any]) -> int:
    """The address of the first lane in shared memory."""
    return next((one for one in pattern["addresses"] if one is not None), -1) if pattern["space"] == "shared" else -1


def _blocks(plan: Plan, sizes: Mapping[str, int]) -> Panel:
    """The number of the block that computes each tile."""
    state = plan.state
    parts = [state.part(name) for name in state.blocks][-2:]
    counts = [state.iterations(part.name, sizes) for part in parts]
    down, across = counts if len(counts) == 2 else (1, counts[0])
    numbers = np.arange(down * across)
    if state.group:
        size = across * state.group
        first = numbers // size * state.group
        rows = np.minimum(down - first, state.group)
        tiles = (first + numbers % size % rows, numbers % size // rows)
    else:
        tiles = (numbers // across, numbers % across)
    found = np.full((down, across), -1)
    found[tiles] = numbers
    shown = found[:MOST, :MOST]
    weights = [part.weight for part in parts]
    down_by, across_by = weights if len(weights) == 2 else (1, weights[0])
    return Panel(
        f"blocks, by {' and '.join(f'{p.name} of {p.weight}' for p in parts)}",
        [[Cell(str(n), apart(int(n) // max(1, state.group or across))) for n in row] for row in shown],
        [str(n * down_by) for n in range(len(shown))],
        [str(n * across_by) for n in range(len(shown[0]))],
        note="" if shown.shape == found.shape else f"{down} x {across} blocks in all",
    )


def _owners(plan: Plan, one: Store) -> Owners:
    """The thread that computes each element of a block's part of a result, in its last two dimensions."""
    outside = {*plan.state.blocks, plan.state.cluster, *plan.state.algorithm.sizes}
    indices = [plan.index(part) for part in one.index[-2:]]
    row, column = (Linear(), *(index - index.only(outside) for index in indices))[-2:]
    width = int(np.ptp(places(plan.state, column))) + 1
    inside = places(plan.state, row * width + column)
    inside -= inside.min()
    found = np.full((int(inside.max()) // width + 1, width), -1)
    found.ravel()[inside] = np.arange(len(inside))[:, None]
    return found


def _copies(plan: Plan, buffer: Buffer) -> Panel:
    """The thread that copies each element of a box to shared memory."""
    loop = f"for each {buffer.stage.at}" if buffer.stage.at else "once"
    title = f"{buffer.stage.array}: {' x '.join(map(str, buffer.shape))} copied {loop}"
    if buffer.slots > 1:
        title += f", {buffer.slots} slots"
    if buffer.stage.array in plan.mapped:
        return Panel(title, [[Cell("TMA", 0)]], ["0"], ["0"], note="one thread starts the copy of all of it")
    element, thread = copied(plan, buffer)
    found = np.full(buffer.size, -1)
    found[element] = thread
    shape = (prod(buffer.shape[:-1]), buffer.shape[-1])
    rows, columns = np.indices(shape)
    strides = buffer.strides
    above = strides[-2] if len(strides) > 1 else 0
    return _panel(title, found[rows * above + columns * strides[-1]])


def _ring(plan: Plan, sizes: Mapping[str, int]) -> Panel:
    """The tile that each slot of the ring has in each iteration: it is copied ahead, and then read."""
    state = plan.state
    stages, part = state.pipeline.stages, state.part(state.pipeline.at)
    count = state.count(part) or -(-state.extent(part.axis).value(sizes) // (part.weight * state.cluster_blocks))
    shown = min(count, MOST)
    cells: list[list[Cell | None]] = []
    for slot in range(stages):
        tiles = [now + (slot - now) % stages for now in range(shown)]
        cells.append(
            [
                Cell(f"{'read' if tile == now else 'copy'} {tile}", apart(tile), strong=tile == now)
                if tile < count
                else None
                for now, tile in enumerate(tiles)
            ]
        )
    arrays = ", ".join(buffer.stage.array for buffer in plan.buffers if buffer.slots > 1)
    by = "a warp of its own" if state.specialized else "TMA" if plan.mapped else "all threads"
    return Panel(
        f"{arrays}: tiles in slots of the ring, by iteration of {part.name}",
        cells,
        [f"slot {slot}" for slot in range(stages)],
        [str(now) for now in range(shown)],
        note=f"copied by {by}, {stages - 1} iterations before it is read; {count} iterations in all",
    )


def _panel(title: str, owners: Owners) -> Panel:
    """A cell for the elements that are one thread's in both directions."""
    down, right = (_run(owners, axis) for axis in (0, 1))
    cells = owners[::down, ::right]
    shown = cells[:MOST, :MOST]
    note = f"a cell is {down} x {right} elements, a color a warp"
    if shown.shape != cells.shape:
        note += f"; {cells.shape[0]} x {cells.shape[1]} cells in all"
    return Panel(
        title,
        [[None if n < 0 else Cell(str(n), apart(int(n) // WARP)) for n in row] for row in shown],
        [str(n * down) for n in range(len(shown))],
        [str(n * right) for n in range(len(shown[0]))],
        note=note,
    )


def _run(owners: Owners, axis: int) -> int:
    """The longest power of two of neighbours that always have the same owner."""
    length = 1
    while owners.shape[axis] % (2 * length) == 0:
        pieces = np.split(owners, owners.shape[axis] // (2 * length), axis)
        if any((piece != piece.take([0], axis)).any() for piece in pieces):
            break
        length *= 2
    return length
