"""Findings about mbarriers that are not hangs: a wait for another phase than the one that brings the data."""

from __future__ import annotations

from ptxlab.emulate.abi import findings
from ptxlab.emulate.explain.accesses import Race
from ptxlab.emulate.explain.found import Found
from ptxlab.emulate.explain.mbarrier_hangs import name_mbarrier
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.paths import Signals
from ptxlab.emulate.runtime.order import last_waits
from ptxlab.report import Diagnostic, error


def explain_stale_phase(found: Found) -> Diagnostic:
    """A read after a wait that was over before the phase that brings what is read had started."""
    effects = found.access.effects
    subject = f"{operation_of(effects)} reads" if effects.steps else "a thread reads"
    at_once = "this wait is over at once: it is for the parity of the phase before phase 0"
    after = "what phase 0 brings is written here, after that"
    return error(
        "stale-phase",
        f"{subject} shared memory before the phase that brings the data",
        found.span,
        f"{found.access.who} reads what was there before phase 0 of {_mbarrier(found)}",
        others=[*found.label(found.record.wait.at - 1, at_once), *found.label(found.other.instruction, after)],
        notes=["a later phase of the same mbarrier is seen by no wait: what it brought is lost"],
        helps=["wait for parity 0 first, and flip the parity once for each time that the ring is through"],
    )


def describe_wait(race: Race) -> list[str]:
    """Notes on the waits of a race that were over too early, if there are any."""
    if race.kind == findings.COLLECTIVE_ONLY:
        return _awaited_phase(race)
    groups: list[str] = []
    if race.kind != findings.RACE or race.lacks_barrier:
        return []
    if not race.is_of_next:
        missing = _missing_commit(race) or _missing_wait(race)
        if missing and race.other.effects.uses("wgmma"):
            # Then the stage was released too early, and the wait for that is right, unless it was over at once.
            is_shown = not race.record.mbarrier.phases or race.record.wait.weak == last_waits.OTHER_WAIT
            return [*missing, *(_mbarrier_wait(race) if is_shown else [])]
        groups = missing or _group_wait(race)
    return [*groups, *_mbarrier_wait(race), *_commit(race)]


def _missing_commit(found: Found) -> list[str]:
    """A note on an MMA that is in no group when its thread waits for groups."""
    if not found.other.effects.does("wgmma", "start"):
        return []
    ends = found.paths.uncommitted(found.other.instruction, "wgmma")
    if ends is None:
        return []
    last, wait = map(found.line, ends)
    return [f"the wait on {wait} is not for the MMA: no `wgmma.commit_group` comes after {last}"]


def _missing_wait(found: Found) -> list[str]:
    """A note on a thread that signals others before it has waited for what it started."""
    earlier, later = found.parties
    effects = earlier.effects
    is_in_flight = earlier.is_copy or (found.record.is_started and effects.steps)
    if not is_in_flight or earlier.network is not None:
        return []
    unit, operation = effects.steps[0].unit, operation_of(effects)
    if not operation.is_awaited or any(access.operand == "mbar" for access in effects.accesses):
        return []
    after = found.paths.signals_after(earlier.instruction, unit, later.instruction)
    if not after.places or (after.is_awaited and unit == "tensor_memory"):  # of groups it is known what was awaited
        return []
    lines = " or ".join(map(found.line, after.places[:2]))
    is_left = _groups_left(found) > 0
    again = _signals_again(found, after, unit) if unit == "wgmma" else []
    if after.short_waits:
        is_other = is_left and found.record.wait.groups - 1 not in after.short_waits  # any may wait for too few
        last = _group_wait(found) if is_other else []
        waits = _short_waits(found, after)
        return [*last, f"{waits} in flight when its thread signals others, on {lines}", *again]
    if is_left:
        return []
    text = f"the thread that started the {operation.name} does not wait for it before {lines}, where it signals others"
    return [text, *again]


def _short_waits(found: Found, signals: Signals) -> str:
    """`the wait on line 40 leaves the latest group`, or such of several waits"""
    first, *others = signals.short_waits[:2]
    text = f"the wait on {found.line(first)} leaves {_groups(found.paths.groups_left(first))}"
    for other in others:
        text += f", and that on {found.line(other)} {_groups(found.paths.groups_left(other))},"
    return text


def _signals_again(found: Found, first: Signals, unit: str) -> list[str]:
    """Notes on where a thread signals others the second and the third time before it has waited for an operation."""
    notes, seen, before = [], set(first.places), first
    for _ in range(2):
        for place in before.places[:2]:
            after = found.paths.signals_after(place, unit, found.instruction)
            if not after.places or seen & set(after.places):  # nothing, or a loop
                continue
            seen |= set(after.places)
            lines = " or ".join(map(found.line, after.places[:2]))
            waits = f"{_short_waits(found, after)} in flight" if after.short_waits else "it is in flight"
            notes.append(f"{waits} when its thread signals others again, on {lines}")
            before = after
            break
    return notes


def _group_wait(found: Found) -> list[str]:
    """A note on the last wait for groups before a race with an operation of one."""
    wait = found.record.wait.groups
    if not wait:
        return []
    earlier, later = found.parties
    line, paths = found.line(wait - 1), found.paths
    if count := _groups_left(found):
        return [f"its last wait for groups, on {line}, leaves {_groups(count)} in flight"]
    if not paths.reaches(earlier.instruction, [wait - 1]):
        return [f"its last wait for groups, on {line}, came before it"]
    if earlier.is_by_thread_of(later) or paths.reaches(wait - 1, [earlier.instruction]):
        return [f"its last wait for groups is the one on {line}"]
    return [f"its thread waits for it on {line}; nothing orders {found.line(later.instruction)} after that"]


def _groups_left(found: Found) -> int:
    """How many groups the last wait before a race leaves in flight."""
    wait = found.record.wait.groups
    return found.paths.groups_left(wait - 1) if wait else 0


def _groups(count: int) -> str:
    """`the latest group`, `the latest 2 groups`"""
    return "the latest group" if count == 1 else f"the latest {count} groups"


def _mbarrier_wait(found: Found) -> list[str]:
    """A note on a wait on an mbarrier."""
    wait, phases = found.record.wait.at, found.record.mbarrier.phases
    if not wait:
        return []
    line = found.line(wait - 1)
    if found.record.wait.weak == last_waits.OTHER_WAIT:
        return [f"the last wait of the thread that writes is the one on {line}, on {_mbarrier(found)}"]
    if weak := found.record.wait.weak:
        what = "wait" if weak == last_waits.WEAK_WAIT else "arrival"
        return [f"the {what} on {line} hands nothing over: it is `.relaxed`, or its scope is too small"]
    mbarrier = _mbarrier(found)
    if not phases:
        return [
            f"the wait on {line} was over at once, before phase 0 of {mbarrier}: parity 1 is of the phase before it"
        ]
    return [
        f"the wait on {line} was over by phase {phases - 1} of {mbarrier}{_completed(found)}; "
        "what is awaited here comes with a later one"
    ]


def _awaited_phase(found: Found) -> list[str]:
    """A note on the wait of the later access on an mbarrier, and on what arrived there."""
    wait, phases = found.record.wait.at, found.record.mbarrier.phases
    if not wait or not phases:
        return []
    return [f"the wait on {found.line(wait - 1)} is for phase {phases - 1} of {_mbarrier(found)}{_completed(found)}"]


def _commit(found: Found) -> list[str]:
    """A note on the commit that signals the end of an operation on tensor memory."""
    commit = found.record.wait.commit
    if not commit:
        return []
    earlier, later = found.parties
    name = operation_of(earlier.effects).name
    text = f"{found.line(commit - 1)} commits the {name} to {_mbarrier(found)}"
    if earlier.is_by_thread_of(later):
        return [f"{text}, which the thread has not waited for since"]
    return [f"{text}; {later.who} has not waited for it since, nor synchronized with a thread that has"]


def _mbarrier(found: Found) -> str:
    return name_mbarrier(found.launch, found.record.mbarrier.offset)


def _completed(found: Found) -> str:
    """`, initialized on line 40 and complete with 1 arrival (line 109) and 16 bytes`"""
    mbarrier = found.record.mbarrier
    start, first, arrivals, bytes = mbarrier.initialized, mbarrier.completed_by, mbarrier.arrivals, mbarrier.bytes
    text = f", initialized on {found.line(start - 1)}" if start else ""
    if not first:
        return text
    plural = "s" * (arrivals != 1)
    with_bytes = f" and {bytes} bytes" if bytes else ""
    text += f"{' and' if start else ','} complete with {arrivals} arrival{plural}"
    return f"{text} ({found.line(first - 1)}){with_bytes}"
