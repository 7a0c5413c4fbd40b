"""Barriers that are used as they must not be, in words: barriers of the block, of the cluster, and mbarriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.structs import Record
from ptxlab.emulate.explain.mbarrier_hangs import name_mbarrier
from ptxlab.emulate.explain.snapshots import BlockSnapshot, thread_name
from ptxlab.isa.mbarrier import ARRIVALS
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import Launch


def explain_count(given: int, expected: int) -> str:
    """What is wrong with the number of threads that a barrier of the block is given."""
    if given % 32:
        return f"a barrier for {given} threads, which is not a multiple of the warp size"
    return f"a barrier for {given or 'all'} threads, where threads wait that expect {expected or 'all'}"


def explain_bad_barrier(launch: Launch, snapshot: BlockSnapshot, fault: Record, who: str) -> Diagnostic:
    """What is wrong with the use of a barrier."""
    reason, value, number = (fault.get(name) for name in ("extra", "size", "instruction"))
    span = launch.span_of(number)
    if reason in _WITHOUT_MBARRIER:
        return error("bad-barrier", _WITHOUT_MBARRIER[reason].format(value=value), span, who)
    owner, offset = _owner(snapshot, fault.get("address")), fault.get("address") & state.OFFSET_MASK
    name = name_mbarrier(launch, offset)
    match reason:
        case state.UNINITIALISED:
            return error("bad-barrier", f"{name} is not initialised", span, who,
                         helps=["`mbarrier.init` in one thread, then a barrier before any thread uses it"])  # fmt: skip
        case state.BAD_ARRIVAL_COUNT:
            return error("bad-barrier", f"{name} cannot expect {value} arrivals a phase: 1 to {ARRIVALS}", span, who)
        case state.TOO_MANY_ARRIVALS:
            return _too_many_arrivals(launch, owner, offset, fault, who)
        case state.TOO_MANY_BYTES:
            value -= value >> 63 << 64
            count = f"{value} pending bytes" if value > 0 else f"{-value} bytes that came and were not expected"
            return error("bad-barrier", f"{name} cannot count {count}: at most {ARRIVALS}", span, who,
                         others=_initialised(launch, owner, offset),
                         helps=["expect the bytes of one phase only, and those before they come"])  # fmt: skip
        case state.REINITIALISED:
            return _reinitialised(launch, owner, offset, fault, who)
    assert reason == state.OVERWRITTEN
    return _overwritten(launch, owner, offset, fault, who)


def explain_not_invalidated(launch: Launch, found: Record, number: int) -> Diagnostic:
    """An mbarrier that was used is initialised again; it is idle, but was not invalidated."""
    instruction, first = found.get("instruction", number), found.get("other_instruction", number)
    name = name_mbarrier(launch, found.get("address", number))
    others = [] if instruction == first else _labels(launch, first, "initialised here, and used since")
    return warning(
        "reinitialised-mbarrier",
        f"{name} is initialised again without `mbarrier.inval`",
        launch.span_of(instruction),
        "initialised again here",
        others=others,
        notes=["`mbarrier.init` over a valid mbarrier is undefined, even if no thread uses it any more"],
        helps=["`mbarrier.inval` after the last use, or initialise it once and continue with its next phase"],
    )


_WITHOUT_MBARRIER = {
    state.NO_SUCH_BARRIER: "barrier {value} does not exist: a block has barriers 0 to 15",
    state.OTHER_BLOCK: "the mbarrier is in another block than the bytes whose arrival it counts",
    state.ARRIVED_TWICE: "a second `barrier.cluster.arrive` without a `barrier.cluster.wait` between them",
    state.NEVER_ARRIVED: "a `barrier.cluster.wait` without a `barrier.cluster.arrive` before it",
}


def _owner(snapshot: BlockSnapshot, address: int) -> BlockSnapshot:
    """The block of the cluster that an mbarrier belongs to."""
    rank = (address >> state.RANK_SHIFT) - 1
    return next(one for one in (snapshot, *snapshot.cluster) if one.record.get("rank") == rank)


def _too_many_arrivals(launch: Launch, owner: BlockSnapshot, offset: int, fault: Record, who: str) -> Diagnostic:
    mbarrier, count, number = owner.mbarrier(offset), fault.get("size"), fault.get("instruction")
    others = _initialised(launch, owner, offset)
    phase = mbarrier.phase
    if phase is not None and mbarrier.arrived:
        others += _labels(launch, phase.get("arrived_at"), "the last arrival before")
    return error(
        "bad-barrier",
        f"{count} arrival{'s' * (count > 1)} at {name_mbarrier(launch, offset)}, which expects {mbarrier.pending} more "
        "in this phase",
        launch.span_of(number),
        who,
        others=[label for label in others if label.span != launch.span_of(number)],
        helps=["initialise the mbarrier with the number of arrivals a phase has, or wait until this phase completes"],
    )


def _reinitialised(launch: Launch, owner: BlockSnapshot, offset: int, fault: Record, who: str) -> Diagnostic:
    mbarrier, waiting = owner.mbarrier(offset), fault.get("size")
    use = f"{waiting} thread{'s wait' if waiting > 1 else ' waits'} on it, " if waiting else ""
    bytes = mbarrier.pending_bytes
    notes = [f"{use}{mbarrier.arrived} of {mbarrier.expected} arrivals came in this phase, {bytes} bytes are pending"]
    return error(
        "reinitialised-mbarrier",
        f"{name_mbarrier(launch, offset)} is initialised again while it is in use",
        launch.span_of(fault.get("instruction")),
        who,
        others=[label for label in _initialised(launch, owner, offset)
                if label.span != launch.span_of(fault.get("instruction"))],
        notes=notes,
        helps=["initialise it once; after a phase completes, the mbarrier is ready for the next one"],
    )  # fmt: skip


def _overwritten(launch: Launch, owner: BlockSnapshot, offset: int, fault: Record, who: str) -> Diagnostic:
    number, other = fault.get("instruction"), fault.get("other_instruction") - 1
    label, others = f"{who} uses it here", _initialised(launch, owner, offset)
    if other >= 0 and launch.compiled.places[other][1].opcode.mnemonic != "mbarrier":
        if other != number:
            others += _labels(launch, number, label)
        label = f"{thread_name(launch, fault.get('other_block'), fault.get('other_thread'))} overwrote it here"
        number = other
    return error(
        "overwritten-mbarrier",
        f"{name_mbarrier(launch, offset)} is overwritten while it is in use",
        launch.span_of(number),
        label,
        others=others,
        notes=["only `mbarrier` instructions, and copies that signal it, may change an mbarrier"],
        helps=[
            "keep other data out of its 8 bytes, or execute `mbarrier.inval` before they are used for something else"
        ],
    )


def _initialised(launch: Launch, owner: BlockSnapshot, offset: int) -> list[Label]:
    phase = owner.phase(offset)
    if phase is None:
        return []
    expected = owner.mbarrier(offset).expected
    return _labels(launch, phase.get("instruction"), f"expects {expected} arrival{'s' * (expected != 1)} a phase")


def _labels(launch: Launch, number: int, text: str) -> list[Label]:
    span = launch.span_of(number)
    return [] if span is None else [Label(span, text)]
