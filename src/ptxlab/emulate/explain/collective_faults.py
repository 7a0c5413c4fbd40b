"""Instructions that lanes of a warp, or warps of a warpgroup, must execute together, and do not."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.emulate.abi import thread_parts
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.explain.hangs import explain_divergence, explain_hang
from ptxlab.emulate.explain.snapshots import WAITING
from ptxlab.emulate.explain.team_hangs import explain_team_hang
from ptxlab.report import Diagnostic

_STATUS = {"block": thread_parts.AT_BARRIER, "cluster": thread_parts.AT_CLUSTER, None: thread_parts.AT_COLLECTIVE}


def explain_barrier_divergence(fault: FaultSnapshot) -> Diagnostic:
    """A lane comes to an instruction that needs the whole warp, while other lanes wait elsewhere."""
    snapshot = fault.snapshot
    culprit = replace(
        snapshot.threads[fault.thread],
        status=_STATUS[fault.effects.barrier],
        barrier=fault.value,
        instruction=fault.number,
    )
    lanes = [thread for thread in snapshot.threads if thread.warp == culprit.warp and thread.status in WAITING]
    return explain_divergence(fault.launch, snapshot, [culprit, *lanes], culprit)


def explain_bad_membermask(fault: FaultSnapshot) -> Diagnostic:
    """A mask of lanes without the one that gives it."""
    lane = fault.thread % 32
    message = f"the mask {fault.value:#010x} of lane {lane} does not include the lane itself"
    return fault.error("bad-membermask", message, helps=[f"set bit {lane} of the mask"])


def explain_no_warpgroup(fault: FaultSnapshot) -> Diagnostic:
    """An instruction of a warpgroup in a block whose last warpgroup is not whole."""
    return fault.error(
        "barrier-divergence",
        "a warpgroup is four warps, but this one has fewer",
        notes=[f"the block has {fault.value} threads"],
        helps=["launch a multiple of 128 threads, or let only whole warpgroups come here"],
    )


def explain_divergent_descriptor(fault: FaultSnapshot) -> Diagnostic:
    """Matrix descriptors that are not the same in all threads of a warpgroup."""
    return fault.error(
        "divergent-descriptor",
        "threads of a warpgroup gave `wgmma` different matrix descriptors",
        f"{fault.who} gave other descriptors than thread {fault.record.get('other_thread')}",
        helps=["compute descriptors from what all threads share, not from `%tid`"],
    )


def explain_divergent_setmaxnreg(fault: FaultSnapshot) -> Diagnostic:
    """Warps of a warpgroup that did not execute the same `setmaxnreg`."""
    return fault.error(
        "divergent-setmaxnreg",
        "`setmaxnreg` is not executed alike by all warps of a warpgroup",
        f"warp {fault.thread // 32} executed this, and warp {fault.value} of its warpgroup did not",
        notes=["registers move between warpgroups: what four warps do with them differently is undefined"],
        helps=["branch by warpgroup (`%tid.x` / 128) before `setmaxnreg`, and by warp after it"],
    )


def explain_stuck(fault: FaultSnapshot) -> Diagnostic:
    """No thread of a cluster can continue."""
    if fault.launch.place is not None:
        return explain_team_hang(fault.launch, fault.snapshot, fault.launch.team[0].workers[0])
    return explain_hang(fault.launch, fault.snapshot)
