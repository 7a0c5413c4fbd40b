"""What went wrong in a launch: its fault, which has an explainer for each kind, and all that the detectors found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces, faults
from ptxlab.emulate.explain import (
    barrier_faults,
    collective_faults,
    control_faults,
    descriptor_faults,
    memory_faults,
    scale_faults,
    tensor_faults,
    tensor_map_faults,
    texture_faults,
)
from ptxlab.emulate.explain.fault_snapshot import ACCESSES, FaultSnapshot
from ptxlab.emulate.explain.findings import explain_findings
from ptxlab.emulate.explain.memory_names import name_bytes
from ptxlab.emulate.explain.snapshots import thread_name
from ptxlab.emulate.explain.stops import explain_stop
from ptxlab.report import Diagnostic, Span, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_DAMAGE = ("overwritten-mbarrier", "reinitialized-mbarrier")  # which explain the races of the same instruction
_CONSEQUENCES = {"hang", "timeout"}  # of a race, if there is one: it may have taken away what is waited for
EXPLAINERS: dict[int, Callable[[FaultSnapshot], Diagnostic]] = {
    faults.OUT_OF_BOUNDS: memory_faults.explain_out_of_bounds,
    faults.MISALIGNED: memory_faults.explain_misaligned,
    faults.READ_ONLY: memory_faults.explain_read_only,
    faults.BAD_FREE: memory_faults.explain_bad_free,
    faults.BAD_COPY_SIZE: memory_faults.explain_bad_copy_size,
    faults.BAD_SIZE: memory_faults.explain_bad_size,
    faults.NO_MEMORY: memory_faults.explain_no_memory,
    faults.TRAP: control_faults.explain_trap,
    faults.ASSERTION: control_faults.explain_assertion,
    faults.STACK_OVERFLOW: control_faults.explain_stack_overflow,
    faults.BAD_BRANCH: control_faults.explain_bad_branch,
    faults.BAD_CALL: control_faults.explain_bad_call,
    faults.BARRIER_COUNT: barrier_faults.explain_barrier_count,
    faults.BAD_BARRIER: barrier_faults.explain_bad_barrier,
    faults.BARRIER_DIVERGENCE: collective_faults.explain_barrier_divergence,
    faults.BAD_MEMBERMASK: collective_faults.explain_bad_membermask,
    faults.NO_WARPGROUP: collective_faults.explain_no_warpgroup,
    faults.DIVERGENT_DESCRIPTOR: collective_faults.explain_divergent_descriptor,
    faults.DIVERGENT_REGISTERS: collective_faults.explain_divergent_setmaxnreg,
    faults.HANG: collective_faults.explain_stuck,
    faults.BAD_DESCRIPTOR: descriptor_faults.explain_bad_descriptor,
    faults.BAD_INSTRUCTION_DESCRIPTOR: descriptor_faults.explain_bad_instruction_descriptor,
    faults.BAD_ALLOCATION: tensor_faults.explain_bad_allocation,
    faults.BAD_TENSOR_ADDRESS: tensor_faults.explain_bad_tensor_address,
    faults.TENSOR_LEAK: tensor_faults.explain_tensor_leak,
    faults.BAD_METADATA: tensor_faults.explain_bad_metadata,
    faults.BAD_SCALE_FACTORS: scale_faults.explain_bad_scale_factors,
    faults.BAD_TENSOR_MAP: tensor_map_faults.explain_bad_tensor_map,
    faults.BAD_COORDINATE: tensor_map_faults.explain_bad_coordinate,
    faults.BAD_MULTICAST: memory_faults.explain_bad_multicast,
    faults.BAD_TEXTURE: texture_faults.explain_bad_texture,
    faults.BAD_SURFACE_COORDINATE: texture_faults.explain_bad_surface_coordinate,
}


def explain(launch: RunningLaunch, outcome: str | None, timeout: float | None) -> list[Diagnostic]:
    """Everything that a launch found wrong."""
    faulty = [worker for worker in launch.workers if worker.fault.get("kind") not in (0, faults.APART)]
    faulty.sort(key=lambda worker: worker.fault.get("block"))  # one cause, one diagnostic: that of the first block
    snapshots = [FaultSnapshot(launch.of(worker.fault.get("block")), worker) for worker in faulty[:1]]
    found = [EXPLAINERS[fault.kind](fault) for fault in snapshots]
    if not found and outcome is not None:
        found = [explain_stop(launch, outcome, timeout)]
    found += _explain_late(launch)
    codes = {diagnostic.code for diagnostic in found}
    damaged = {diagnostic.labels[0].span for diagnostic in found if diagnostic.code in _DAMAGE and diagnostic.labels}
    races = [race for race in explain_findings(launch) if not _is_reported(race, codes, damaged)]
    causes = [race for race in races if race.code == "data-race" and race.level == "error" and codes & _CONSEQUENCES]
    return [*causes, *found, *(race for race in races if race not in causes), *_explain_printf(launch)]


def _explain_late(launch: RunningLaunch) -> list[Diagnostic]:
    """The first access to shared memory of a block that had exited."""
    late = [worker.late for worker in launch.workers if worker.late.get("kind")]
    if not late:
        return []
    first = min(late, key=lambda fault: fault.get("block"))
    size, block = first.get("size"), first.get("block")
    launch = launch.of(block)
    bytes = name_bytes(launch, address_spaces.CLUSTER_SPACE, first.get("address"), size, block)
    return [
        error(
            "exited-block",
            f"{ACCESSES[first.get('access')]} of {size} bytes in shared memory of a block that has exited",
            launch.span_of(first.get("instruction")),
            f"{thread_name(launch, block, first.get('thread'))}, {bytes}",
            helps=["let all threads of the cluster synchronize at `barrier.cluster` before they exit"],
        )
    ]


def _explain_printf(launch: RunningLaunch) -> list[Diagnostic]:
    """What is wrong with calls of `printf`."""
    found = []
    for one in launch.team:
        for remark, call in one.services.remarks.values():
            level = error if remark.level == "error" else warning
            notes = [f"the format is {json.dumps(call.pattern)}"] if call.pattern else []
            who = thread_name(one, call.block, call.thread)
            found.append(level("bad-printf", remark.message, one.span_of(call.instruction), who, notes=notes))
    return found


def _is_reported(race: Diagnostic, codes: set[str], damaged: set[Span]) -> bool:
    """Whether a finding has the cause of a fault that is reported already."""
    if race.code in ("use-after-free", "exited-block"):
        return race.code in codes
    return not damaged.isdisjoint(label.span for label in race.labels)
