"""The wait-for graph of a cluster that hangs: groups of threads that wait for the same thing, and which is the cause.

A group waits for another if threads of the other would end its wait by continuing. The cause is a group that waits for
no other one: its wait would not end even if every other thread continued. It may also be one of several groups
that wait for each other, but for none outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import state, thread_parts
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.paths import Paths
from ptxlab.emulate.explain.polling import Spin, polled_by, spin_around
from ptxlab.emulate.explain.snapshots import SPINS, WAITING, BlockSnapshot, ThreadSnapshot

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

# Which of several groups that wait for no other one is explained.
_ORDER = (
    thread_parts.AT_PHASE,
    SPINS,
    thread_parts.AT_PRODUCTS,
    thread_parts.AT_PEER,
    thread_parts.AT_REGISTERS,
    thread_parts.AT_COLLECTIVE,
    thread_parts.ACTIVE,
    thread_parts.AT_BARRIER,
    thread_parts.AT_CLUSTER,
)


@dataclass(frozen=True)
class Group:
    """Threads of one block that wait for the same thing at the same instruction."""

    snapshot: BlockSnapshot
    threads: tuple[ThreadSnapshot, ...]

    @property
    def first(self) -> ThreadSnapshot:
        return self.threads[0]

    @property
    def status(self) -> int:
        return self.first.status

    @property
    def instruction(self) -> int:
        return self.first.instruction

    @property
    def warps(self) -> set[int]:
        return {thread.warp for thread in self.threads}


class Waits:
    """All groups of a cluster, the largest first, and the edges between them."""

    def __init__(self, launch: RunningLaunch, snapshot: BlockSnapshot) -> None:
        self.launch = launch
        self.paths = Paths(launch.compiled)
        self._spins: dict[int, Spin | None] = {}
        self.groups = [group for one in (snapshot, *snapshot.cluster) for group in self._groups_of(one)]
        self.groups.sort(key=lambda group: -len(group.threads))

    def cause(self) -> Group:
        """The group whose wait explains the hang."""
        parted = next((group for group in self.groups if self.is_parted(group)), None)
        if parted is not None:
            return parted
        if incomplete := next(filter(_is_incomplete, self.groups), None):
            return incomplete
        reach = self._reach()
        roots = [at for at, others in enumerate(reach) if all(at in reach[other] for other in others)]
        dependents = [sum(at in others for others in reach) for at in range(len(reach))]
        return self.groups[min(roots, key=lambda at: self._rank(self.groups[at], dependents[at]))]

    def _reach(self) -> list[set[int]]:
        """For each group those that it waits for, directly or through others, by their positions."""
        edges = [{self.groups.index(other) for other in self._awaited(group)} for group in self.groups]
        found = []
        for start in range(len(edges)):
            seen: set[int] = set()
            pending = [start]
            while pending:
                new = edges[pending.pop()] - seen
                seen |= new
                pending.extend(new)
            found.append(seen)
        return found

    def _rank(self, group: Group, dependents: int) -> tuple[int, bool, int, bool]:
        """Of several causes, first an mbarrier with some arrivals in its phase, then one for which most groups wait."""
        status = _ORDER.index(group.status)
        if group.status != thread_parts.AT_PHASE:
            return status, False, -dependents, False
        mbarrier = group.snapshot.mbarrier(group.first.waits_at)
        return status, not mbarrier.has_started, -dependents, not mbarrier.is_untouched

    def others(self, group: Group) -> list[Group]:
        """All other groups: first those of its block, lanes that wait for its own before the others."""

        def rank(other: Group) -> tuple[bool, bool, int]:
            is_near = other.status == thread_parts.AT_COLLECTIVE and bool(other.warps & group.warps)
            return other.snapshot is not group.snapshot, not is_near, _ORDER.index(other.status)

        return sorted((other for other in self.groups if other is not group), key=rank)

    def is_parted(self, group: Group) -> bool:
        """Whether lanes of its warps, which must come to the same instruction, can't: they took another branch."""
        if not self.is_together(group.first):
            return False
        return any(not self._comes(group, other) for other in self._lanes_elsewhere(group))

    def is_together(self, thread: ThreadSnapshot) -> bool:
        """Whether a thread waits at an instruction that its whole warp, or lanes of it, execute together."""
        if thread.status in (thread_parts.AT_BARRIER, thread_parts.AT_CLUSTER):
            return self.paths.effects(thread.instruction).aligned
        return thread.status == thread_parts.AT_COLLECTIVE

    def _lanes_elsewhere(self, group: Group) -> Iterator[Group]:
        """The groups with lanes that this one waits for in its own warps."""
        for other in self.groups:
            if other is group or other.snapshot is not group.snapshot:
                continue
            if any(
                thread.warp in group.warps
                and (group.status != thread_parts.AT_COLLECTIVE or group.first.members >> thread.lane & 1)
                for thread in other.threads
            ):
                yield other

    def _awaited(self, group: Group) -> Iterator[Group]:
        """The groups that would end the wait of this one by continuing."""
        if self.is_together(group.first):
            yield from self._lanes_elsewhere(group)
        for other in self.groups:
            if other is not group and self._ends(group, other):
                yield other

    def _comes(self, group: Group, other: Group) -> bool:
        """Whether lanes of another group come to the instruction of this one, or exit, by continuing."""
        here, there = group.instruction, other.instruction
        if here == there and other.status == thread_parts.AT_PEER:
            return True  # one lane waits for the other block, in the middle of what the warp executes together
        if group.status == thread_parts.AT_COLLECTIVE and not self.paths.effects(here).aligned:
            return any(self.paths.rejoins(there, like) for like in self.paths.like(here))
        if self.paths.rejoins(there, here):
            return True
        if not _counts_everyone(group) or self.is_together(other.first):
            return False
        return self.paths.exits(there) and not self.paths.reaches(there, [here])

    def _ends(self, group: Group, other: Group) -> bool:
        """Whether the other group would end the wait of this one at a barrier, an mbarrier or an MMA."""
        there = other.instruction
        match group.status:
            case thread_parts.AT_BARRIER if other.snapshot is group.snapshot and not _is_at(other, group.first.barrier):
                return self.paths.reaches(there, self.paths.at_barrier(group.first.barrier))
            case thread_parts.AT_CLUSTER if any(not thread.arrival for thread in other.threads):
                return self.paths.reaches(there, self.paths.at_cluster_barrier())
            case thread_parts.AT_PEER if other.snapshot is group.snapshot.peer:
                return self.paths.reaches(there, self.paths.of_pairs())
            case thread_parts.AT_PRODUCTS if other.snapshot is group.snapshot:
                late = {thread.number for thread in missing(group)}
                return any(thread.number in late for thread in other.threads)
            case thread_parts.AT_REGISTERS if other.snapshot is group.snapshot:
                return self.paths.reaches(there, self.paths.giving_registers())
            case thread_parts.AT_PHASE:
                return self._arrives(group, other)
        return False

    def _arrives(self, group: Group, other: Group) -> bool:
        """Whether the other group has the thread that arrived in earlier phases, and would again."""
        mbarrier = group.snapshot.mbarrier(group.first.waits_at)
        phase = mbarrier.phase
        if mbarrier.has_started or phase is None or not phase.get("arrived_at"):
            return False
        if phase.get("arrived_from") != other.snapshot.number:
            return False
        is_there = any(thread.number == phase.get("arrived_by") for thread in other.threads)
        return is_there and self.paths.reaches(other.instruction, [phase.get("arrived_at")])

    def _groups_of(self, snapshot: BlockSnapshot) -> Iterator[Group]:
        """Threads of a block that wait for the same thing at the same instruction."""
        alive = (
            self._stuck(thread, snapshot.is_still) for thread in snapshot.threads if thread.status != thread_parts.DONE
        )
        for threads in grouped(alive):
            yield Group(snapshot, tuple(threads))

    def _stuck(self, thread: ThreadSnapshot, is_still: bool) -> ThreadSnapshot:
        """What a thread does in vain, even if it runs now and then: it polls an mbarrier, or memory in a loop."""
        if thread.status in WAITING and not (is_still and thread.ran):
            return thread
        if thread.asked:
            return replace(thread, status=thread_parts.AT_PHASE, instruction=thread.asked - 1)
        position = thread.instruction
        if position not in self._spins:
            self._spins[position] = spin_around(self.launch, position)
        spin = self._spins[position]
        if spin is None or spin.look is None:
            return replace(thread, status=SPINS, waits_at=0)
        return replace(thread, status=SPINS, instruction=spin.look, waits_at=polled_by(self.launch, thread, spin) or 0)


def grouped(threads: Iterable[ThreadSnapshot]) -> list[list[ThreadSnapshot]]:
    """Threads that wait for the same thing at the same instruction, the largest group first."""
    found: dict[object, list[ThreadSnapshot]] = {}
    for thread in threads:
        subject = {
            thread_parts.AT_COLLECTIVE: thread.members,
            thread_parts.AT_PHASE: thread.waits_at,
            thread_parts.AT_BARRIER: thread.barrier,
            thread_parts.AT_REGISTERS: thread.waits_for,
        }.get(thread.status)
        found.setdefault((thread.status, thread.instruction, subject), []).append(thread)
    return sorted(found.values(), key=lambda group: -len(group))


def _is_incomplete(group: Group) -> bool:
    """Whether a group waits for an MMA that no thread can complete: all that have not issued it have exited."""
    if group.status != thread_parts.AT_PRODUCTS:
        return False
    late = missing(group)
    return bool(late) and all(thread.status == thread_parts.DONE for thread in late)


def missing(group: Group) -> Sequence[ThreadSnapshot]:
    """The threads of a warpgroup that have not committed the group of `wgmma` that others of it wait for."""
    first = group.first.warp // 4 * 4
    threads = StructArray.at(state.Thread, group.snapshot.record.get("threads"))
    return [
        thread
        for thread in group.snapshot.threads
        if thread.warp // 4 * 4 == first and threads.get("wgmma.group", thread.number) < group.first.waits_for
    ]


def _counts_everyone(group: Group) -> bool:
    """Whether a group waits at a barrier that does not wait for threads which exit."""
    if group.status == thread_parts.AT_BARRIER:
        return bool(group.snapshot.barrier(group.first.barrier).get("everyone"))
    return group.status == thread_parts.AT_CLUSTER


def _is_at(group: Group, barrier: int) -> bool:
    return group.status == thread_parts.AT_BARRIER and group.first.barrier == barrier
