"""Explains hangs: which threads wait where, for what, and where the others are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ptxlab.emulate.abi import address_spaces, thread_parts
from ptxlab.emulate.explain.mbarrier_hangs import explain_phase, name_mbarrier
from ptxlab.emulate.explain.mbarrier_ledger import entries_of, list_entries
from ptxlab.emulate.explain.memory_names import name_bytes
from ptxlab.emulate.explain.polling import spin_around
from ptxlab.emulate.explain.register_hangs import explain_registers
from ptxlab.emulate.explain.snapshots import SPINS, BlockSnapshot, ThreadSnapshot, do, ranges
from ptxlab.emulate.explain.waits import Group, Waits, grouped, missing
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_hang(launch: RunningLaunch, snapshot: BlockSnapshot) -> Diagnostic:
    """Why no thread of a cluster can continue, and what is known of all its mbarriers."""
    waits = Waits(launch, snapshot)
    group = waits.cause()
    found = _explain_group(launch, waits, group)
    entries = entries_of(launch, snapshot, waits.groups, group.instruction)
    if not entries:
        return found
    listed = list_entries(entries)
    facts = {"mbarriers": [entry.fact() for entry in entries]}
    return replace(found, notes=(*found.notes, *([listed] if listed else [])), facts=facts)


def _explain_group(launch: RunningLaunch, waits: Waits, group: Group) -> Diagnostic:
    """Why the wait of a group does not end."""
    others = waits.others(group)
    if group.status in (thread_parts.AT_COLLECTIVE, thread_parts.ACTIVE) or waits.is_parted(group):
        near = [one for one in waits.groups if one.snapshot is group.snapshot]
        lanes = [thread for one in near for thread in one.threads if thread.warp == group.first.warp]
        return explain_divergence(launch, group.snapshot, lanes, group.first)
    labels = _labels(launch, others, group)
    label = describe_wait(launch, group, f" of {group.snapshot.name}")
    if group.status == thread_parts.AT_PHASE:
        return explain_phase(launch, group, others, label, labels, exited(group.snapshot))
    if group.status == thread_parts.AT_REGISTERS:
        return explain_registers(launch, group, label, labels)
    explain = _CAUSES.get(group.status)
    found = explain(launch, group) if explain else _barrier(group, is_alone=not labels)
    message, span = f"{_threads(group)} {found.awaited}", launch.span_of(group.instruction)
    if found.label is not None:
        labels = [*labels[:2], found.label]
    return error("hang", message, span, label, others=labels[:3], notes=found.notes, helps=[found.help])


def explain_divergence(
    launch: RunningLaunch, snapshot: BlockSnapshot, lanes: Sequence[ThreadSnapshot], culprit: ThreadSnapshot
) -> Diagnostic:
    """Why lanes of one warp, which must execute an instruction together, do not."""
    groups = grouped(lanes)
    groups.sort(key=lambda group: culprit.number not in [thread.number for thread in group])
    opcode = launch.compiled.instructions[culprit.instruction][1].opcode
    gone = [thread for thread in snapshot.threads if thread.warp == culprit.warp and thread.status == thread_parts.DONE]
    if len(groups) == 1 and gone:
        message = f"lanes of one warp have exited before `{opcode.text}`, which needs the whole warp"
        helps = ["keep every lane until the last such instruction, and guard what it loads and stores instead"]
    elif culprit.status == thread_parts.AT_COLLECTIVE:
        message = f"lanes of one warp wait in `{opcode.text}` for lanes that never execute it"
        is_aligned = launch.compiled.effects(culprit.instruction).aligned
        helps = ["move it out of the branch: all lanes execute the same one" if is_aligned else
                 "let all lanes of the mask execute it together, or name only those that do"]  # fmt: skip
    else:
        only_arrives = _only_arrives(launch, culprit.instruction)
        are = "are" if only_arrives else "wait"
        message = f"lanes of one warp {are} at different instructions, but `{opcode.text}` needs the whole warp"
        of_block = "barrier.arrive" if only_arrives else "barrier.sync"
        is_of_block = culprit.status == thread_parts.AT_BARRIER
        other = of_block if is_of_block else f"barrier.{'.'.join(opcode.modifiers[:2])}"
        helps = [f"move the barrier out of the branch, or use `{other}` without `.aligned`"]
    first, *others = (Group(snapshot, tuple(group)) for group in groups)
    return error(
        "barrier-divergence",
        message,
        launch.span_of(culprit.instruction),
        describe_wait(launch, first, f" of {snapshot.name}"),
        others=_labels(launch, others, first)[:2],
        notes=[do(gone, snapshot.threads, "has exited", "have exited")] if gone else [],
        helps=helps,
    )


class _Cause(NamedTuple):
    """What threads of a group wait for in vain."""

    awaited: str
    notes: list[str]
    help: str
    label: Label | None = None


def _loop(launch: RunningLaunch, group: Group) -> _Cause:
    spin = spin_around(launch, group.instruction)
    span = None if spin is None else launch.span_of(spin.start)
    label = None if span is None or span == launch.span_of(group.instruction) else Label(span, "the loop starts here")
    blocks = f"; {launch.finished.value} of {launch.total} blocks have ended" if launch.total > 1 else ""
    if spin is None or spin.look is None:
        return _Cause(
            "in a loop that never ends",
            [f"it reads nothing that others write, and what decides how it continues comes back to what it was{blocks}",
             *exited(group.snapshot)],
            "change in each turn what the loop's condition depends on: another loop inside may write the same register",
            label,
        )  # fmt: skip
    return _Cause(
        "in a loop for a change that never comes",
        [f"no running thread or copy can change memory{blocks}", *exited(group.snapshot)],
        "write what the loop polls before the threads that could write it wait or exit",
        label,
    )


def _mma(launch: RunningLaunch, group: Group) -> _Cause:
    first = group.first.warp // 4 * 4
    late = do(missing(group), group.snapshot.threads, "has", "have")
    return _Cause(
        "for an MMA that never completes",
        [f"all four warps of a warpgroup issue a `wgmma` and commit its group; {late} not", *exited(group.snapshot)],
        f"let warps {first} to {first + 3} execute the same `wgmma` instructions",
    )


def _arrivals(group: Group) -> str:
    """`32 of 64 threads have arrived`: at the barrier that a group waits at."""
    barrier = group.snapshot.barrier(group.first.barrier)
    expected = barrier.get("expected") or group.snapshot.record.get("live")
    return f"{barrier.get('arrived')} of {expected} threads have arrived"


def _count_arrivals(group: Group) -> str:
    """The same after a description of its wait; nothing for other waits."""
    return f": {_arrivals(group)}" if group.status == thread_parts.AT_BARRIER else ""


def _barrier(group: Group, is_alone: bool) -> _Cause:
    number = group.first.barrier
    return _Cause(
        f"at barrier {number} for threads that never arrive",
        [f"{_arrivals(group)} at barrier {number}", *exited(group.snapshot)],
        "let all threads that the barrier counts arrive, or lower its count" if is_alone else
        "let all threads arrive at the same barrier",
    )  # fmt: skip


def _cluster(launch: RunningLaunch, group: Group) -> _Cause:
    blocks = (group.snapshot, *group.snapshot.cluster)
    alive = [thread for snapshot in blocks for thread in snapshot.threads if thread.status != thread_parts.DONE]
    arrived = sum(thread.arrival != 0 for thread in alive)
    return _Cause(
        "at the cluster barrier for threads that never arrive",
        [f"{arrived} of {len(alive)} threads of the cluster have arrived; exited threads are not counted"],
        "let all threads of the cluster execute `barrier.cluster.arrive`",
    )


def _pair(launch: RunningLaunch, group: Group) -> _Cause:
    opcode, peer = launch.compiled.instructions[group.instruction][1].opcode, group.snapshot.peer
    assert peer is not None
    gone = all(thread.status == thread_parts.DONE for thread in peer.threads)
    return _Cause(
        f"for {peer.name}, which never executes its `{opcode.text}`",
        [
            "with `.cta_group::2` a warp of each block of the pair executes it, and the first may wait for the other",
            *([f"{peer.name} has exited"] if gone else []),
        ],
        "let one warp of each of the two blocks execute it, in the same order with other such instructions",
    )


_CAUSES = {
    SPINS: _loop,
    thread_parts.AT_PRODUCTS: _mma,
    thread_parts.AT_CLUSTER: _cluster,
    thread_parts.AT_PEER: _pair,
}


def exited(snapshot: BlockSnapshot) -> list[str]:
    """A note on the threads of a block that have exited."""
    gone = [thread for thread in snapshot.threads if thread.status == thread_parts.DONE]
    return [do(gone, snapshot.threads, "has exited", "have exited")] if gone else []


def _labels(launch: RunningLaunch, groups: Sequence[Group], cause: Group) -> list[Label]:
    """What other threads wait for, on their lines."""
    found = []
    for group in groups:
        span = launch.span_of(group.instruction)
        of = "" if group.snapshot is cause.snapshot else f" of {group.snapshot.name}"
        if span is not None:
            found.append(Label(span, describe_wait(launch, group, of) + _count_arrivals(group)))
    return found


def describe_wait(launch: RunningLaunch, group: Group, of: str = "") -> str:
    """`lanes 0 to 15 of warp 0 wait here for lanes 0 to 31`"""
    first = group.first
    spin = spin_around(launch, group.instruction) if first.status == SPINS else None
    polls = spin is not None and spin.look is not None
    one, several = ("polls", "poll") if polls else ("waits here", "wait here")
    if first.status == SPINS and not polls:
        one, several = "comes here again and again", "come here again and again"
    if _only_arrives(launch, group.instruction):
        one, several = "arrives here", "arrive here"
    text = do(group.threads, group.snapshot.threads, f"{of} {one}", f"{of} {several}").replace("  ", " ")
    match first.status:
        case thread_parts.AT_COLLECTIVE:
            return f"{text} for lanes {ranges(lane for lane in range(32) if first.members >> lane & 1)}"
        case thread_parts.AT_CLUSTER:
            return f"{text} at the cluster barrier"
        case thread_parts.AT_BARRIER:
            return f"{text} at barrier {first.barrier}"
        case thread_parts.AT_PHASE:
            phase = group.snapshot.phase(first.waits_at)
            which = "" if phase is None else f"phase {phase.get('completed')} of "
            return f"{text} for {which}{name_mbarrier(launch, first.waits_at)}"
        case thread_parts.AT_PRODUCTS:
            return f"{text} for an MMA"
        case thread_parts.AT_PEER:
            return f"{text} for the other block of the pair"
        case thread_parts.AT_REGISTERS:
            return f"{text} for {first.waits_for} registers a thread"
    return f"{text} {_polled(launch, group)} here" if polls else text


def _only_arrives(launch: RunningLaunch, instruction: int) -> bool:
    """Whether an instruction arrives at a barrier without a wait for the others, as `bar.arrive` does."""
    effects = launch.compiled.effects(instruction)
    return effects.barrier is not None and not effects.waits


def _polled(launch: RunningLaunch, group: Group) -> str:
    """`bytes 0..4 of argument 0 and 3 other locations`: what threads poll, if that is known of all of them."""
    addresses = sorted({thread.waits_at for thread in group.threads})
    if not addresses[0]:
        return "memory"
    space, address = address_spaces.GLOBAL_SPACE, addresses[0]
    if address >= address_spaces.SHARED_WINDOW:
        space, address = address_spaces.SHARED_SPACE, address - address_spaces.SHARED_WINDOW
    more = len(addresses) - 1
    others = f" and {more} other location{'s' * (more > 1)}" if more else ""
    sizes = [size for access, _, _, size, _ in launch.compiled.facts["traffic"] if access == group.instruction]
    return f"{name_bytes(launch, space, address, sizes[0])}{others}"


def _threads(group: Group) -> str:
    return "a thread waits" if len(group.threads) == 1 else f"{len(group.threads)} threads wait"
