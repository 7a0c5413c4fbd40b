"""Barriers that are used as they must not be: barriers of the block, of the cluster, and mbarriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.faults import BarrierReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.explain.found import Found
from ptxlab.emulate.explain.mbarrier_hangs import name_mbarrier
from ptxlab.emulate.explain.snapshots import BlockSnapshot, last_wait, thread_name
from ptxlab.isa.chapters.mbarrier import ARRIVALS
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_barrier_count(fault: FaultSnapshot) -> Diagnostic:
    """A number of threads that a barrier of the block can't be for; `limit` are those that others expect."""
    given, expected = fault.value, fault.limit
    message = f"a barrier for {given or 'all'} threads, where threads wait that expect {expected or 'all'}"
    if given % 32:
        message = f"a barrier for {given} threads, which is not a multiple of the warp size"
    return fault.error("bad-barrier", message)


def explain_bad_barrier(fault: FaultSnapshot) -> Diagnostic:
    """A barrier, or an mbarrier, that can't be used so."""
    reason = BarrierReason(fault.reason)
    if reason in _WITHOUT_MBARRIER:
        helps = [_PAIRED] if reason == BarrierReason.OTHER_BLOCK else []
        return fault.error("bad-barrier", _WITHOUT_MBARRIER[reason].format(value=fault.value), helps=helps)
    name = name_mbarrier(fault.launch, fault.address & address_spaces.OFFSET_MASK)
    match reason:
        case BarrierReason.UNINITIALIZED:
            helps = ["`mbarrier.init` in one thread, then a barrier before any thread uses it"]
            return fault.error("bad-barrier", f"{name} is not initialized", helps=helps)
        case BarrierReason.BAD_ARRIVAL_COUNT:
            return fault.error("bad-barrier", f"{name} cannot expect {fault.value} arrivals a phase: 1 to {ARRIVALS}")
        case BarrierReason.TOO_MANY_BYTES:
            value = fault.signed_value
            count = f"{value} pending bytes" if value > 0 else f"{-value} bytes that came and were not expected"
            message = f"{name} cannot count {count}: at most {ARRIVALS}"
            helps = ["expect the bytes of one phase only, and those before they come"]
            return fault.error("bad-barrier", message, others=_initialized(fault), helps=helps)
        case BarrierReason.COMPLETED:
            message = f"an arrival with `.noComplete` completes a phase of {name}"
            helps = ["let an arrival without `.noComplete` be the last of a phase"]
            return fault.error("bad-barrier", message, others=_initialized(fault), helps=helps)
    explain = {
        BarrierReason.TOO_MANY_ARRIVALS: _explain_arrivals,
        BarrierReason.REINITIALIZED: _explain_reinitialized,
        BarrierReason.OVERWRITTEN: _explain_overwritten,
    }
    return explain[reason](fault, name)


def explain_not_invalidated(found: Found) -> Diagnostic:
    """An mbarrier that is valid is initialized again; it is idle, but was not invalidated."""
    mbarrier = found.record.mbarrier
    name, first, used = name_mbarrier(found.launch, mbarrier.offset), mbarrier.initialized - 1, mbarrier.phases > 0
    what = "initialized here, and used since" if used else "initialized here"
    others = [] if found.instruction == first else found.label(first, what)
    return warning(
        "reinitialized-mbarrier",
        f"{name} is initialized again without `mbarrier.inval`",
        found.span,
        "initialized again here",
        others=others,
        notes=[
            "`mbarrier.init` over a valid mbarrier is undefined, "
            f"even if no thread uses it {'any more' if used else 'yet'}"
        ],
        helps=[
            "`mbarrier.inval` after the last use, or initialize it once and continue with its next phase"
            if used
            else "initialize it once, by one thread"
        ],
    )


_PAIRED = "name one in the block that the bytes go to; with `.cta_group::2` the other block of that pair has it as well"
_WITHOUT_MBARRIER = {
    BarrierReason.NO_SUCH_BARRIER: "barrier {value} does not exist: a block has barriers 0 to 15",
    BarrierReason.OTHER_BLOCK: "the mbarrier is in another block than the bytes whose arrival it counts",
    BarrierReason.ARRIVED_TWICE: "a second `barrier.cluster.arrive` without a `barrier.cluster.wait` between them",
    BarrierReason.NEVER_ARRIVED: "a `barrier.cluster.wait` without a `barrier.cluster.arrive` before it",
}


def _explain_arrivals(fault: FaultSnapshot, name: str) -> Diagnostic:
    owner, offset = _owner(fault)
    mbarrier, count = owner.mbarrier(offset), fault.value
    others = _initialized(fault)
    phase = mbarrier.phase
    if phase is not None and mbarrier.arrived:
        others += _labels(fault.launch, phase.get("arrived_at"), "the last arrival before")
    return fault.error(
        "bad-barrier",
        f"{count} arrival{'s' * (count > 1)} at {name}, which expects {mbarrier.pending} more in this phase",
        others=[label for label in others if label.span != fault.launch.span_of(fault.number)],
        notes=_waited(fault),
        helps=["initialize the mbarrier with the number of arrivals a phase has, or wait until this phase completes"],
    )


def _waited(fault: FaultSnapshot) -> list[str]:
    """A note on the last wait of the thread that arrives: it may be for another phase than the one that it needs."""
    wait = last_wait(fault.snapshot, fault.thread)
    if wait is None:
        return []
    line, mbarrier = fault.launch.name_line(wait.instruction, fault.number), name_mbarrier(fault.launch, wait.offset)
    return [f"the last wait of the thread, on {line}, was over {wait.phase} of {mbarrier}"]


def _explain_reinitialized(fault: FaultSnapshot, name: str) -> Diagnostic:
    owner, offset = _owner(fault)
    mbarrier, waiting = owner.mbarrier(offset), fault.value
    use = f"{waiting} thread{'s wait' if waiting > 1 else ' waits'} on it, " if waiting else ""
    bytes = mbarrier.pending_bytes
    return fault.error(
        "reinitialized-mbarrier",
        f"{name} is initialized again while it is in use",
        others=[label for label in _initialized(fault) if label.span != fault.launch.span_of(fault.number)],
        notes=[
            f"{use}{mbarrier.arrived} of {mbarrier.expected} arrivals came in this phase, {bytes} bytes are pending"
        ],
        helps=["initialize it once; after a phase completes, the mbarrier is ready for the next one"],
    )


def _explain_overwritten(fault: FaultSnapshot, name: str) -> Diagnostic:
    launch, number, other = fault.launch, fault.number, fault.record.get("other_instruction") - 1
    label, others = f"{fault.who} uses it here", _initialized(fault)
    if other >= 0 and not launch.compiled.effects(other).uses("mbarrier"):
        if other != number:
            others += _labels(launch, number, label)
        culprit = thread_name(launch, fault.record.get("other_block"), fault.record.get("other_thread"))
        number, label = other, f"{culprit} overwrote it here"
    return error(
        "overwritten-mbarrier",
        f"{name} is overwritten while it is in use",
        launch.span_of(number),
        label,
        others=others,
        notes=["only `mbarrier` instructions, and copies that signal it, may change an mbarrier"],
        helps=[
            "keep other data out of its 8 bytes, or execute `mbarrier.inval` before they are used for something else"
        ],
    )


def _owner(fault: FaultSnapshot) -> tuple[BlockSnapshot, int]:
    """The block of the cluster that an mbarrier belongs to, and its offset in shared memory."""
    snapshot, rank = fault.snapshot, (fault.address >> address_spaces.RANK_SHIFT) - 1
    owner = next(one for one in (snapshot, *snapshot.cluster) if one.record.get("rank") == rank)
    return owner, fault.address & address_spaces.OFFSET_MASK


def _initialized(fault: FaultSnapshot) -> list[Label]:
    owner, offset = _owner(fault)
    phase = owner.phase(offset)
    if phase is None:
        return []
    expected = owner.mbarrier(offset).expected
    text = f"expects {expected} arrival{'s' * (expected != 1)} a phase"
    return _labels(fault.launch, phase.get("instruction"), text)


def _labels(launch: RunningLaunch, number: int, text: str) -> list[Label]:
    span = launch.span_of(number)
    return [] if span is None else [Label(span, text)]
