"""Races between grids that overlap: accesses before `griddepcontrol.wait` to what the grid before accesses, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.explain.found import Found, Party
from ptxlab.emulate.runtime.order import shadow
from ptxlab.emulate.runtime.order.earlier_grids import AGE_SHIFT, EARLIER, INSTRUCTION, MOST_AGE
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def is_of_earlier_grid(found: Found) -> bool:
    """Whether a finding is about an access of an earlier grid."""
    return bool(found.other.instruction & EARLIER)


def explain_overlaps(races: Sequence[Found]) -> Iterator[Diagnostic]:
    """The races with earlier grids, of each pair of lines one."""
    first: dict[tuple[int, int], Found] = {}
    for race in races:
        first.setdefault(race.instructions, race)
    yield from map(_explain, first.values())


def grid_of(launch: RunningLaunch, instruction: int) -> tuple[RunningLaunch, str]:
    """The grid that an instruction is of, and which one that is, in words."""
    before, which = launch.before, "the grid before"
    for _ in range(instruction >> AGE_SHIFT & MOST_AGE):
        before, which = before and before.before, "an earlier grid"
    assert before is not None
    return before, which


def label_of(party: Party, does: str) -> list[Label]:
    """A label at the line of an access of this grid or an earlier one, if that has a line."""
    if not party.instruction & EARLIER:
        span, who = party.launch.span_of(party.instruction), party.who
    else:
        before, which = grid_of(party.launch, party.instruction)
        span, who = before.span_of(party.instruction & INSTRUCTION), f"`{before.compiled.kernel.name}`, {which},"
    return [] if span is None else [Label(span, f"{who} {does}")]


def _explain(race: Found) -> Diagnostic:
    launch, (earlier, later) = race.launch, race.parties
    before, which = grid_of(launch, earlier.instruction)
    name, span = before.compiled.kernel.name, before.span_of(earlier.instruction & INSTRUCTION)
    how = "started an operation that " if later.is_async else ""
    does = f"{how}{later.does}" if later.is_async else later.did
    other = "the grid before it" if before is launch.before else which
    message = f"a grid {later.does} global memory that {other} {earlier.does}, before `griddepcontrol.wait`"
    if later.flags & shadow.STALE:
        message = f"a load through the non-coherent cache of global memory that {other} {earlier.does}"
    note, helps = missing_wait(later, "this grid", f"`{name}`")
    return error(
        "data-race",
        message,
        race.span,
        f"{later.who} {does} {race.bytes}",
        others=[] if span is None else [Label(span, f"`{name}`, {which}, {earlier.did} there")],
        notes=[note],
        helps=helps,
    )


def missing_wait(later: Party, here: str, there: str) -> tuple[str, list[str]]:
    """Why an access is not ordered after what a grid did that `here` overlaps with, and what orders it."""
    start = f"`griddepcontrol.launch_dependents` let {here} start while {there} may still run"
    wait = "`griddepcontrol.wait;` before this line, or before a barrier that precedes it"
    if not later.flags & shadow.STALE:
        return f"{start}; only `griddepcontrol.wait` orders what that did before this", [wait]
    note = (
        f"{start}: `.nc` is for memory that nothing writes while a kernel runs; ptxas moves such loads above the wait"
    )
    return note, [
        "`ld.global` without `.nc`, after `griddepcontrol.wait`",
        "in CUDA C++, a pointer that is not `const __restrict__`, and no `__ldg`",
    ]
