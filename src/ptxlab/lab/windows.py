"""Windows of warp steps: what each executes, by which lanes, what it accesses; where the warps of a block are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxlab.trace.accesses import SHARED
from ptxlab.trace.columns import Numbers, Segment, Slot
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

WINDOW = 512  # warp steps
_ROLES = ("load", "store", "update")
_MAY_BE_SHARED = ("shared", "cluster", "generic")
MOST = 20_000  # steps of a line that are listed


def bounds(steps: WarpSteps, window: int) -> tuple[int, int]:
    """The steps of a window: the first, and past the last."""
    start = window * WINDOW
    return min(start, steps.count), min(start + WINDOW, steps.count)


def window_of(steps: WarpSteps, window: int) -> dict[str, object]:
    """What is executed in a window, step by step."""
    start, end = bounds(steps, window)
    groups, instructions = steps.range(start, end)
    return {
        "start": start,
        "warps": steps.warp[groups].tolist(),
        "instructions": instructions.tolist(),
        "active": steps.all_active(start, groups),
    }


def accesses_in(steps: WarpSteps, window: int) -> list[dict[str, object]]:
    """What the steps of a window access in shared memory, each with the lanes and their addresses."""
    start, end = bounds(steps, window)
    if start >= end:
        return []
    groups, _ = steps.range(start, end)
    near = _near(steps, int(groups[0]), int(groups[-1]))
    found: list[Json] = []
    for number in np.unique(steps.segment[near]).tolist():
        segment, own = steps.trace.columns.segments[number], near[steps.segment[near] == number]
        for slot in segment.slots:
            if slot.role in _ROLES and slot.what.split()[0] in _MAY_BE_SHARED:
                at = _when(steps, own, segment, slot)
                is_inside = (at >= start) & (at < end)
                found += _of_slot(steps, own[is_inside], at[is_inside], slot)
    return sorted(found, key=lambda one: int(one["step"]))


def _near(steps: WarpSteps, low: int, high: int) -> Numbers:
    """The groups from one to another, and the one before them of each of their warps, which may have waited."""
    found = np.arange(low, high + 1)
    before = []
    for warp in np.unique(steps.warp[found]).tolist():
        own = steps.groups_of(warp)
        at = int(np.searchsorted(own, low))
        before += own[max(at - 1, 0) : at].tolist()
    return np.concatenate([np.sort(np.array(before, np.int64)), found])


def _when(steps: WarpSteps, groups: Numbers, segment: Segment, slot: Slot) -> Numbers:
    """The steps by which some groups of a segment make an access."""
    if slot.instruction in segment.index_of:
        return steps.first[groups] + segment.index(slot)
    waited = [  # the step is the warp's next
        steps.around(warp, past)[1]
        for warp, past in zip(steps.warp[groups].tolist(), steps.first[groups + 1].tolist(), strict=True)
    ]
    return np.array(waited, np.int64)


def _of_slot(steps: WarpSteps, groups: Numbers, at: Numbers, slot: Slot) -> Iterator[dict[str, object]]:
    """The accesses by one instruction of some groups, each at its step."""
    if not len(groups):
        return
    columns = steps.trace.columns
    entries = columns.held(np.concatenate([steps.entries(group) for group in groups.tolist()]), slot.guard)
    named, size = slot.what.split()
    addresses = columns.words(entries, slot.offset, slot.bytes).astype(np.int64)
    space, owner, address = steps.trace.accesses.resolve(named, addresses, columns.thread[entries])
    is_shared = space == SHARED
    entries, owner, address = entries[is_shared], owner[is_shared], address[is_shared].tolist()
    lanes = steps.lane_of_entry[entries].tolist()
    of = steps.group_of[entries]
    for low, high, step in zip(
        np.searchsorted(of, groups).tolist(), np.searchsorted(of, groups, "right").tolist(), at.tolist(), strict=True
    ):
        if low < high:
            yield {
                "step": step, "kind": slot.role, "size": int(size), "lanes": lanes[low:high],
                "owners": sorted(set(owner[low:high].tolist())), "addresses": address[low:high],
            }  # fmt: skip


def warps_at(steps: WarpSteps, block: int, window: int) -> list[dict[str, int]]:
    """Where the warps of a block are around a window: the last step before it, and the next after it with its lanes."""
    start, end = bounds(steps, window)
    found = []
    for warp in range(block * steps.warps_in_block, (block + 1) * steps.warps_in_block):
        before = steps.around(warp, start)[0]
        after = steps.around(warp, end)[1]
        found.append({
            "warp": warp, "before": before, "after": after,
            "instructionBefore": steps.instruction(before) if before >= 0 else -1,
            "instructionAfter": steps.instruction(after) if after >= 0 else -1,
            "activeAfter": steps.active(*steps.locate(after)) if after >= 0 else 0,
        })  # fmt: skip
    return found


def ticks_at(steps: WarpSteps, warp: int, position: int) -> dict[str, object]:
    """The line of the next instruction of a warp at a position, 0 if there is none, and when the warp executes it."""
    after = steps.around(warp, position)[1]
    if after < 0:
        return {"line": 0, "steps": []}
    line = steps.trace.program.line(steps.instruction(after))
    found = steps_at(steps, line, warp // steps.warps_in_block)
    return {"line": line, "steps": [at for at, own in zip(found["steps"], found["warps"], strict=True) if own == warp]}


def steps_at(steps: WarpSteps, line: int, block: int | None = None) -> Json:
    """When warps execute a line of the PTX, those of one block or all."""
    program = steps.trace.program
    found = []
    for number, table in enumerate(steps.tables):
        for index, instruction in enumerate(table.tolist()):
            if program.line(instruction) == line:
                groups = np.flatnonzero(steps.segment == number)
                found.append(np.stack([steps.first[groups] + index, steps.warp[groups]], axis=1))
    pairs = np.concatenate(found) if found else np.zeros((0, 2), np.int64)
    if block is not None:
        pairs = pairs[pairs[:, 1] // steps.warps_in_block == block]
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return {"count": len(pairs), "steps": pairs[:MOST, 0].tolist(), "warps": pairs[:MOST, 1].tolist()}
