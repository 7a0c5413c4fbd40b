"""What several cores found, as one core reports it.

One core runs blocks in order, and of findings that are alike it notes the first. So does each of several cores with its
own blocks. To put that together, findings go by the order of blocks, and those that another core noted as well are left
out. Where two are alike, but not equal, it takes one core to know which of them is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi.findings import Finding, FoundAccess
from ptxlab.emulate.runtime.order.shadow import WARP_SHIFT

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def merged_findings(launch: RunningLaunch) -> list[Finding] | None:
    """What was found, in the order of one core; None if only one core knows that."""
    found = [
        [worker.findings.value(Finding, number) for number in range(worker.history.get("finding_count"))]
        for worker in launch.workers
    ]
    if len(found) == 1:
        return found[0]
    if any(found) and any(worker.history.get("is_serial") for worker in launch.workers):
        return None
    records = [(one, number) for number, own in enumerate(found) for one in own]
    records.sort(key=lambda record: record[0].turn)
    kept: dict[tuple[int, ...], tuple[Finding, int]] = {}
    for record, worker in records:
        if _key(record) in kept:
            continue
        if any(worker != other and _may_be_alike(record, before) for before, other in kept.values()):
            return None
        kept[_key(record)] = record, worker
    most: int = launch.workers[0].history.get("finding_capacity")
    return [record for record, _ in kept.values()] if len(kept) < most else None


def _key(found: Finding) -> tuple[int, ...]:
    """All that decides which findings are alike this one; see `runtime.order.reports`."""
    return found.kind, found.space, found.is_near, *_key_of_access(found.access), *_key_of_access(found.other)


def _key_of_access(access: FoundAccess) -> tuple[int, int]:
    return access.instruction, access.flags & ((1 << WARP_SHIFT) - 1)


def _may_be_alike(one: Finding, other: Finding) -> bool:
    """Whether only the first of two findings may be noted: they are of one kind, and of one instruction."""
    instructions = {one.access.instruction, one.other.instruction}
    return one.kind == other.kind and not instructions.isdisjoint((other.access.instruction, other.other.instruction))
