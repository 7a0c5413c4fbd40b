"""Which findings have one cause, so that one of them reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi.structs import Record
from ptxlab.emulate.runtime.order import reports
from ptxlab.ir.flow import flow_of
from ptxlab.isa.effects import Effects

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import Launch


def without_consequences(launch: Launch, found: Record, races: list[int]) -> list[int]:
    """The findings without those that others explain.

    A deallocation races with all that no thread waited for, and is reported once. Where one fence is missing, all
    operations that follow the same synchronization lack it.
    """
    kinds = {number: found.get("kind", number) for number in races}
    unfenced = [number for number in races if kinds[number] in (reports.UNFENCED, reports.UNFENCED_TENSOR)]
    frees = [
        number
        for number in races
        if launch.compiled.effects(found.get("instruction", number)).does("tensor_memory", "free")
    ]
    others = [number for number in races if number not in frees]
    reported = {found.get(name, number) for number in others for name in ("instruction", "other_instruction")}
    kept = {number for number in others if number not in unfenced}
    for kind in (reports.UNFENCED, reports.UNFENCED_TENSOR):
        kept |= set(_one_a_fence(launch, found, [number for number in unfenced if kinds[number] == kind]))
    freed: set[int] = set()
    for number in frees:
        at = found.get("instruction", number)
        if at not in freed and found.get("other_instruction", number) not in reported:
            freed.add(at)
            kept.add(number)
    return [number for number in races if number in kept]


def _one_a_fence(launch: Launch, found: Record, unfenced: list[int]) -> list[int]:
    """Of the findings for which one fence is missing the one that is first in the file."""
    groups: list[tuple[frozenset[int], int]] = []
    for number in sorted(unfenced, key=lambda number: (found.get("instruction", number), number)):
        before = synchronizations_before(launch, found.get("instruction", number))
        if not any(before & other for other, _ in groups):
            groups.append((before, number))
    return [number for _, number in groups]


def synchronizations_before(launch: Launch, instruction: int) -> frozenset[int]:
    """The synchronization that an instruction may directly follow, with no `tcgen05.fence` between the two."""
    places = launch.compiled.places
    function = places[instruction][0]
    first = next(number for number, (owner, _) in enumerate(places) if owner is function)
    flow = flow_of(function)
    home = next(block for block in flow.blocks if block.start <= instruction - first < block.end)
    found, seen = set(), set()
    pending = [(home.number, instruction - first)]
    while pending:
        number, end = pending.pop()
        for at in range(end - 1, flow.blocks[number].start - 1, -1):
            effects = launch.compiled.effects(first + at)
            if effects.does("tensor_memory", "fence_after"):
                break
            if _synchronizes(effects):
                found.add(first + at)
                break
        else:
            earlier = [other for other in flow.blocks[number].predecessors if other not in seen]
            seen.update(earlier)
            pending += [(other, flow.blocks[other].end) for other in earlier]
    return frozenset(found)


def _synchronizes(effects: Effects) -> bool:
    """Whether a thread is ordered by an instruction after what others did."""
    if effects.waits or effects.does("mbarrier", "wait") or effects.does("mbarrier", "test"):
        return True
    orders = [*effects.fences, *(access.order for access in effects.accesses)]
    return any(order.startswith(("acquire", "acq_rel")) for order in orders)
