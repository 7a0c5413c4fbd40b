"""What the detectors have found, as diagnostics: races first, then what is read too early or too late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxlab.emulate.abi import address_spaces, findings
from ptxlab.emulate.explain.accesses import Race
from ptxlab.emulate.explain.across import explain_across, is_across
from ptxlab.emulate.explain.barrier_faults import explain_not_invalidated
from ptxlab.emulate.explain.causes import by_source, by_synchronization, causes_of, other_lines
from ptxlab.emulate.explain.found import Found
from ptxlab.emulate.explain.grids import explain_overlaps, is_of_earlier_grid
from ptxlab.emulate.explain.layout_findings import IN_THE_TILE, Mismatch, explain_mismatches
from ptxlab.emulate.explain.lockstep import explain_lockstep
from ptxlab.emulate.explain.mbarrier_findings import describe_wait, explain_stale_phase
from ptxlab.emulate.explain.memory_names import name_memory
from ptxlab.emulate.explain.one_sided import explain_one_sided
from ptxlab.emulate.explain.paths import Paths
from ptxlab.emulate.explain.races import explain_race, explain_unfenced
from ptxlab.emulate.explain.snapshots import block_name, companion
from ptxlab.emulate.explain.tensor_findings import explain_collectors, explain_unread
from ptxlab.emulate.explain.tensor_map_faults import explain_stale_map, explain_unchanged_map
from ptxlab.emulate.host.merging import merged_findings
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_RACES: dict[int, Callable[[Race], Diagnostic]] = {
    findings.RACE: explain_race,
    findings.UNFENCED: explain_unfenced,
    findings.UNFENCED_TENSOR: explain_race,
    findings.COLLECTIVE_ONLY: explain_race,
    findings.FAILED_ONLY: explain_race,
}
_CLASSES: dict[int, type[Found]] = {findings.MISMATCHED: Mismatch, **dict.fromkeys(_RACES, Race)}


def explain_findings(launch: RunningLaunch) -> Iterator[Diagnostic]:
    """What the race detector has found, races first; what a race explains is not reported again."""
    every = _findings_of(launch)
    across = [one for one in every if isinstance(one, Race) and is_across(one)]
    yield from explain_across(across)
    kernels: dict[int, list[Found]] = {}
    for one in every:
        if one not in across:
            kernels.setdefault(id(one.launch.compiled), []).append(one)
    for found in kernels.values():
        yield from _explain_kernel(found)
    if any(worker.history.get("unwatched") for worker in launch.workers):
        yield warning(
            "incomplete-check",
            "some accesses were not checked for races: there is too little memory to track all of them",
            launch.compiled.module.name_span(launch.compiled.kernel),
            "this kernel",
            helps=["launch fewer blocks, with `blocks=`, or smaller arrays"],
        )


def _explain_kernel(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """What was found of one kernel."""
    misread = {one.instruction for one in found if isinstance(one, Mismatch)}
    astray = {one.instruction for one in found if isinstance(one, Mismatch) and one.reason not in IN_THE_TILE}
    races = [one for one in found if isinstance(one, Race)]
    yield from explain_overlaps([race for race in races if is_of_earlier_grid(race)])
    races = [race for race in races if not is_of_earlier_grid(race) and not _is_misread(race, astray)]
    yield from _most_severe([_explain_cause(cause) for cause in causes_of(races)])
    racing = misread | {instruction for race in races for instruction in race.instructions}
    for kinds, explain in EXPLAINERS.items():
        left = [one for one in found if one.kind in kinds and not _is_explained(one, racing)]
        if kinds in _EARLIEST:
            racing |= {one.instruction for one in left}
        yield from explain(left)


def _findings_of(launch: RunningLaunch) -> list[Found]:
    """All that was found, decoded once."""
    records = merged_findings(launch) or []
    launches = [launch.of(record.access.block) for record in records]
    paths = {id(one.compiled): Paths(one.compiled) for one in launches}
    return [
        _CLASSES.get(record.kind, Found)(one, record, paths[id(one.compiled)])
        for one, record in zip(launches, records, strict=True)
    ]


def _is_misread(race: Race, astray: set[int]) -> bool:
    """Whether a race is of an MMA that reads other shared memory than it should; in tensor memory it races anyway."""
    return not astray.isdisjoint(race.instructions) and race.space != address_spaces.TENSOR_SPACE


def _is_explained(found: Found, racing: set[int]) -> bool:
    """Whether a finding follows from another one at its instruction."""
    if found.kind == findings.NOT_INVALIDATED and found.record.mbarrier.phases > 0:
        return False
    return found.kind not in _OF_THEIR_OWN and found.instruction in racing


def _explain_cause(cause: list[Race]) -> Diagnostic:
    """One report for all races with one cause, of which the first represents the others."""
    race, *others = cause
    diagnostic = _RACES[race.kind](race)
    facts = {**diagnostic.facts, "accesses": race.facts}
    apart = {other.instructions: other for other in others}
    if apart:
        facts["others"] = [[one.fact() for one in other.parties] for other in apart.values()]
    return replace(diagnostic, notes=(*diagnostic.notes, *describe_wait(race), *other_lines(cause)), facts=facts)


def _most_severe(found: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Of several findings on the same lines one of each code, and no warning where there is an error; errors first."""
    kept: dict[tuple[tuple[int, ...], str], Diagnostic] = {}
    for diagnostic in sorted(found, key=lambda diagnostic: diagnostic.level):
        lines = tuple(sorted(label.span.start for label in diagnostic.labels))
        if diagnostic.level == "error" or all(other != lines for other, _ in kept):
            kept.setdefault((lines, diagnostic.code), diagnostic)
    yield from kept.values()


def _explain_absences(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Other blocks of the cluster that may not be there when their shared memory is accessed."""
    known = set()
    for one in found:
        if one.kind == findings.EXITED or one.instruction not in known:
            known.add(one.instruction)
            yield _explain_absence(one)


def _explain_absence(found: Found) -> Diagnostic:
    is_late, party = found.kind == findings.EXITED, found.access
    rank = (found.record.address >> address_spaces.RANK_SHIFT) - 1
    owner = block_name(found.launch, companion(found.launch, party.block, rank))
    when = "may have exited" if is_late else "may not have started"
    notes = [f"nothing makes {owner} {'stay until this is done' if is_late else 'start before this'}"]
    helps = [f"let all threads of the cluster synchronize at `barrier.cluster` {'after' if is_late else 'before'} it"]
    if relaxed := _relaxed_arrivals(found) if is_late else []:
        lines = " and ".join(dict.fromkeys(found.line(number) for number in relaxed))
        notes.append(f"`barrier.cluster.arrive.relaxed` in {lines} does not wait for it: it orders no memory accesses")
        helps = [f"leave `.relaxed` out in {lines}, or `fence.acq_rel.cluster;` before it"]
    return error(
        "exited-block" if is_late else "unstarted-block",
        f"a thread {party.does} shared memory of another block that {when}",
        found.span,
        f"{party.who} {party.did} {found.bytes}",
        notes=notes,
        helps=helps,
    )


def _relaxed_arrivals(found: Found) -> list[int]:
    """The arrivals at the cluster's barrier after an access; none if one of them would order it."""
    arrivals = [at for at in found.paths.at_cluster_barrier() if found.paths.reaches(found.instruction, [at])]
    is_relaxed = not any(found.launch.compiled.effects(at).orders for at in arrivals)
    return arrivals if is_relaxed else []


def _explain_not_invalidated(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Mbarriers that are initialized again, of those after one synchronization the first."""
    for first, *others in by_synchronization(found):
        diagnostic = explain_not_invalidated(first)
        more = [f"{len(others)} more mbarrier{'s are' if len(others) > 1 else ' is'} initialized again after it"]
        yield replace(diagnostic, notes=(*diagnostic.notes, *(more if others else ())))


def _explain_unwritten(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Reads of memory that nothing has been written to, of one line of the source the first."""
    for first, *others in by_source(found):
        whose = "it has not written" if first.space == address_spaces.LOCAL_SPACE else "no thread has written"
        yield warning(
            "uninitialized-read",
            f"a thread reads {name_memory(first.space)} that {whose}",
            first.span,
            f"{first.access.who} read {first.bytes}",
            others=_use(first),
            notes=_more_of_line(others),
            helps=["write it first: it is not zero on a GPU"],
        )


def _explain_shuffled(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Values from lanes that take no part in a `shfl`, of one line of the source the first."""
    for first, *others in by_source(found):
        yield warning(
            "undefined-shuffle",
            "a value is used that `shfl` took from a lane that does not take part",
            first.span,
            f"{first.access.who} read a lane that is not in the mask, or has exited",
            others=_use(first),
            notes=_more_of_line(others),
            helps=["let all lanes that are read execute the `shfl`, or discard the value where the lane is not there"],
        )


def _use(found: Found) -> list[Label]:
    """Where an undefined value is used, if that is not where it comes from."""
    used = found.record.used_at
    return found.label(used - 1, "and the value is used here") if used else []


def _more_of_line(others: Sequence[Found]) -> list[str]:
    count = len(others)
    return [f"so {'do' if count > 1 else 'does'} {count} more of the same line of the source"] if others else []


def _each(explainers: dict[int, Callable[[Found], Diagnostic]]) -> Callable[[Sequence[Found]], Iterator[Diagnostic]]:
    """One report for each finding, by its kind."""
    return lambda found: (explainers[one.kind](one) for one in found)


_ABSENCES = (findings.UNSTARTED, findings.EXITED)
EXPLAINERS: dict[tuple[int, ...], Callable[[Sequence[Any]], Iterator[Diagnostic]]] = {  # in the order of reports
    _ABSENCES: _explain_absences,
    (findings.NOT_INVALIDATED,): _explain_not_invalidated,
    (findings.STALE_MAP, findings.UNCHANGED_MAP): _each(
        {findings.STALE_MAP: explain_stale_map, findings.UNCHANGED_MAP: explain_unchanged_map}
    ),
    (findings.STALE_PHASE,): _each({findings.STALE_PHASE: explain_stale_phase}),
    (findings.MISMATCHED,): explain_mismatches,
    (findings.COLLECTOR,): explain_collectors,
    (findings.ONE_SIDED,): explain_one_sided,
    (findings.LOCKSTEP,): explain_lockstep,
    (findings.UNREAD,): _each({findings.UNREAD: explain_unread}),
    (findings.UNWRITTEN,): _explain_unwritten,
    (findings.SHUFFLED,): _explain_shuffled,
}
_EARLIEST = (_ABSENCES, (findings.STALE_PHASE,))  # which explain what comes after them
_OF_THEIR_OWN = (  # which no other finding explains
    findings.EXITED,
    findings.STALE_MAP,
    findings.UNCHANGED_MAP,
    findings.MISMATCHED,
    findings.COLLECTOR,
)
