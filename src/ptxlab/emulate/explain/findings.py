"""What the race detector has found, as diagnostics: races first, then what is read too early or too late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.accesses import Race, bytes_of, parties_of, race_of
from ptxlab.emulate.explain.barrier_faults import explain_not_invalidated
from ptxlab.emulate.explain.causes import by_source, by_synchronization, causes_of, other_lines
from ptxlab.emulate.explain.grids import explain_overlaps, is_of_earlier_grid
from ptxlab.emulate.explain.layout_findings import explain_mismatches
from ptxlab.emulate.explain.lockstep import explain_lockstep
from ptxlab.emulate.explain.mbarrier_findings import describe_wait, explain_stale_phase
from ptxlab.emulate.explain.memory_names import name_memory
from ptxlab.emulate.explain.one_sided import explain_one_sided
from ptxlab.emulate.explain.races import explain_race, started
from ptxlab.emulate.explain.snapshots import block_name, companion, thread_name
from ptxlab.emulate.explain.tensor_findings import explain_collectors, explain_unread
from ptxlab.emulate.explain.tensor_map_faults import explain_stale_map, explain_unchanged_map
from ptxlab.emulate.runtime.order import reports
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_findings(launch: RunningLaunch) -> Iterator[Diagnostic]:
    """What the race detector has found, races first; what a race explains is not reported again."""
    # Only one core reports: where several find something, the launch is run again on one.
    (worker, *_) = launch.workers
    found, numbers = worker.findings, range(worker.history.get("finding_count"))
    kinds = [found.get("kind", number) for number in numbers]
    overlapping = [number for number in numbers if kinds[number] in _RACES and is_of_earlier_grid(found, number)]
    yield from explain_overlaps(launch, found, overlapping)
    misread = {found.get("instruction", number) for number in numbers if kinds[number] == reports.MISMATCHED}
    races = [
        number
        for number in numbers
        if kinds[number] in _RACES and number not in overlapping and not _is_misread(found, number, misread)
    ]
    reported = []
    for cause in causes_of(launch, found, races):
        diagnostic = _RACES[kinds[cause[0]]](launch, found, cause[0])
        notes = (*describe_wait(launch, found, cause[0]), *other_lines(launch, found, cause))
        place = {name: found.get(name, cause[0]) for name in ("address", "bytes")}
        facts = {
            **diagnostic.facts,
            "accesses": [{**one.fact(launch), **place} for one in parties_of(found, cause[0])],
        }
        apart = {tuple(party.instruction for party in parties_of(found, one)): one for one in cause[1:]}
        if apart:
            facts["others"] = [[one.fact(launch) for one in parties_of(found, other)] for other in apart.values()]
        reported.append(replace(diagnostic, notes=(*diagnostic.notes, *notes), facts=facts))
    yield from _most_severe(reported)
    racing = misread | {found.get(name, number) for number in races for name in ("instruction", "other_instruction")}
    for number in numbers:
        is_early = kinds[number] == reports.UNSTARTED and found.get("instruction", number) not in racing
        if is_early or kinds[number] == reports.EXITED:
            racing.add(found.get("instruction", number))
            yield _explain_absence(launch, found, number)
    again = [
        number
        for number in numbers
        if kinds[number] == reports.NOT_INVALIDATED
        and (found.get("wait_phases", number) > 0 or found.get("instruction", number) not in racing)
    ]
    for first, *others in by_synchronization(launch, found, again):
        diagnostic = explain_not_invalidated(launch, found, first)
        more = [f"{len(others)} more mbarrier{'s are' if len(others) > 1 else ' is'} initialised again after it"]
        yield replace(diagnostic, notes=(*diagnostic.notes, *(more if others else ())))
    for number in numbers:
        if kinds[number] == reports.STALE_MAP:
            yield explain_stale_map(launch, found, number)
        elif kinds[number] == reports.UNCHANGED_MAP:
            yield explain_unchanged_map(launch, found, number)
    for number in numbers:
        if kinds[number] == reports.STALE_PHASE and found.get("instruction", number) not in racing:
            racing.add(found.get("instruction", number))
            yield explain_stale_phase(launch, found, number)
    yield from explain_mismatches(launch, found, [n for n in numbers if kinds[n] == reports.MISMATCHED])
    yield from explain_collectors(launch, found, [n for n in numbers if kinds[n] == reports.COLLECTOR])
    one_sided = [number for number in numbers if kinds[number] == reports.ONE_SIDED]
    yield from explain_one_sided(launch, found, [n for n in one_sided if found.get("instruction", n) not in racing])
    lockstep = [number for number in numbers if kinds[number] == reports.LOCKSTEP]
    yield from explain_lockstep(launch, found, [n for n in lockstep if found.get("instruction", n) not in racing])
    for number in numbers:
        if kinds[number] == reports.UNREAD and found.get("instruction", number) not in racing:
            yield explain_unread(launch, found, number)
    for kind in (reports.UNWRITTEN, reports.SHUFFLED):
        undefined = [n for n in numbers if kinds[n] == kind and found.get("instruction", n) not in racing]
        for first, *others in by_source(launch, found, undefined):
            yield _EXPLAINED[kind](launch, found, first, len(others))
    if worker.history.get("unwatched"):
        yield warning(
            "incomplete-check",
            "some accesses were not checked for races: there is too little memory to track all of them",
            launch.compiled.module.name_span(launch.compiled.kernel),
            "this kernel",
            helps=["launch fewer blocks, with `blocks=`, or smaller arrays"],
        )


def _is_misread(found: StructArray, number: int, misread: set[int]) -> bool:
    """Whether a race is of an MMA that reads other shared memory than it should; in tensor memory it races anyway."""
    both = {found.get(name, number) for name in ("instruction", "other_instruction")}
    return bool(misread & both) and found.get("space", number) != address_spaces.TENSOR_SPACE


def _most_severe(found: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Of several findings on the same lines one of each code, and no warning where there is an error; errors first."""
    kept: dict[tuple[tuple[int, ...], str], Diagnostic] = {}
    for diagnostic in sorted(found, key=lambda diagnostic: diagnostic.level):
        lines = tuple(sorted(label.span.start for label in diagnostic.labels))
        if diagnostic.level == "error" or all(other != lines for other, _ in kept):
            kept.setdefault((lines, diagnostic.code), diagnostic)
    yield from kept.values()


_BY_THREAD = ("written", "read")
_PROXIES = (
    "barriers order threads; asynchronous operations see what a thread wrote only after a proxy fence",
    "barriers order threads; what this writes may overtake the read of a thread that has passed no proxy fence since",
)


def _explain_unfenced(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    """What a thread wrote may not be visible to the asynchronous operation that uses it."""
    race = race_of(launch, found, number)
    if race.earlier.is_copy:
        return _explain_unfenced_copy(launch, race)
    name, is_read = race.operation(race.later).name, race.earlier.kind == address_spaces.LOAD
    fence = "fence.proxy.async.global" if race.space == address_spaces.GLOBAL_SPACE else "fence.proxy.async.shared::cta"
    return error(
        "missing-proxy-fence",
        f"{race.operation(race.later)} {race.later.does} {name_memory(race.space)} {_BY_THREAD[is_read]} by a thread, "
        "with no proxy fence in between",
        launch.span_of(race.later.instruction),
        f"{race.second} {started(race, race.later)} {race.bytes}",
        others=race.at_earlier(f"{race.first} {race.earlier.did} there"),
        notes=[_PROXIES[is_read]],
        helps=[f"`{fence};` in every thread that {race.earlier.does}, before the barrier that precedes the {name}"],
    )


def _explain_unfenced_copy(launch: RunningLaunch, race: Race) -> Diagnostic:
    """What `cp.async`, `st.async` or `red.async` wrote may not be visible to the asynchronous operation that uses it.

    Without the fence after `cp.async` many kernels in use are right, whatever the manual says: it is a warning.
    """
    says, word = (error, "st.async") if race.earlier.is_async else (warning, "cp.async")
    operation = race.operation(race.later)
    return says(
        "missing-proxy-fence",
        f"{operation} {race.later.does} shared memory written by `{word}`, with no proxy fence in between",
        launch.span_of(race.later.instruction),
        f"{race.second} {started(race, race.later)} {race.bytes}",
        others=race.at_earlier(f"{race.first} {started(race, race.earlier)} them"),
        notes=[f"`{word}` writes by the generic proxy, as threads do: a wait for it is not a proxy fence"],
        helps=[f"`fence.proxy.async.shared::cta;` after the wait for `{word}`, before the {operation.name}"],
    )


_RACES = {
    reports.RACE: explain_race,
    reports.UNFENCED: _explain_unfenced,
    reports.UNFENCED_TENSOR: explain_race,
    reports.COLLECTIVE_ONLY: explain_race,
    reports.FAILED_ONLY: explain_race,
}


def _explain_unwritten(launch: RunningLaunch, found: StructArray, number: int, others: int) -> Diagnostic:
    """A read of memory that nothing has been written to, and as many others from the same line of the source."""
    space = found.get("space", number)
    whose = "it has not written" if space == address_spaces.LOCAL_SPACE else "no thread has written"
    who = thread_name(launch, found.get("block", number), found.get("thread", number))
    return warning(
        "uninitialised-read",
        f"a thread reads {name_memory(space)} that {whose}",
        launch.span_of(found.get("instruction", number)),
        f"{who} read {bytes_of(launch, found, number)}",
        others=_use(launch, found, number),
        notes=_more_of_line(others),
        helps=["write it first: it is not zero on a GPU"],
    )


def _explain_shuffled(launch: RunningLaunch, found: StructArray, number: int, others: int) -> Diagnostic:
    """A value from a lane that takes no part in a `shfl`, and as many others from the same line of the source."""
    who = thread_name(launch, found.get("block", number), found.get("thread", number))
    return warning(
        "undefined-shuffle",
        "a value is used that `shfl` took from a lane that does not take part",
        launch.span_of(found.get("instruction", number)),
        f"{who} read a lane that is not in the mask, or has exited",
        others=_use(launch, found, number),
        notes=_more_of_line(others),
        helps=["let all lanes that are read execute the `shfl`, or discard the value where the lane is not there"],
    )


_EXPLAINED = {reports.UNWRITTEN: _explain_unwritten, reports.SHUFFLED: _explain_shuffled}


def _use(launch: RunningLaunch, found: StructArray, number: int) -> list[Label]:
    """Where an undefined value is used, if that is not where it comes from."""
    used = found.get("used_at", number)
    span = launch.span_of(used - 1) if used else None
    return [Label(span, "and the value is used here")] if span is not None else []


def _more_of_line(others: int) -> list[str]:
    return [f"so {'do' if others > 1 else 'does'} {others} more of the same line of the source"] if others else []


def _explain_absence(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    """Another block of the cluster may not be there when its shared memory is accessed."""
    is_late = found.get("kind", number) == reports.EXITED
    (_, party), address = parties_of(found, number), found.get("address", number)
    owner = block_name(launch, companion(launch, party.block, (address >> address_spaces.RANK_SHIFT) - 1))
    when = "may have exited" if is_late else "may not have started"
    return error(
        "exited-block" if is_late else "unstarted-block",
        f"a thread {party.does} shared memory of another block that {when}",
        launch.span_of(party.instruction),
        f"{thread_name(launch, party.block, party.thread)} {party.did} {bytes_of(launch, found, number)}",
        notes=[f"nothing makes {owner} {'stay until this is done' if is_late else 'start before this'}"],
        helps=[
            f"let all threads of the cluster synchronize at `barrier.cluster` {'after' if is_late else 'before'} it"
        ],
    )
