"""What a launch has found, each access with the step at which it was made, as far as that is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ptxlab.device.trace_format import ISSUED, READ, WRITTEN
from ptxlab.lab.windows import steps_at
from ptxlab.trace.accesses import GLOBAL
from ptxlab.trace.columns import Numbers
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

_OFFSET = (1 << 24) - 1  # of an address in shared memory, without the rank of its block
_ROLES = ("load", "store", "update")


def findings(steps: WarpSteps) -> list[Json]:
    """The findings as the page shows them."""
    found = []
    for one in steps.trace.findings:
        taken: set[tuple[int, int]] = set()  # steps of threads that are one of the accesses: the other is another
        accesses = []
        for access in one.accesses:
            when = _when(steps, access, taken)
            if when:
                taken.add((access["thread"], when["step"]))
            accesses.append({**access, **when})
        found.append({**asdict(one), "accesses": accesses})
    return found


def start(steps: WarpSteps, found: Sequence[Json]) -> dict[str, int]:
    """Where the page starts: at an access of the first finding, where its line is executed last, or at the end."""
    for one in found:
        known = next((access for access in one["accesses"] if "step" in access), None)
        if known is not None:
            return {"position": known["step"], "warp": known["warp"], "lane": known["lane"]}
        times = steps_at(steps, one["line"])
        if times["count"]:
            return {"position": times["steps"][-1], "warp": times["warps"][-1]}
        if one["level"] == "error":  # a barrier that no warp passes
            return {"position": steps.count}
    return {}


def _when(steps: WarpSteps, access: dict[str, int], taken: set[tuple[int, int]]) -> dict[str, int]:
    """When a thread makes an access: the first time to these bytes; of an operation that is not recorded, the first.

    Nothing of an access that another launch makes, which ran at the same time.
    """
    trace = steps.trace
    if trace.together is not None and access.get("launch") != trace.together.number:
        return {}
    thread = trace.number_of(access["thread"], access["block"])
    lines = [at for at in range(len(trace.program.instructions)) if trace.program.line(at) == access["line"]]
    times = [*_to_bytes(steps, access, thread, lines), *_all(steps, thread, lines)]
    step = next((one for one in times if (access["thread"], one) not in taken), None)
    if step is None:
        return {}
    block, own = divmod(thread, trace.accesses.threads_in_block)
    return {"step": step, "warp": block * steps.warps_in_block + own // 32, "lane": own % 32}


def _to_bytes(steps: WarpSteps, access: dict[str, int], thread: int, lines: list[int]) -> list[int]:
    """The steps of a thread at some instructions that access the bytes of a finding, in order."""
    if "address" not in access:
        return []
    return sorted({*_by_thread(steps, access, thread, lines), *_by_copies(steps, access, thread, lines)})


def _by_thread(steps: WarpSteps, access: dict[str, int], thread: int, lines: list[int]) -> Iterator[int]:
    """Accesses that the thread makes itself."""
    columns, accesses = steps.trace.columns, steps.trace.accesses
    for number, segment in enumerate(columns.segments):
        for slot in segment.slots:
            if slot.role not in _ROLES or slot.instruction not in lines:
                continue
            entries = columns.held(columns.entries_by_segment(thread, number), slot.guard)
            if not len(entries):
                continue
            named, size = slot.what.split()
            words = columns.words(entries, slot.offset, slot.bytes).astype(np.int64)
            space, _, address = accesses.resolve(named, words, columns.thread[entries])
            held = entries[_overlaps(access, space == GLOBAL, address, np.full(len(entries), int(size)))]
            yield from (steps.first[steps.group_of[held]] + segment.index(slot)).tolist()


def _by_copies(steps: WarpSteps, access: dict[str, int], thread: int, lines: list[int]) -> Iterator[int]:
    """Accesses of asynchronous operations: when they were issued."""
    events = steps.trace.columns.events
    own = steps.events_of(access["block"])
    own = own[(events["thread"][own] == thread) & np.isin(events["instruction"][own], lines)]
    pieces = own[np.isin(events["kind"][own], (READ, WRITTEN))]
    is_global = events["block"][pieces] != access["block"]
    address, size = (events[name][pieces].astype(np.int64) for name in ("address", "size"))
    operations = np.unique(events["operation"][pieces[_overlaps(access, is_global, address, size)]])
    issued = own[(events["kind"][own] == ISSUED) & np.isin(events["operation"][own], operations)]
    yield from steps.event_steps[issued].tolist()


def _overlaps(access: dict[str, int], is_global: Any, address: Numbers, size: Numbers) -> Any:
    start = np.where(is_global, access["address"], access["address"] & _OFFSET)
    return (address < start + access["bytes"]) & (address + size > start)


def _all(steps: WarpSteps, thread: int, lines: list[int]) -> Iterator[int]:
    """All steps of a thread at some instructions."""
    columns = steps.trace.columns
    for entry in columns.entries_by(thread).tolist():
        for index, (instruction, _) in enumerate(columns.segment_of(entry).steps):
            if instruction in lines:
                yield int(steps.first[steps.group_of[entry]]) + index
