"""Data races: two accesses that no synchronization orders, or an access to what an operation in flight still uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxlab.emulate.abi import address_spaces, findings
from ptxlab.emulate.explain.accesses import Race, are_companions, excuse
from ptxlab.emulate.explain.found import Party, replay
from ptxlab.emulate.explain.memory_names import name_memory
from ptxlab.emulate.explain.tensor_findings import (
    explain_missing_fence,
    explain_missing_fence_before,
    explain_tensor_race,
)
from ptxlab.emulate.runtime.order import shadow
from ptxlab.emulate.runtime.order.tensor_happens_before import WITHOUT_FENCE_BEFORE
from ptxlab.report import Diagnostic, error, warning

_COLLECTIVE = (
    "`shfl`, `vote`, `match`, `redux`, `elect`, `mma`, `wgmma`, `ldmatrix` and the like wait for lanes of a warp, "
    "but order no memory"
)
_FAILED = (
    "they are ordered if a `cas` that fails counts as a write, as in the manual's pseudo-code of `atom`; "
    "by its memory model (8.4), and in C++, it is a read and releases nothing"
)

_BY_THREAD = ("written", "read")
_PROXIES = (
    "barriers order threads; asynchronous operations see what a thread wrote only after a proxy fence",
    "barriers order threads; what this writes may overtake the read of a thread that has passed no proxy fence since",
)


@dataclass(frozen=True)
class _Account:
    """The text of a race: what happened, and what the first and the second access did."""

    message: str
    before: str
    after: str
    notes: list[str] = field(default_factory=list)
    helps: list[str] = field(default_factory=list)


def explain_race(race: Race) -> Diagnostic:
    """Two accesses to the same memory without order."""
    if race.space == address_spaces.TENSOR_SPACE:
        if race.kind != findings.UNFENCED_TENSOR:
            return explain_tensor_race(race)
        is_before = race.record.missing == WITHOUT_FENCE_BEFORE
        return explain_missing_fence_before(race) if is_before else explain_missing_fence(race)
    if race.earlier.is_copy:
        account = _with_operation_in_flight(race)
    elif (race.later.flags | race.earlier.flags) & shadow.STALE:
        account = _through_stale_cache(race)
    else:
        account = _without_synchronization(race)
    say, code, message, notes, helps = error, "data-race", account.message, account.notes, account.helps
    if race.kind == findings.COLLECTIVE_ONLY:
        say, code, notes = warning, "unordered-collective", [_COLLECTIVE]
        message = f"{message.removeprefix('unsynchronized: ')}, ordered only by a warp collective"
        helps = ["`bar.warp.sync` after the first of them orders lanes of a warp, and what they do for others"]
    elif race.kind == findings.FAILED_ONLY:
        say, notes = warning, [*notes, _FAILED]
    elif reason := excuse(race):
        say, notes = warning, [*notes, reason]
    after, others = account.after, race.at_earlier(account.before)
    if race.earlier.instruction == race.later.instruction:
        after, others = f"{account.before}, {after}", []
    span = race.launch.span_of(race.later.instruction)
    return say(code, message, span, after, others=others, notes=[*notes, *replay(race.launch)], helps=helps)


def started(race: Race, party: Party) -> str:
    """What a thread started: a copy to some bytes, or another operation that reads or writes them."""
    return f"started {race.operation(party)} that {party.does}" if party.is_async else "started a copy to"


def explain_unfenced(race: Race) -> Diagnostic:
    """What a thread wrote may not be visible to the asynchronous operation that uses it."""
    if race.earlier.is_copy:
        return _explain_unfenced_copy(race)
    name, is_read = race.operation(race.later).name, race.earlier.kind == address_spaces.LOAD
    fence = "fence.proxy.async.global" if race.space == address_spaces.GLOBAL_SPACE else "fence.proxy.async.shared::cta"
    return error(
        "missing-proxy-fence",
        f"{race.operation(race.later)} {race.later.does} {name_memory(race.space)} {_BY_THREAD[is_read]} by a thread, "
        "with no proxy fence in between",
        race.launch.span_of(race.later.instruction),
        f"{race.second} {started(race, race.later)} {race.bytes}",
        others=race.at_earlier(f"{race.first} {race.earlier.did} there"),
        notes=[_PROXIES[is_read]],
        helps=[f"`{fence};` in every thread that {race.earlier.does}, before the barrier that precedes the {name}"],
    )


def _explain_unfenced_copy(race: Race) -> Diagnostic:
    """What `cp.async`, `st.async` or `red.async` wrote may not be visible to the asynchronous operation that uses it.

    Without the fence after `cp.async` many kernels in use are right, whatever the manual says: it is a warning.
    """
    says, word = (error, "st.async") if race.earlier.is_async else (warning, "cp.async")
    operation = race.operation(race.later)
    return says(
        "missing-proxy-fence",
        f"{operation} {race.later.does} shared memory written by `{word}`, with no proxy fence in between",
        race.launch.span_of(race.later.instruction),
        f"{race.second} {started(race, race.later)} {race.bytes}",
        others=race.at_earlier(f"{race.first} {started(race, race.earlier)} them"),
        notes=[f"`{word}` writes by the generic proxy, as threads do: a wait for it is not a proxy fence"],
        helps=[f"`fence.proxy.async.shared::cta;` after the wait for `{word}`, before the {operation.name}"],
    )


def _said(race: Race, first: str, second: str, *, when: str = "", also: str = "") -> tuple[str, str]:
    """What the first and the second access did; the one that is shown above says to which bytes, and in which block.

    `when` is said of the second, and `also` of the one that is shown below.
    """
    if race.is_upwards:
        return f"{race.first} {first} them{also}", f"{race.second_thread} {second} {race.bytes}{when}"
    return f"{race.first} {first} {race.bytes}", f"{race.second_thread} {second} them{when}{also}"


def _with_operation_in_flight(race: Race) -> _Account:
    """An access to what an asynchronous operation may not have completed yet."""
    earlier, later, operation = race.earlier, race.later, race.operation(race.earlier)
    who = "a thread"
    if later.is_copy:
        other = race.operation(later)
        who = f"another {other.name}" if other.name == operation.name else str(other)
    when = f"before it waited for the {operation.name}"
    if not race.in_thread:
        when = f"before the {operation.name} was known to be complete"
    did = started(race, later) if later.is_copy else later.did
    return _Account(
        f"{who} {later.does} {name_memory(race.space)} that {operation} still {earlier.does}",
        *_said(race, started(race, earlier), did, when=f" {when}"),
        [operation.completion, *_proxies(race)],
    )


def _through_stale_cache(race: Race) -> _Account:
    """A load with `.nc` of what is written."""
    return _Account(
        "a load through the non-coherent cache of memory that the kernel writes",
        *_said(race, race.earlier.did, race.later.did),
        ["`.nc` is for memory that nothing writes while the kernel runs; no barrier makes it see new values"],
    )


def _without_synchronization(race: Race) -> _Account:
    """Accesses of two threads, or of a thread and of an operation that another has started."""
    earlier, later, memory = race.earlier, race.later, name_memory(race.space)
    message = f"two threads write the same {memory}"
    if later.is_copy:
        message = f"{race.operation(later)} {later.does} {memory} that a thread {earlier.does}"
    elif address_spaces.LOAD in (earlier.kind, later.kind):
        message = f"one thread reads {memory} that another writes"
    did, name = (started(race, later), race.operation(later).name) if later.is_copy else (later.did, "")
    is_late = race.is_late and not race.lacks_barrier
    too = " too" if earlier.kind == later.kind else ""
    when = ""
    if later.instruction < earlier.instruction:  # in a loop
        when = " before that" if race.is_upwards else " after that"
    return _Account(
        f"unsynchronized: {message}",
        *_said(race, earlier.did, did, also=f"{too}{when}"),
        [race.operation(later).completion, *_proxies(race)] if is_late else [_reason(race), *_relaxed(race)],
        [f"let the threads synchronize before one of them starts the {name}"] if race.lacks_barrier else [],
    )


def _proxies(race: Race) -> list[str]:
    """A note on two atomic operations, one of them of a bulk reduction."""
    one, other = race.earlier.flags, race.later.flags
    if not one & other & shadow.STRONG or not (one ^ other) & shadow.ASYNC:
        return []
    return [
        "both are relaxed and atomic, but a bulk reduction is by the async proxy, and strong accesses of different "
        "proxies race (PTX ISA 8.7)"
    ]


def _reason(race: Race) -> str:
    """Why two accesses are not ordered."""
    launch, earlier, later = race.launch, race.earlier, race.later
    if proxies := _proxies(race):
        return proxies[0]
    if earlier.flags & later.flags & shadow.STRONG:
        if (earlier.flags ^ later.flags) & shadow.SIZE:
            return "both are strong, but of different sizes: such accesses race as weak ones do"
        scope = ".cluster" if earlier.flags & later.flags & shadow.CLUSTER else ".cta"
        return f"both are strong, but the scope `{scope}` of one does not include the other thread"
    line = launch.name_line(later.instruction, later.instruction)
    other_line = launch.name_line(earlier.instruction, later.instruction)
    means = "no barrier, and no release/acquire pair"
    if earlier.block != later.block:
        means = "no release/acquire pair with scope `.gpu`"
        if are_companions(earlier, later):
            means = "no `barrier.cluster`, and no release/acquire pair with scope `.cluster`"
    if line == other_line:
        return f"nothing orders what the two threads do in {line}: {means}"
    return f"nothing orders {other_line} before {line}: {means}"


def _relaxed(race: Race) -> list[str]:
    """A note on strong accesses by which blocks seem to synchronize, where nothing from one to the other orders."""
    if race.in_block:
        return []
    paths, effects = race.paths, race.launch.compiled.effects
    first, last = race.earlier.instruction, race.later.instruction
    between = [
        number
        for number in range(len(paths.instructions))
        if number not in (first, last)
        and (
            effects(number).synchronizes
            or any(access.order not in ("weak", "constant") for access in effects(number).accesses)
        )
        and paths.reaches(first, [number])
        and paths.reaches(number, [last])
    ]
    if not between or any(effects(number).synchronizes for number in between):
        return []
    lines = " and ".join(race.launch.name_line(number, last) for number in between[:2])
    text = (
        "are relaxed, and without a fence they order" if len(between) > 1 else "is relaxed, and without a fence orders"
    )
    return [f"{lines} {text} nothing else"]
