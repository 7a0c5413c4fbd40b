"""Races between grids that overlap: accesses before `griddepcontrol.wait` to what the grid before accesses, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.explain.found import Found, Party
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
    return error(
        "data-race",
        f"a grid {later.does} global memory that {other} {earlier.does}, before `griddepcontrol.wait`",
        race.span,
        f"{later.who} {does} {race.bytes}",
        others=[] if span is None else [Label(span, f"`{name}`, {which}, {earlier.did} there")],
        notes=[
            f"`griddepcontrol.launch_dependents` let this grid start while `{name}` may still run; "
            "only `griddepcontrol.wait` orders what that did before this"
        ],
        helps=["`griddepcontrol.wait;` before this line, or before a barrier that precedes it"],
    )
