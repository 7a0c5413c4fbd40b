"""Findings about mbarriers that are not hangs: a wait for another phase than the one that brings the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.accesses import parties_of, race_of
from ptxlab.emulate.explain.mbarrier_hangs import name_mbarrier
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.paths import Paths, Signals
from ptxlab.emulate.explain.snapshots import thread_name
from ptxlab.emulate.runtime.order import last_waits, reports
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_stale_phase(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    """A read after a wait that was over before the phase that brings what is read had started."""
    read, write, wait = (found.get(name, number) for name in ("instruction", "other_instruction", "third_instruction"))
    mbarrier = name_mbarrier(launch, found.get("address", number))
    effects = launch.compiled.effects(read)
    subject = f"{operation_of(effects)} reads" if effects.steps else "a thread reads"
    texts = [
        (wait, "this wait is over at once: it is for the parity of the phase before phase 0"),
        (write, "what phase 0 brings is written here, after that"),
    ]
    return error(
        "stale-phase",
        f"{subject} shared memory before the phase that brings the data",
        launch.span_of(read),
        f"{thread_name(launch, found.get('block', number), found.get('thread', number))} reads what was there "
        f"before phase 0 of {mbarrier}",
        others=[Label(span, text) for at, text in texts if (span := launch.span_of(at)) is not None],
        notes=["a later phase of the same mbarrier is seen by no wait: what it brought is lost"],
        helps=["wait for parity 0 first, and flip the parity once for each time that the ring is through"],
    )


def describe_wait(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """Notes on the waits of a race that were over too early, if there are any."""
    if found.get("kind", number) == reports.COLLECTIVE_ONLY:
        return _awaited_phase(launch, found, number)
    if found.get("kind", number) != reports.RACE:
        return []
    race, groups = race_of(launch, found, number), []
    if race.lacks_barrier:
        return []
    if not race.is_of_next:
        missing = _missing_commit(launch, found, number) or _missing_wait(launch, found, number)
        if missing and launch.compiled.effects(found.get("other_instruction", number)).uses("wgmma"):
            # Then the stage was released too early, and the wait for that is right, unless it was over at once.
            is_shown = not found.get("wait_phases", number) or found.get("weak", number) == last_waits.OTHER_WAIT
            return [*missing, *(_mbarrier_wait(launch, found, number) if is_shown else [])]
        groups = missing or _group_wait(launch, found, number)
    return [*groups, *_mbarrier_wait(launch, found, number), *_commit(launch, found, number)]


def _missing_commit(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on an MMA that is in no group when its thread waits for groups."""
    earlier, later = parties_of(found, number)
    if not launch.compiled.effects(earlier.instruction).does("wgmma", "start"):
        return []
    ends = Paths(launch.compiled).uncommitted(earlier.instruction, "wgmma")
    if ends is None:
        return []
    last, wait = (launch.name_line(at, later.instruction) for at in ends)
    return [f"the wait on {wait} is not for the MMA: no `wgmma.commit_group` comes after {last}"]


def _missing_wait(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on a thread that signals others before it has waited for what it started."""
    earlier, later = parties_of(found, number)
    effects = launch.compiled.effects(earlier.instruction)
    is_in_flight = earlier.is_copy or (found.get("is_started", number) and effects.steps)
    if not is_in_flight:
        return []
    unit, operation = effects.steps[0].unit, operation_of(effects)
    if not operation.is_awaited or any(access.operand == "mbar" for access in effects.accesses):
        return []
    after = (paths := Paths(launch.compiled)).signals_after(earlier.instruction, unit, later.instruction)
    if not after.places or (after.is_awaited and unit == "tensor_memory"):  # of groups it is known what was awaited
        return []
    lines = " or ".join(launch.name_line(at, later.instruction) for at in after.places[:2])
    is_left = _groups_left(launch, found, number) > 0
    again = _signals_again(launch, paths, after, unit, later.instruction) if unit == "wgmma" else []
    if after.short_waits:
        is_other = is_left and found.get("group_wait", number) - 1 not in after.short_waits  # any may wait for too few
        last = _group_wait(launch, found, number) if is_other else []
        waits = _short_waits(launch, paths, after, later.instruction)
        return [*last, f"{waits} in flight when its thread signals others, on {lines}", *again]
    if is_left:
        return []
    text = f"the thread that started the {operation.name} does not wait for it before {lines}, where it signals others"
    return [text, *again]


def _short_waits(launch: RunningLaunch, paths: Paths, signals: Signals, beside: int) -> str:
    """`the wait on line 40 leaves the latest group`, or such of several waits"""
    first, *others = signals.short_waits[:2]
    text = f"the wait on {launch.name_line(first, beside)} leaves {_groups(paths.groups_left(first))}"
    for other in others:
        text += f", and that on {launch.name_line(other, beside)} {_groups(paths.groups_left(other))},"
    return text


def _signals_again(launch: RunningLaunch, paths: Paths, first: Signals, unit: str, until: int) -> list[str]:
    """Notes on where a thread signals others the second and the third time before it has waited for an operation."""
    notes, seen, before = [], set(first.places), first
    for _ in range(2):
        for place in before.places[:2]:
            after = paths.signals_after(place, unit, until)
            if not after.places or seen & set(after.places):  # nothing, or a loop
                continue
            seen |= set(after.places)
            lines = " or ".join(launch.name_line(at, until) for at in after.places[:2])
            waits = f"{_short_waits(launch, paths, after, until)} in flight" if after.short_waits else "it is in flight"
            notes.append(f"{waits} when its thread signals others again, on {lines}")
            before = after
            break
    return notes


def _group_wait(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on the last wait for groups before a race with an operation of one."""
    wait = found.get("group_wait", number)
    if not wait:
        return []
    earlier, later = parties_of(found, number)
    line, paths = launch.name_line(wait - 1, later.instruction), Paths(launch.compiled)
    if count := _groups_left(launch, found, number):
        return [f"its last wait for groups, on {line}, leaves {_groups(count)} in flight"]
    if not paths.reaches(earlier.instruction, [wait - 1]):
        return [f"its last wait for groups, on {line}, came before it"]
    is_other = (earlier.block, earlier.thread) != (later.block, later.thread)
    if not is_other or paths.reaches(wait - 1, [earlier.instruction]):
        return [f"its last wait for groups is the one on {line}"]
    read = launch.name_line(later.instruction, later.instruction)
    return [f"its thread waits for it on {line}; nothing orders {read} after that"]


def _groups_left(launch: RunningLaunch, found: StructArray, number: int) -> int:
    """How many groups the last wait before a race leaves in flight."""
    wait = found.get("group_wait", number)
    return Paths(launch.compiled).groups_left(wait - 1) if wait else 0


def _groups(count: int) -> str:
    """`the latest group`, `the latest 2 groups`"""
    return "the latest group" if count == 1 else f"the latest {count} groups"


def _mbarrier_wait(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on a wait on an mbarrier."""
    wait, phases = found.get("third_instruction", number), found.get("wait_phases", number)
    if not wait:
        return []
    line = launch.name_line(wait - 1, found.get("instruction", number))
    if found.get("weak", number) == last_waits.OTHER_WAIT:
        mbarrier = name_mbarrier(launch, found.get("wait", number))
        return [f"the last wait of the thread that writes is the one on {line}, on {mbarrier}"]
    if weak := found.get("weak", number):
        what = "wait" if weak == last_waits.WEAK_WAIT else "arrival"
        return [f"the {what} on {line} hands nothing over: it is `.relaxed`, or its scope is too small"]
    mbarrier = name_mbarrier(launch, found.get("wait", number))
    if not phases:
        return [
            f"the wait on {line} was over at once, before phase 0 of {mbarrier}: parity 1 is of the phase before it"
        ]
    return [
        f"the wait on {line} was over by phase {phases - 1} of {mbarrier}{_completed(launch, found, number)}; "
        "what is awaited here comes with a later one"
    ]


def _awaited_phase(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on the wait of the later access on an mbarrier, and on what arrived there."""
    wait, phases = found.get("third_instruction", number), found.get("wait_phases", number)
    if not wait or not phases:
        return []
    line = launch.name_line(wait - 1, found.get("instruction", number))
    mbarrier = name_mbarrier(launch, found.get("wait", number))
    return [f"the wait on {line} is for phase {phases - 1} of {mbarrier}{_completed(launch, found, number)}"]


def _commit(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on the commit that signals the end of an operation on tensor memory."""
    commit = found.get("commit", number)
    if not commit:
        return []
    earlier, later = parties_of(found, number)
    name = operation_of(launch.compiled.effects(earlier.instruction)).name
    line = launch.name_line(commit - 1, later.instruction)
    text = f"{line} commits the {name} to {name_mbarrier(launch, found.get('wait', number))}"
    if (earlier.block, earlier.thread) == (later.block, later.thread):
        return [f"{text}, which the thread has not waited for since"]
    who = thread_name(launch, later.block, later.thread)
    return [f"{text}; {who} has not waited for it since, nor synchronized with a thread that has"]


def _completed(launch: RunningLaunch, found: StructArray, number: int) -> str:
    """`, initialised on line 40 and complete with 1 arrival (line 109) and 16 bytes`"""
    beside = found.get("instruction", number)
    start, first = found.get("initialised", number), found.get("completed_by", number)
    text = f", initialised on {launch.name_line(start - 1, beside)}" if start else ""
    if not first:
        return text
    arrivals, bytes = found.get("phase_arrivals", number), found.get("phase_bytes", number)
    plural = "s" * (arrivals != 1)
    with_bytes = f" and {bytes} bytes" if bytes else ""
    text += f"{' and' if start else ','} complete with {arrivals} arrival{plural}"
    return f"{text} ({launch.name_line(first - 1, beside)}){with_bytes}"
