"""Windows of warp steps: what each executes, by which lanes, and what it accesses; where the warps of a block are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxlab.lab.warp_steps import WarpSteps
from ptxlab.trace.accesses import NAMES
from ptxlab.trace.columns import Slot

WINDOW = 512  # warp steps
_ROLES = ("load", "store", "update")
MOST = 20_000  # steps of a line that are listed


def bounds(steps: WarpSteps, window: int) -> tuple[int, int]:
    """The steps of a window: the first, and past the last."""
    start = window * WINDOW
    return min(start, steps.count), min(start + WINDOW, steps.count)


def window_of(steps: WarpSteps, window: int) -> dict[str, Any]:
    """What is executed in a window, step by step."""
    start, end = bounds(steps, window)
    groups, instructions = steps.range(start, end)
    return {
        "start": start,
        "warps": steps.warp[groups].tolist(),
        "instructions": instructions.tolist(),
        "active": steps.all_active(start, groups),
        "accesses": list(_accesses(steps, start, end)),
    }


def _accesses(steps: WarpSteps, start: int, end: int) -> Iterator[dict[str, Any]]:
    """What the steps of a window access, each with the lanes and their addresses."""
    if start >= end:
        return
    groups, _ = steps.range(start, end)
    low, high = int(groups[0]), int(groups[-1])
    for group in range(max(low - 1, 0), high + 1):
        segment = steps.trace.columns.segments[int(steps.segment[group])]
        for slot in segment.slots:
            if slot.role in _ROLES:
                at = int(steps.first[group]) + segment.index(slot)
                if slot.instruction not in segment.index_of:  # it waits: the step is the warp's next
                    at = steps.around(int(steps.warp[group]), int(steps.first[group + 1]))[1]
                if start <= at < end:
                    yield {"step": at, **_access(steps, group, slot)}


def _access(steps: WarpSteps, group: int, slot: Slot) -> dict[str, Any]:
    columns = steps.trace.columns
    entries = columns.held(steps.entries(group), slot.guard)
    named, size = slot.what.split()
    addresses = columns.words(entries, slot.offset, slot.bytes).astype(np.int64)
    space, owner, address = steps.trace.accesses.resolve(named, addresses, columns.thread[entries])
    return {
        "kind": slot.role,
        "space": NAMES[int(space[0])] if len(space) else named,
        "size": int(size),
        "lanes": steps.lane_of_entry[entries].tolist(),
        "owners": sorted(set(owner.tolist())),
        "addresses": address.tolist(),
    }


def warps_at(steps: WarpSteps, block: int, window: int) -> list[dict[str, int]]:
    """Where the warps of a block are around a window: the last step before it, and the next after it."""
    start, end = bounds(steps, window)
    found = []
    for warp in range(block * steps.warps_in_block, (block + 1) * steps.warps_in_block):
        before = steps.around(warp, start)[0]
        after = steps.around(warp, end)[1]
        found.append({
            "warp": warp, "before": before, "after": after,
            "instructionBefore": steps.instruction(before) if before >= 0 else -1,
            "instructionAfter": steps.instruction(after) if after >= 0 else -1,
        })  # fmt: skip
    return found


def steps_at(steps: WarpSteps, line: int) -> dict[str, Any]:
    """When warps execute a line of the PTX."""
    program = steps.trace.program
    found = []
    for number, table in enumerate(steps.tables):
        for index, instruction in enumerate(table.tolist()):
            if program.line(instruction) == line:
                groups = np.flatnonzero(steps.segment == number)
                found.append(np.stack([steps.first[groups] + index, steps.warp[groups]], axis=1))
    pairs = np.concatenate(found) if found else np.zeros((0, 2), np.int64)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return {"count": len(pairs), "steps": pairs[:MOST, 0].tolist(), "warps": pairs[:MOST, 1].tolist()}
