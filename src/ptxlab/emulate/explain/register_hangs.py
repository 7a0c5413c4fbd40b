"""Explains why `setmaxnreg.inc` waits: what each warp owns, what the pool of the block holds, and what is wanted."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import state
from ptxlab.emulate.explain.snapshots import ranges
from ptxlab.native import offset_of
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.explain.snapshots import BlockSnapshot
    from ptxlab.emulate.explain.waits import Group
    from ptxlab.emulate.host.running import RunningLaunch


def explain_registers(launch: RunningLaunch, group: Group, label: str, others: list[Label]) -> Diagnostic:
    """Warps wait for more registers than other warps of the block give back."""
    wanted, count = group.first.waits_for, len(group.threads)
    owned, pool = _owned(launch, group.snapshot), group.snapshot.record.get("registers.pool")
    warps, start = sorted(group.warps), launch.compiled.facts["registers"]
    missing = [wanted - owned[warp] for warp in warps]
    total = start * len(owned)
    kept = [count for count in owned if count < start]
    most = (total - sum(kept)) // (len(owned) - len(kept)) // 8 * 8
    return error(
        "hang",
        f"{'a thread waits' if count == 1 else f'{count} threads wait'} for {wanted} registers each, "
        "which the block never has",
        launch.span_of(group.instruction),
        label,
        others=others[:3],
        notes=[
            f"{len(owned)} warps started with {start} registers a thread, {total} in all; {_listed(owned)}",
            f"{_name(warps)} {'need' if len(warps) > 1 else 'needs'} {_sum(missing)} more, and the pool holds {pool}",
        ],
        helps=[f"ask for {most} at most, or let other warps give more back by `setmaxnreg.dec`, before they wait"],
    )


def _owned(launch: RunningLaunch, snapshot: BlockSnapshot) -> list[int]:
    """The registers that a thread of each warp owns."""
    start = launch.compiled.facts["registers"]
    warps = snapshot.record.get("warps")
    address = snapshot.record.address + offset_of(state.Block, "registers.owned")
    return [count or start for count in (ctypes.c_uint32 * warps).from_address(address)]


def _listed(owned: list[int]) -> str:
    """`warps 0 to 3 own 168, warps 4 to 7 own 40`"""
    counts = dict.fromkeys(owned)
    parts = []
    for count in counts:
        warps = [warp for warp, one in enumerate(owned) if one == count]
        parts.append(f"{_name(warps)} {'own' if len(warps) > 1 else 'owns'} {count}")
    return ", ".join(parts)


def _name(warps: list[int]) -> str:
    return f"warp{'s' * (len(warps) > 1)} {ranges(warps)}"


def _sum(missing: list[int]) -> str:
    """`4 x 72 = 288`"""
    total = sum(missing)
    return str(total) if len(missing) == 1 else f"{len(missing)} x {missing[0]} = {total}"
