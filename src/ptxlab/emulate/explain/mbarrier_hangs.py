"""Explains a phase of an mbarrier that never completes: the arrivals and bytes it expects, and those it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import thread_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.mbarrier_ledger import arrival_elsewhere, skipped_phase
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.snapshots import Mbarrier, block_name, last_wait
from ptxlab.emulate.explain.waits import Group
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


_ELSEWHERE = "let that arrive in this block: the mask or the address that it has names another one"


def explain_phase(
    launch: RunningLaunch, group: Group, others: Sequence[Group], label: str, labels: list[Label], exited: list[str]
) -> Diagnostic:
    """Why the phase that a group waits for does not complete; `label` and `labels` say who waits where."""
    mbarrier = group.snapshot.mbarrier(group.first.waits_at)
    number = group.first.waits_for & 1 if mbarrier.phase is None else mbarrier.phase.get("completed")
    arrivals = f"{mbarrier.arrived} of {mbarrier.expected} arrivals{_last_arrival(launch, group, mbarrier)}"
    note = f"phase {number}: {arrivals}, {_bytes(mbarrier)}; no running thread or copy can arrive"
    notes = [note, *exited, *_unseen(launch, group, mbarrier)]
    at, is_untouched = group.first.waits_at, _is_untouched(group)
    elsewhere = arrival_elsewhere(launch, group.snapshot, at, group.instruction) if is_untouched else ""
    cycle = [
        other
        for other in others
        if other.status == thread_parts.AT_PHASE and _is_untouched(other) and other.first.waits_at != at
    ]
    if elsewhere:
        notes = [note, elsewhere]
    elif cycle and is_untouched:
        notes = [note, f"nothing has arrived at {name_mbarrier(launch, cycle[0].first.waits_at)} either: "
                 "the two sides wait for each other"]  # fmt: skip
    subject = "a thread waits" if len(group.threads) == 1 else f"{len(group.threads)} threads wait"
    return error(
        "hang",
        f"{subject} on an mbarrier phase that never completes",
        launch.span_of(group.instruction),
        label,
        others=[*_history(launch, mbarrier), *labels][:3],
        notes=notes,
        helps=[
            _ELSEWHERE
            if elsewhere
            else _overtaken(launch, mbarrier, others) or _help(mbarrier, bool(cycle) and is_untouched)
        ],
    )


def name_mbarrier(launch: RunningLaunch, offset: int) -> str:
    """`the mbarrier full`, with the name marked as code"""
    name, start = layout.shared_variable_at(launch.compiled.variables, offset)
    if name and start == offset:
        return f"the mbarrier {name}"
    return f"the mbarrier at byte {offset - start} of {name or 'shared memory'}"


def _is_untouched(group: Group) -> bool:
    return group.snapshot.mbarrier(group.first.waits_at).is_untouched


def _history(launch: RunningLaunch, mbarrier: Mbarrier) -> list[Label]:
    """Where the arrivals or bytes that are missing, or too many, were expected and came."""
    phase = mbarrier.phase
    if phase is None:
        return []
    expected, plural = mbarrier.expected, "s" * (mbarrier.expected != 1)
    texts = [(phase.get("instruction"), f"expects {expected} arrival{plural} a phase")]
    if mbarrier.pending_bytes and not mbarrier.pending:
        texts = []
    if phase.get("expected_bytes"):
        texts.append((phase.get("expected_at"), f"expects {phase.get('expected_bytes')} bytes in this phase"))
    if phase.get("copies"):
        texts.append((phase.get("copied_at"), _completions(launch, phase)))
    return [Label(span, text) for number, text in texts if (span := launch.span_of(number)) is not None]


def _unseen(launch: RunningLaunch, group: Group, mbarrier: Mbarrier) -> list[str]:
    """A note on the thread that completed a phase which no wait has seen: it may have come too early."""
    phase, skipped = mbarrier.phase, skipped_phase(mbarrier)
    if phase is None or skipped is None or phase.get("arrived_from") != group.snapshot.number:
        return []
    wait = last_wait(group.snapshot, phase.get("arrived_by"))
    if wait is None:
        return []
    line = launch.name_line(wait.instruction, group.instruction)
    return [
        f"no wait has seen phase {skipped}; thread {phase.get('arrived_by')}, which arrived there last, waited last "
        f"on {line}: that was over {wait.phase} of {name_mbarrier(launch, wait.offset)}"
    ]


def _completions(launch: RunningLaunch, phase: StructArray) -> str:
    """`this copy and 1 before it (line 40) brought 2048 bytes in this phase`"""
    last, first = phase.get("copied_at"), phase.get("copied_first")
    name = operation_of(launch.compiled.effects(last)).name
    before = phase.get("copies") - 1
    line = launch.name_line(first, last)
    where = "" if first == last else f" ({line})" if before == 1 else f" (the first: {line})"
    these = f"this {name} and {before} before it{where}" if before else f"one {name}"
    return f"{these} brought {phase.get('copied')} bytes in this phase"


def _last_arrival(launch: RunningLaunch, group: Group, mbarrier: Mbarrier) -> str:
    phase: StructArray | None = mbarrier.phase
    if phase is None or not mbarrier.arrived:
        return ""
    line = launch.name_line(phase.get("arrived_at"), group.instruction)
    who = f"thread {phase.get('arrived_by')}"
    if phase.get("arrived_from") != group.snapshot.number:
        who += f" of {block_name(launch, phase.get('arrived_from'))}"
    last = "the last: " if mbarrier.arrived > 1 else ""
    return f" ({last}{line}, {who})"


def _bytes(mbarrier: Mbarrier) -> str:
    pending = mbarrier.pending_bytes
    if mbarrier.phase is None or not pending:
        return f"{pending} bytes pending"
    expected = mbarrier.phase.get("expected_bytes")
    if pending < 0:
        return f"{expected - pending} bytes came where {expected} are expected"
    return f"{expected - pending} of {expected} bytes"


def _overtaken(launch: RunningLaunch, mbarrier: Mbarrier, others: Sequence[Group]) -> str:
    """What to do where another group waits at an mbarrier one of whose phases no wait has seen; "" where none does."""
    if mbarrier.arrived or skipped_phase(mbarrier) is not None:
        return ""
    for other in (one for one in others if one.status == thread_parts.AT_PHASE):
        found = other.snapshot.mbarrier(other.first.waits_at)
        skipped = skipped_phase(found)
        if skipped is not None:
            name = name_mbarrier(launch, other.first.waits_at)
            return (
                f"let {found.expected} arrive at {name} in a round, or initialize it with more: its phase {skipped} "
                "was complete, and no wait has seen it"
            )
    return ""


def _help(mbarrier: Mbarrier, is_cycle: bool) -> str:
    pending, arrived, bytes = mbarrier.pending, mbarrier.arrived, mbarrier.pending_bytes
    if is_cycle:
        return (
            "let one side's first wait use parity 1, in a ring the producer's: "
            "the phase before phase 0 counts as complete"
        )
    if pending and arrived:
        return f"initialize the mbarrier with {arrived}, or let {pending} more arrive"
    skipped = skipped_phase(mbarrier)
    if pending and skipped is not None:
        return f"wait for parity {skipped & 1}: phase {skipped} is complete, and no wait has seen it"
    if pending:
        return f"let {pending} thread{'s' * (pending > 1)} arrive in this phase, or wait for the other parity"
    if bytes < 0:
        return "expect as many bytes as the copies bring: `expect_tx` counts each byte that they write"
    if mbarrier.phase is not None and mbarrier.phase.get("copies"):
        return "expect as many bytes as the copies bring, or start the missing copy"
    return "start a copy of that many bytes that signals this mbarrier, or expect no bytes"
