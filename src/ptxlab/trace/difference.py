"""The first step at which two recorded launches differ.

Threads are compared one by one, since two schedules run them in different orders; of all threads, that difference is
reported which comes first in the first launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab.device.trace_format import READ, WRITTEN
from ptxlab.trace.columns import Columns

if TYPE_CHECKING:
    from ptxlab.trace.steps import InstructionStep
    from ptxlab.trace.trace import Trace

_COMPARED = ("address", "size", "instruction", "offset")


@dataclass(frozen=True)
class Difference:
    """Where two launches differ first: the step of each, and what is different there."""

    step: InstructionStep | None
    """The step of the first launch; None: it has no more steps of this thread."""
    other: InstructionStep | None
    what: str

    @property
    def line(self) -> int:
        """The line of the instruction, in the first launch if it is there."""
        found = self.step or self.other
        return found.line if found is not None else 0

    @property
    def values(self) -> dict[str, tuple[Any, Any]]:
        """Registers that the step wrote with different values, and both of them."""
        if self.step is None or self.other is None:
            return {}
        ours, theirs = self.step.results, self.other.results
        return {
            name: (ours[name], theirs[name]) for name in ours if name in theirs and _differ(ours[name], theirs[name])
        }

    def __str__(self) -> str:
        lines = [
            f"the launches differ first {self.what}",
            f"  {self.step or 'no step'}",
            f"  {self.other or 'no step'}",
        ]
        return "\n".join(lines)


def _differ(one: float, other: float | None) -> bool:
    return bool(one != other and not (one != one and other != other))


def difference(trace: Trace, other: Trace) -> Difference | None:
    """The first difference; None if there is none."""
    is_same = _shape(trace.columns) == _shape(other.columns)
    found = _by_payload(trace, other) if is_same else _by_steps(trace, other)
    if not found:
        return None
    _, step, there, what = min(found, key=lambda one: one[0])
    return Difference(
        None if step is None or step >= trace.steps else trace.step(step),
        None if there is None or there >= other.steps else other.step(there),
        what,
    )


_Found = tuple[int, int | None, int | None, str]


def _shape(columns: Columns) -> list[Any]:
    return [(segment.steps, segment.slots, segment.flags) for segment in columns.segments]


def _by_payload(trace: Trace, other: Trace) -> list[_Found]:
    """The first difference of each thread, of launches of the same segments."""
    found: list[_Found] = []
    ours, theirs = trace.columns, other.columns
    content, there = _clean(ours), _clean(theirs)
    events = [_accesses(one) for one in (trace, other)]
    active = {int(thread) for one in events for thread in np.unique(one["thread"])}
    for thread in sorted({*ours.threads, *theirs.threads}):
        a, b = ours.entries_by(thread), theirs.entries_by(thread)
        common = min(len(a), len(b))
        unlike = np.flatnonzero(ours.segment[a[:common]] != theirs.segment[b[:common]])
        same = int(unlike[0]) if len(unlike) else common
        at = _first_byte(ours, a[:same], content, theirs, b[:same], there)
        if at is not None:
            found.append(_in_payload(trace, other, a, b, *at))
        elif same < max(len(a), len(b)):
            found.append(_at_fork(trace, other, a, b, same))
        if thread in active:
            found += _of_events(trace, other, thread, [one[one["thread"] == thread] for one in events])
    return [one for one in found if one[0] < trace.steps]


def _first_byte(
    ours: Columns, a: npt.NDArray[np.int64], content: npt.NDArray[np.uint8], theirs: Columns,
    b: npt.NDArray[np.int64], there: npt.NDArray[np.uint8],
) -> tuple[int, int] | None:  # fmt: skip
    """Which of some entries of a thread has other bytes, and the offset in its payload of the first."""
    sizes = ours.offset[a + 1] - ours.offset[a]
    total = int(sizes.sum())
    if not total:
        return None
    within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    unlike = np.flatnonzero(
        content[np.repeat(ours.offset[a], sizes) + within] != there[np.repeat(theirs.offset[b], sizes) + within]
    )
    if not len(unlike):
        return None
    first = int(unlike[0])
    position = int(np.searchsorted(np.cumsum(sizes), first, "right"))
    return position, int(within[first])


def _clean(columns: Columns) -> npt.NDArray[np.uint8]:
    """All payloads, with zeros where nothing was written because a guard did not hold."""
    content = columns.payload.copy()
    for number, segment in enumerate(columns.segments):
        for slot in segment.slots:
            if slot.guard >= 0:
                entries = columns.entries_of(number)
                entries = entries[columns.payload[columns.offset[entries] + slot.guard] == 0]
                content[columns.offset[entries][:, None] + slot.offset + np.arange(slot.bytes)] = 0
    return content


def _in_payload(
    trace: Trace, other: Trace, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], position: int, offset: int
) -> _Found:
    entry, there = int(a[position]), int(b[position])
    segment = trace.columns.segment_of(entry)
    slot = next(one for one in segment.slots if one.offset <= offset < one.offset + one.bytes)
    index = segment.index(slot)
    what = {"register": f"in `{slot.what}`", "guard": "in whether an instruction is executed"}
    text = what.get(slot.role, "in what is stored" if slot.role == "value" else "in an address")
    step, step_there = int(trace.columns.first_step[entry]), int(other.columns.first_step[there])
    return step + index, step + index, step_there + index, text


def _at_fork(trace: Trace, other: Trace, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], position: int) -> _Found:
    """Where the paths of a thread fork, or one ends: the last step that they have in common."""
    ours, theirs = trace.columns, other.columns
    if position == 0:
        step = int(ours.first_step[a[0]]) if len(a) else None
        there = int(theirs.first_step[b[0]]) if len(b) else None
        return step or 0, step, there, "in which threads are recorded"
    step = int(ours.first_step[a[position - 1] + 1]) - 1
    return step, step, int(theirs.first_step[b[position - 1] + 1]) - 1, "in where the thread continues after this step"


def _of_events(trace: Trace, other: Trace, thread: int, events: list[npt.NDArray[Any]]) -> list[_Found]:
    """The first asynchronous access of a thread that is not the same."""
    ours, theirs = events
    common = min(len(ours), len(theirs))
    unlike = np.zeros(common, bool)
    for name in _COMPARED:
        unlike |= ours[name][:common] != theirs[name][:common]
    if not unlike.any():
        return []
    index = int(np.flatnonzero(unlike)[0])
    step, there = _issue(trace, thread, ours[index]), _issue(other, thread, theirs[index])
    return [] if step is None else [(step, step, there, "in what an asynchronous operation accesses")]


def _accesses(trace: Trace) -> npt.NDArray[Any]:
    """The accesses of asynchronous operations."""
    events = trace.columns.events
    found: npt.NDArray[Any] = events[(events["kind"] == READ) | (events["kind"] == WRITTEN)]
    return found


def _issue(trace: Trace, thread: int, event: Any) -> int | None:
    """The last step of a thread at the instruction of an event, before that."""
    columns: Columns = trace.columns
    own = columns.entries_by(thread)
    for entry in own[own < int(event["time"])][::-1]:
        index = columns.segment_of(entry).index_of.get(int(event["instruction"]))
        if index is not None:
            return int(columns.first_step[entry]) + index
    return None


def _by_steps(trace: Trace, other: Trace) -> list[_Found]:
    """The first difference of each thread, of two versions of a kernel with other instructions."""
    texts = [[one.program.text(n) for n in range(len(one.program.instructions))] for one in (trace, other)]
    pairs = {
        (match.a + k, match.b + k)
        for match in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_matching_blocks()
        for k in range(match.size)
    }
    found: list[_Found] = []
    for thread in sorted({*trace.columns.threads} & {*other.columns.threads}):
        block, own = divmod(thread, trace.accesses.threads_in_block)
        a, b = trace.steps_of(own, block), other.steps_of(own, block)
        for step, there in zip(a.tolist(), b.tolist(), strict=False):
            if found and step >= min(found)[0]:
                break
            if (trace.instruction_at(step), other.instruction_at(there)) not in pairs:
                found.append((step, step, there, "in the instruction"))
                break
            ours, theirs = trace.step(step), other.step(there)
            if ours.executed != theirs.executed or ours.accesses != theirs.accesses or _unlike(ours, theirs):
                found.append((step, step, there, "in what the instruction does"))
                break
    return found


def _unlike(ours: InstructionStep, theirs: InstructionStep) -> bool:
    return any(_differ(value, theirs.results.get(name)) for name, value in ours.results.items())
